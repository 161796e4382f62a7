"""`emit="final"`, sessions and stamps: each closed window once, also where one waits for another; the same after stops and losses."""

from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import nosync as ns
from nosync.graph.timed import expiries
from nosync.history.home import Home
from nosync.journal.entries import Merged
from nosync.model.errors import Refused
from nosync.runtime.starting import begin
from nosync.runtime.stepping import Stepping
from nosync.testing import Batch, Change, Tables, difference
from tests.metamorphic import contents
from tests.queries.event_time_model import SCHEMAS, START, on_time, row, second_of, tumbling
from tests.queries.test_event_time import CHANGES, flow_of

DELAY, GAP = 5.0, 4.0
MORE = [
    *CHANGES,
    Change({"s": [row("a", 61), row("b", 62, 3), row("a", 40)]}),
    Change({"s": [row("a", 64), row("a", 57.5, 2), row("b", 99)]}),
]


def program(face: Any) -> None:
    s = face.source("s", watermark=("at", "5 seconds"), stamp="arrived")
    tens = s.groupBy(F.window("at", "10 seconds"), "k").agg(F.count("*").alias("n"), F.sum("v").alias("v"))
    emitted = face.view("tens", tens, emit="final")
    face.view("early", tens)
    twenties = emitted.groupBy(F.window(F.window_time("window"), "20 seconds")).agg(F.sum("n").alias("n"))
    face.view("twenties", twenties)
    face.view("twice", twenties, emit="final")
    lists = s.groupBy(F.window("at", "6 seconds", "3 seconds")).agg(F.sort_array(F.collect_list("v")).alias("all"))
    face.view("lists", lists.select("window.start", "all").where("size(all) > 1"), emit="final")
    several = [F.count("*").alias("n"), F.avg("d").alias("d"), F.sum("v").alias("v")]
    slid = s.groupBy("k", F.window("at", "6 seconds", "2 seconds")).agg(*several)
    face.view("slid", slid)
    face.view("slid_once", slid.select(F.col("window.end").alias("end"), "k", (F.col("n") + 1).alias("more"), "d", "v"), emit="final")
    visits = s.groupBy("k", F.session_window("at", "4 seconds")).agg(F.count("*").alias("n"), F.max("v").alias("v"))
    face.view("visits", visits)
    face.view("visited", visits.select("k", F.col("session_window.start").alias("start"), "n"), emit="final")
    uneven = F.when(F.col("k") == "a", "2 seconds").otherwise("7 seconds")
    unlike = s.groupBy("k", F.session_window("at", uneven)).count()
    face.view("uneven", unlike)
    face.view("uneven_once", unlike, emit="final")
    face.view("arrivals", s.groupBy("arrived").count())


def work(stepping: Stepping, source: Any, changes: list[Change]) -> None:
    """One epoch a change and what follows from it without input, merging all that can be merged."""
    for change in [*changes, Change()]:
        source.add(change.added.get("s", ()))
        source.remove(change.removed.get("s", ()))
        while stepping.step() is not None and not change.added:
            pass
        stepping.merger.merge_all(stepping.image, lambda layer: stepping.journal.append(Merged(layer)) and None)


class Clock:
    """A clock that gives each epoch a time of its own, the same in every run."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.25

    def __call__(self) -> float:
        return self.now


def stepping_of(flow: ns.Flow, home: Path, shards: int) -> Stepping:
    return begin(flow.program(), home, shards, clock=Clock()).recover()


@pytest.fixture(scope="module")
def undisturbed(quick: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("finals") / "home"
    flow, source = flow_of(quick, program)
    stepping = stepping_of(flow, home, 2)
    work(stepping, source, MORE)
    stepping.close()
    return home


def watermark(epoch: int) -> float:
    seen = [second_of(found) for change in MORE[: epoch - 1] for found in change.added["s"]]
    return max(seen) - DELAY if seen else -1e18


def batch(spark: SparkSession, closes: Any, epochs: int) -> Batch:
    """All views over the rows that were not late, without the column that Spark's own batch does not have."""
    kept = on_time(MORE, closes, DELAY)
    table = Tables(spark, SCHEMAS, kept[:epochs]).after(epochs)["s"].withColumn("arrived", F.lit(None).cast("timestamp"))
    found = Batch(spark, {"s": table})
    program(found)
    return found


