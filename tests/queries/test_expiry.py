"""State that expires: joins by event time, duplicates, functions of closed windows. Right over the rows that were not late, at every epoch,
whatever was dropped by then, and however often it was stopped.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import nosync as ns
from nosync import testing
from nosync.history.home import Home
from nosync.journal.entries import Merged
from nosync.model.errors import Refused
from nosync.runtime.starting import begin
from nosync.runtime.stepping import Stepping
from nosync.testing import Batch, Change, Tables
from tests.metamorphic import contents

Row = tuple[Any, ...]
Closes = Callable[[Row], float]
START = datetime(2024, 5, 1, tzinfo=UTC)
SCHEMAS = {"l": "k string, at timestamp, v int", "r": "k string, came timestamp, w int"}
DELAYS = {"l": 2.0, "r": 3.0}
TIME_OF = {"l": "at", "r": "came"}
NEAR = "l.k = r.k and r.came >= l.at - interval 4 seconds and r.came < l.at + interval 6 seconds"


def row(key: str, second: float, value: int = 1) -> Row:
    return (key, START + timedelta(seconds=second), value)


def second_of(found: Row) -> float:
    seconds: float = (found[1] - START).total_seconds()
    return seconds


def ten(found: Row) -> float:
    return (second_of(found) // 10 + 1) * 10


def longest(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.loc[frame["v"] == frame["v"].max(), ["k", "v"]].drop_duplicates()


def met(left: pd.DataFrame, right: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame({"n": [len(left)], "m": [len(right)]})


def by_window(rows: DataFrame, time: str) -> Any:
    return rows.groupBy(F.window(time, "10 seconds"))


def program(face: Any) -> None:
    left, right = (face.source(name, watermark=(column, f"{DELAYS[name]:g} seconds")).alias(name) for name, column in TIME_OF.items())
    for how in ("inner", "full", "left_anti"):
        face.view(how, left.join(right, F.expr(NEAR), how))
    windows = left.withColumn("w10", F.window("at", "10 seconds")), right.withColumn("w10", F.window("came", "10 seconds"))
    face.view("windows", windows[0].join(windows[1], ["k", "w10"], "left").select("k", "w10", "v", "w"))
    face.view("semi", windows[0].join(windows[1], ["k", "w10"], "left_semi"))
    face.view("after", left.join(right, F.expr("l.k = r.k and r.came >= l.at")).select("l.k", "v", "w"))  # no end on the right
    face.view("once", left.dropDuplicates(["k", "at"]))
    face.view("longest", by_window(left, "at").applyInPandas(longest, "k string, v int"))
    face.view("met", by_window(left, "at").cogroup(by_window(right, "came")).applyInPandas(met, "n long, m long"))
    gap = F.when(F.col("k") == "a", "2 seconds").otherwise("7 seconds")
    face.view("visits", left.groupBy("k", F.session_window("at", gap)).agg(F.count("*").alias("n"), F.sum("v").alias("v")))


TIMES: dict[str, tuple[Closes, tuple[str, ...]]] = {  # when a row is late, and by the watermark of which sources
    "inner": (second_of, ("l", "r")), "full": (second_of, ("l", "r")), "left_anti": (second_of, ("l", "r")),
    "windows": (ten, ("l", "r")), "semi": (ten, ("l", "r")), "after": (second_of, ("l", "r")), "once": (second_of, ("l",)),
    "longest": (ten, ("l",)), "met": (ten, ("l", "r")), "visits": (second_of, ("l",)),
}  # fmt: skip
CHANGES = [
    Change({"l": [row("a", 1), row("b", 2, 5), row("a", 1)], "r": [row("a", 3), row("b", 9, 2)]}),
    Change({"l": [row("a", 8, 2), row("b", 11)], "r": [row("a", 12, 3), row("b", 13)]}),  # 6 is the watermark behind it, of l alone 9
    Change({"l": [row("a", 7, 9), row("b", 10, 4), row("a", 14)], "r": [row("a", 8.5), row("b", 11, 7)]}, {"l": [row("b", 11)]}),
    Change({"l": [row("a", 25), row("c", 24, 3)], "r": [row("a", 22, 6), row("c", 29)]}, {"r": [row("b", 13), row("a", 3)]}),
    Change({"l": [row("a", 19, 7), row("b", 26)], "r": [row("a", 21, 4), row("b", 30, 8)]}),
    Change({"l": [row("a", 41), row("b", 33, 2)], "r": [row("a", 36, 4), row("b", 39, 8)]}),
    Change({"l": [row("b", 32, 6), row("b", 39.5, 6)], "r": [row("a", 44), row("b", 35, 3)]}, {"l": [row("b", 33, 2), row("a", 25)]}),
]


def on_time(changes: Sequence[Change], closes: Closes, sources: Sequence[str]) -> list[Change]:
    """The changes without what comes behind the lowest watermark of the sources."""
    kept, newest = [], dict[str, float]()
    for change in changes:
        known = all(name in newest for name in sources)
        bound = min(newest[name] - DELAYS[name] for name in sources) if known else -1e18
        added, removed = (
            {name: [one for one in rows if closes(one) > bound] for name, rows in part.items()} for part in (change.added, change.removed)
        )
        kept.append(Change(added, removed))
        for name, rows in change.added.items():
            newest[name] = max([*map(second_of, rows), newest.get(name, -1e18)])
    return kept


class Feed:
    """A flow of the program with its sources, going on over a home."""

    def __init__(self, spark: SparkSession, home: Path, declare: Any = program, shards: int = 2, removals: bool = True) -> None:
        self.flow = ns.Flow("expiring", spark)
        self.sources = {name: ns.memory(schema, removals=removals) for name, schema in SCHEMAS.items()}
        self.view = self.flow.view
        declare(self)
        self.stepping: Stepping = begin(self.flow.program(), home, shards).recover()

    def source(self, name: str, **settings: Any) -> DataFrame:
        return self.flow.source(name, self.sources[name], checked=False, **settings)

    def run(self, changes: Sequence[Change], merges: bool = True) -> list[dict[str, Any]]:
        reported = []
        for change in changes:
            for name, source in self.sources.items():
                if rows := change.added.get(name):
                    source.add(rows)
                if rows := change.removed.get(name):
                    source.remove(rows)
            progress = self.stepping.step()
            assert progress is not None
            reported.append(progress)
            if merges:
                self.stepping.merger.merge_all(self.stepping.image, lambda layer: self.stepping.journal.append(Merged(layer)) and None)
        return reported


@pytest.fixture(scope="module")
def expired(quick: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """Every row that may be dropped is, after each epoch."""
    home = tmp_path_factory.mktemp("expiry") / "home"
    feed = Feed(quick, home)
    try:
        return home, feed.run(CHANGES)
    finally:
        feed.stepping.close()


def test_answers_are_those_of_batch_over_the_rows_that_were_not_late(quick: SparkSession, expired: Any) -> None:
    for closes, sources in dict.fromkeys(TIMES.values()):
        tables = Tables(quick, SCHEMAS, on_time(CHANGES, closes, sources))

        def batch_at(epoch: int, tables: Tables = tables) -> Batch:
            batch = tables.batch(epoch)
            program(batch)
            return batch

        views = [view for view, time in TIMES.items() if time == (closes, sources)]
        testing.judge(Home(expired[0]), batch_at, range(1, len(CHANGES) + 1), views)


def _rows(change: Change, source: str) -> int:
    return len(change.added.get(source, ())) + len(change.removed.get(source, ()))


def test_late_rows_of_a_join_are_counted_by_side(expired: Any) -> None:
    kept = on_time(CHANGES, second_of, ("l", "r"))
    for name, side in (("l", "left"), ("r", "right")):
        late = [_rows(change, name) - _rows(timely, name) for change, timely in zip(CHANGES, kept, strict=True)]
        figures = [{one["operatorName"]: one for one in progress["stateOperators"]} for progress in expired[1]]
        assert [one.get(f"inner/join/{side}", {}).get("numRowsDroppedByWatermark", 0) for one in figures] == late
        assert sum(late) > 1


def test_what_was_dropped_by_when_does_not_show(quick: SparkSession, tmp_path: Path, expired: Any) -> None:
    """Nothing is merged, another number of shards, a stop and lost layers: the same answers."""
    feed = Feed(quick, tmp_path, shards=1)
    feed.run(CHANGES[:4], merges=False)
    feed.stepping.close()
    for trace in ("inner/join/left", "full/matches-2", "met/groups", "visits/session/rows", "once/rows"):
        for layers in Home(tmp_path).image.traces[trace].values():
            for layer in layers:
                (tmp_path / layer.path).unlink()
    again = Feed(quick, tmp_path, shards=1)
    assert again.stepping.recovered.recomputed
    again.run(CHANGES[4:], merges=False)
    again.stepping.close()
    for epoch in range(1, len(CHANGES) + 1):
        assert contents(tmp_path, at=epoch) == contents(expired[0], at=epoch), epoch


def within(face: Any) -> None:
    rows = face.source("l", watermark=("at", "2 seconds"))
    face.view("first", rows.dropDuplicatesWithinWatermark(["k"]).select("k", "v"))


def test_a_key_is_new_again_once_the_watermark_has_left_its_first_row_behind(quick: SparkSession, tmp_path: Path) -> None:
    batches = [
        [row("a", 10, 2), row("a", 9, 7), row("a", 9, 5), row("b", 8)],  # the earliest, and of those the first by its columns
        [row("a", 11, 8), row("c", 11), row("b", 8.5, 9)],  # 8 is the watermark: all that is new is c
        [row("a", 12, 3), row("b", 15, 4), row("c", 8, 4)],  # 9: c comes too late
        [row("b", 14, 6), row("a", 14, 4), row("c", 20, 2)],  # 13: all of them are new again
        [row("c", 21, 5), row("a", 19, 6)],
    ]
    wanted = [{("a", 5), ("b", 1)}, {("c", 1)}, set(), {("b", 6), ("a", 4), ("c", 2)}, {("a", 6)}]
    changes = [Change({"l": rows}) for rows in batches]
    for name, merges in (("merged", True), ("whole", False)):
        feed = Feed(quick, tmp_path / name, within, removals=False)
        feed.run(changes[:3], merges)
        feed.stepping.close()
        again = Feed(quick, tmp_path / name, within, shards=1, removals=False)
        again.run(changes[3:], merges)
        again.stepping.close()
    home = Home(tmp_path / "merged")
    for epoch in range(1, len(changes) + 1):
        found = {(one["k"], one["v"]) for one in home.changes("first", since=epoch - 1, until=epoch).to_pylist()}
        assert found == wanted[epoch - 1], epoch
    assert contents(tmp_path / "merged") == contents(tmp_path / "whole")


def test_duplicates_within_a_watermark_need_one(quick: SparkSession) -> None:
    flow = ns.Flow("f", quick)
    plain, timed = flow.source("plain", ns.memory(SCHEMAS["l"])), flow.source("l", ns.memory(SCHEMAS["l"]), watermark=("at", "1 second"))
    changing = flow.source("r", ns.memory(SCHEMAS["r"], removals=True), watermark=("came", "1 second"), checked=False)
    for frame, words in ((plain, "without an event time"), (timed.crossJoin(changing), "at and came"), (changing, "may be removed again")):
        with pytest.raises(Refused, match=words):
            flow.view("v", frame.dropDuplicatesWithinWatermark(["k"] if frame is not timed else None))


def test_state_stays_small_however_many_epochs_there_are(quick: SparkSession, tmp_path: Path) -> None:
    def declare(face: Any) -> None:
        left, right = (face.source(name, watermark=(column, "2 seconds")).alias(name) for name, column in TIME_OF.items())
        face.view("full", left.join(right, F.expr(NEAR), "full").select("v"))
        face.view("first", left.dropDuplicatesWithinWatermark(["k"]).select("v"))
        face.view("longest", by_window(left, "at").applyInPandas(longest, "k string, v int"))

    feed, rows = Feed(quick, tmp_path, declare, shards=1, removals=False), 8
    try:
        for epoch in range(16):
            seconds = [(f"{epoch}.{number}", 20 * epoch + number) for number in range(rows)]
            feed.run([Change({"l": [row(k, s) for k, s in seconds], "r": [row(k, s + 1) for k, s in seconds]})])
        newest = feed.stepping.image.newest
        kept = {
            trace: sum(layer.rows for layers in newest[trace].values() for layer in layers)
            for trace in newest
            if not trace.startswith(("full/rows", "first/rows", "longest/rows"))
        }
    finally:
        feed.stepping.close()
    assert len(kept) == 7
    assert {trace: count for trace, count in kept.items() if count > 8 * rows} == {}
    said = {box.name: box.kept for box in feed.flow.program().picture().boxes if box.kept}
    assert said["full/join"] == "left until the watermark is 6 seconds past at; right until the watermark is 4 seconds past came"
    assert said["longest/groups"] == "until the watermark has passed window.end"
