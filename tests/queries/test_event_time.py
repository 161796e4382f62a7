"""Windows over event time: right over the rows that are not late, whatever is forgotten, lost or repeated meanwhile."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import nosync as ns
from nosync.history.home import Home
from nosync.journal.entries import Merged
from nosync.runtime.starting import begin
from nosync.runtime.stepping import Stepping
from nosync.state.layer import open_layer
from nosync.testing import Change
from tests.metamorphic import contents
from tests.queries.event_time_model import SCHEMAS, judge, on_time, row, second_of, tumbling

DELAY = 5.0
TEN, THREE = tumbling(10), tumbling(3)


def never(found: Any) -> float:
    return 1e18


def breadth(values: pd.Series) -> float:
    return float(values.max() - values.min())


LATENESS = {"totals": TEN, "lists": TEN, "breadths": TEN, "short": THREE, "peaks": TEN, "keys": never, "moments": second_of}
CHANGES = [
    Change({"s": [row("a", 1), row("b", 2, 5), row("a", 9)]}),
    Change({"s": [row("a", 4, 3), row("b", 17), row(None, 18, 2)]}),  # 12 is the watermark from here on
    Change({"s": [row("a", 8, 9), row("b", 11, 4), row("a", 14), row("c", 13)]}, {"s": [row("b", 2, 5), row("b", 17)]}),
    Change({"s": [row("c", 31), row("a", 16, 7)]}),  # 26
    Change({"s": [row("c", 19), row("c", 27, 2), row("a", 32), row("b", 21)]}),
    Change({"s": [row("c", 34), row("a", 28, 5)]}, {"s": [row("a", 14)]}),
]


def program(face: Any) -> None:
    declared(face, face.source("s", watermark=("at", "5 seconds")))


def declared(face: Any, s: DataFrame) -> None:
    many = [F.count("*").alias("n"), F.sum("v").alias("v"), F.avg("d").alias("d")]
    totals = face.view("totals", s.groupBy(F.window("at", "10 seconds"), "k").agg(*many), late="too_late")
    lists = s.groupBy(F.window("at", "10 seconds").alias("w")).agg(F.sort_array(F.collect_list("v")).alias("all"))
    face.view("lists", lists.select("w.end", "all"))
    face.view("breadths", s.groupBy(F.window("at", "10 seconds")).agg(F.pandas_udf(breadth, "double")("v").alias("breadth")))
    face.view("short", s.where("v < 9").groupBy("k", F.window("at", "3 seconds")).agg(F.max("d").alias("most"), F.count("*").alias("n")))
    face.view("peaks", totals.groupBy("window").agg(F.max("n").alias("n")))
    face.view("keys", s.groupBy("k").count())
    face.view("moments", s.groupBy("at").count())


def flow_of(spark: SparkSession, declare: Any = program) -> tuple[ns.Flow, Any]:
    flow, source = ns.Flow("times", spark), ns.memory(SCHEMAS["s"], removals=True)

    class Face:
        def source(self, name: str, **settings: Any) -> Any:
            return flow.source(name, source, checked=False, **settings)

        view = staticmethod(flow.view)

    declare(Face())
    return flow, source


def process(stepping: Stepping, source: Any, changes: Sequence[Change]) -> list[dict[str, Any]]:
    """One epoch a change, merging all that can be merged after each."""
    reported = []
    for change in changes:
        source.add(change.added.get("s", ()))
        source.remove(change.removed.get("s", ()))
        progress = stepping.step()
        assert progress is not None
        reported.append(progress)
        stepping.merger.merge_all(stepping.image, lambda layer: stepping.journal.append(Merged(layer)) and None)
    return reported


def run_over(spark: SparkSession, home: Path, changes: Sequence[Change], declare: Any = program, shards: int = 2) -> list[dict[str, Any]]:
    flow, source = flow_of(spark, declare)
    stepping = begin(flow.program(), home, shards).recover()
    try:
        return process(stepping, source, changes)
    finally:
        stepping.close()


@pytest.fixture(scope="module")
def undisturbed(quick: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    home = tmp_path_factory.mktemp("times") / "home"
    return home, run_over(quick, home, CHANGES)


def test_windows_are_right_over_the_rows_that_are_not_late(quick: SparkSession, undisturbed: Any) -> None:
    judge(quick, undisturbed[0], program, CHANGES, LATENESS, DELAY)


def test_sparks_own_way_to_say_a_watermark_means_the_same(quick: SparkSession, undisturbed: Any, tmp_path: Path) -> None:
    def by_method(face: Any) -> None:
        rows = face.source("s")
        some = rows.select("k", rows["at"].alias("time"), "v", "d").alias("some")
        renamed = some.withWatermark("some.TIME", "5 seconds")  # names are found as Spark finds them
        assert renamed.select("time").columns == ["time"]
        declared(face, rows.withWatermark("`at`", "5 seconds").where(rows["at"].isNotNull()))
        face.view("renamed", renamed.groupBy(F.window("time", "10 seconds"), "k").count())

    reported = run_over(quick, tmp_path, CHANGES, by_method)
    for epoch in range(1, len(CHANGES) + 1):
        found, expected = contents(tmp_path, at=epoch), contents(undisturbed[0], at=epoch)
        assert {view: rows for view, rows in found.items() if view != "renamed"} == expected
        assert len(found["renamed"]) == len(found["totals"])
    assert [progress["eventTime"] for progress in reported] == [progress["eventTime"] for progress in undisturbed[1]]


def test_late_rows_are_counted_and_kept(undisturbed: Any) -> None:
    home, reported = undisturbed
    kept = on_time(CHANGES, TEN, DELAY)
    late = [
        (epoch, found, diff)
        for epoch, (change, timely) in enumerate(zip(CHANGES, kept, strict=True), start=1)
        for diff, rows, left in ((1, change.added, timely.added), (-1, change.removed, timely.removed))
        for found in rows.get("s", ())
        if found not in left["s"]
    ]
    for progress in reported:
        figures = {entry["operatorName"]: entry for entry in progress["stateOperators"]}
        counted = figures.get("totals/aggregate", {}).get("numRowsDroppedByWatermark", 0)
        assert counted == sum(epoch == progress["epoch"] for epoch, _, _ in late)
    rows = Home(home).view("too_late").to_pylist()
    assert sorted((entry["epoch"], entry["v"]) for entry in rows) == sorted((epoch, found[2]) for epoch, found, diff in late if diff > 0)
    times = [progress["eventTime"]["s"] for progress in reported]
    newest = [9, 18, 18, 31, 32, 34]
    assert [int(time["max"][17:19]) for time in times] == newest
    assert "watermark" not in times[0]
    assert [int(time["watermark"][17:19]) for time in times[1:]] == [second - int(DELAY) for second in newest[:-1]]


def test_state_of_closed_windows_is_dropped_and_their_results_stay(undisturbed: Any) -> None:
    home, _ = undisturbed
    opened = Home(home)
    ends = []
    for trace in ("totals/aggregate", "lists/regroup", "lists/regroup/rows"):
        for cover in opened.image.newest[trace].values():
            for block in open_layer(home, cover[-1]).blocks if cover[-1].upper > 4 else ():
                ends += [end.second for end in pc.struct_field(block.column("k0"), "end").to_pylist()]
    assert ends and min(ends) == 30  # 26 is the watermark when the merged layers are read
    assert sorted({window["end"].second for window in opened.view("totals").column("window").to_pylist()}) == [10, 20, 30, 40]


def test_a_flow_that_stops_and_loses_layers_goes_on_as_if_nothing_had_happened(
    quick: SparkSession, tmp_path: Path, undisturbed: Any
) -> None:
    home, shards = tmp_path / "home", 1  # the undisturbed one has two
    flow, source = flow_of(quick)
    stepping = begin(flow.program(), home, shards).recover()
    process(stepping, source, CHANGES[:4])
    source.add(CHANGES[4].added["s"])
    stepping.epochs._open(5)  # it was to be the next one, and its watermark is not in its record
    stepping.close()
    for trace in ("totals/aggregate", "lists/rows", "too_late/rows"):
        for layers in Home(home).image.traces[trace].values():
            for layer in layers:
                (home / layer.path).unlink()
    again, source = flow_of(quick)
    stepping = begin(again.program(), home, shards).recover()
    assert stepping.recovered.recomputed
    stepping.step()
    process(stepping, source, CHANGES[5:])
    stepping.close()
    assert contents(home) == contents(undisturbed[0])