def ended(found: Batch, view: str, end: str, bound: float) -> Any:
    return found._frames[view].where(F.expr(end) <= F.lit(START + timedelta(seconds=max(bound, -1e6)))).toArrow()


def test_a_closed_window_is_emitted_once_as_batch_has_it(quick: SparkSession, undisturbed: Path) -> None:
    home = Home(undisturbed)
    assert home.epoch == len(MORE) + 2  # a window over closed windows closes one epoch later
    for epoch in (2, 4, 5, 7, 8, 9):
        found = batch(quick, tumbling(10), epoch - 1)
        wanted = ended(found, "tens", "window.end", watermark(epoch))
        assert not difference(wanted, home.view("tens", at=epoch)), epoch
    sums: Counter[Any] = Counter()
    for emitted in home.view("tens").to_pylist():
        sums[(emitted["window"]["start"] - START).total_seconds() // 20] += emitted["n"]

    def found_in(view: str) -> dict[float, int]:
        return {(entry["window"]["start"] - START).total_seconds() // 20: entry["n"] for entry in home.view(view).to_pylist()}

    assert found_in("twenties") == dict(sums)
    assert found_in("twice") == {place: n for place, n in sums.items() if place * 20 + 20 <= watermark(9)}


def test_windows_that_keep_their_rows_are_emitted_once_too(quick: SparkSession, undisturbed: Path) -> None:
    def late_for_both(found: Any) -> float:
        return (second_of(found) // 3 + 2) * 3

    found = batch(quick, late_for_both, len(MORE))
    home = Home(undisturbed)
    wanted = {(row["start"], tuple(row["all"])) for row in ended(found, "lists", "start + interval 6 seconds", watermark(9)).to_pylist()}
    actual = {(row["start"], tuple(row["all"])) for row in home.view("lists").to_pylist()}
    early = [one for one in wanted ^ actual if (one[0] - START).total_seconds() >= 27]
    assert actual and not early  # before, some rows were late for the first of their two windows only


def test_sliding_windows_are_emitted_from_their_panes(undisturbed: Path) -> None:
    home = Home(undisturbed)
    assert home.image.newest["slid_once/panes"]
    for epoch in range(2, len(MORE) + 2):
        bound = START + timedelta(seconds=watermark(epoch))
        early = [row for row in home.view("slid", at=epoch - 1).to_pylist() if row["window"]["end"] <= bound]
        wanted = Counter((row["window"]["end"], row["k"], row["n"] + 1, row["d"], row["v"]) for row in early)
        found = Counter(tuple(row.values()) for row in home.view("slid_once", at=epoch).to_pylist())
        assert found == wanted and (early or epoch < 4), epoch


def test_each_sliding_window_has_the_rows_that_are_not_late_for_it(undisturbed: Path) -> None:
    home, counts = Home(undisturbed), Counter[Any]()
    for epoch, change in enumerate(MORE, start=1):
        for diff, rows in ((1, change.added), (-1, change.removed)):
            for found in rows.get("s", ()):
                for end in [second_of(found) // 2 * 2 + 2 * slide for slide in (1, 2, 3)]:
                    counts[found[0], end] += diff * (end > watermark(epoch))
        actual = {(row["k"], (row["window"]["end"] - START).total_seconds()): row["n"] for row in home.view("slid", at=epoch).to_pylist()}
        assert actual == {place: n for place, n in counts.items() if n}, epoch


def test_sessions_are_those_of_batch_over_the_rows_that_are_not_late(quick: SparkSession, undisturbed: Path) -> None:
    home = Home(undisturbed)

    def own(found: Any) -> float:
        return second_of(found) + GAP

    for epoch in (1, 3, 6, 8):
        assert not difference(batch(quick, own, epoch).answer("visits"), home.view("visits", at=epoch)), epoch
        assert not difference(batch(quick, second_of, epoch).answer("uneven"), home.view("uneven", at=epoch)), epoch
    for epoch in (5, 8, 9):
        visits = batch(quick, own, epoch - 1)._frames["visits"].where(
            F.col("session_window.end") <= F.lit(START + timedelta(seconds=watermark(epoch) - GAP))
        )
        wanted = visits.select("k", "session_window.start", "n").toArrow()
        assert not difference(wanted, home.view("visited", at=epoch)), epoch
        closed = ended(batch(quick, second_of, epoch - 1), "uneven", "session_window.end", watermark(epoch))
        assert not difference(closed, home.view("uneven_once", at=epoch)), epoch


def test_rows_are_stamped_with_the_recorded_time_of_their_epoch(undisturbed: Path) -> None:
    [entry] = Home(undisturbed).view("arrivals").to_pylist()
    assert entry["arrived"].timestamp() == 1_700_000_000.25
    assert entry["count"] == sum(len(change.added["s"]) - len(change.removed.get("s", ())) for change in MORE)


def test_a_flow_that_stops_and_loses_layers_emits_each_window_once_all_the_same(
    quick: SparkSession, tmp_path: Path, undisturbed: Path
) -> None:
    home = tmp_path / "home"
    flow, source = flow_of(quick, program)
    stepping = stepping_of(flow, home, 1)
    for change in MORE[:5]:
        source.add(change.added["s"])
        source.remove(change.removed.get("s", ()))
        stepping.step()
    stepping.close()
    for trace in ("tens/final-2", "tens/rows", "visits/session/rows", "slid_once/panes"):
        for layers in Home(home).image.traces[trace].values():
            for layer in layers[-2:]:
                (home / layer.path).unlink()
    again, source = flow_of(quick, program)
    stepping = stepping_of(again, home, 1)
    assert stepping.recovered.recomputed
    work(stepping, source, MORE[5:])
    stepping.close()
    assert contents(home) == contents(undisturbed)


def test_windows_that_a_changed_program_emits_are_emitted_once_too(quick: SparkSession, tmp_path: Path) -> None:
    def before(face: Any) -> None:
        face.view("keys", face.source("s").groupBy("k").count())

    def after(face: Any) -> None:
        s = face.source("s", watermark=("at", "5 seconds"))
        slid = s.groupBy("k", F.window("at", "6 seconds", "2 seconds")).count()
        face.view("slid_once", slid, emit="final")
        face.view("tens", s.groupBy(F.window("at", "10 seconds")).agg(F.sum("v").alias("v")), emit="final")

    def run(home: str, declare: Any, changes: list[Change], **options: Any) -> None:
        flow, source = flow_of(quick, declare)
        stepping = begin(flow.program(), tmp_path / home, 2, **options).recover()
        work(stepping, source, changes)
        stepping.close()

    run("changed", before, MORE[:5])
    run("changed", after, MORE[5:], on_change="rebuild")
    run("fresh", after, MORE)
    changed, fresh = contents(tmp_path / "changed"), contents(tmp_path / "fresh")
    assert {view: changed[view] for view in fresh} == fresh and all(fresh.values())


def test_what_expires_goes_by_the_name_that_an_operator_has_taken_over(quick: SparkSession) -> None:
    graph = flow_of(quick, program)[0].program().graph
    [session] = [operator for operator in graph.operators if operator.name == "visits/session"]
    session.name = "before/session"
    found = expiries(graph)
    assert found["before/session/rows"].chained and not found["before/session"].chained and "visits/session" not in found
    assert found["slid_once/panes"].clock.lag == found["slid/aggregate"].clock.lag + 1


def test_what_never_closes_cannot_be_final(quick: SparkSession) -> None:
    flow = ns.Flow("f", quick)
    plain = flow.source("plain", ns.memory(SCHEMAS["s"]))
    timed = flow.source("timed", ns.memory(SCHEMAS["s"]), watermark=("at", "1 second"))
    with pytest.raises(Refused, match="needs a window over a watermarked column"):
        flow.view("a", plain.groupBy(F.window("at", "1 second")).count(), emit="final")
    with pytest.raises(Refused, match="nothing is late for it"):
        flow.view("b", timed.groupBy("k").count(), late="c")
    with pytest.raises(ns.Invalid, match='no timestamp "when"'):
        flow.source("e", ns.memory(SCHEMAS["s"]), watermark=("when", "1 second"))
