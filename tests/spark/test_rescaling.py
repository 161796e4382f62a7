"""More shards or fewer, from one epoch to the next: nothing that anybody reads changes by it."""

import os
import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import nosync as ns
from nosync.journal.entries import Merged, Rescaled
from nosync.model.shards import shard_ranges
from nosync.runtime.starting import begin
from nosync.runtime.stepping import Stepping
from nosync.testing import Change, check
from tests.queries.join_cases import SCHEMAS, changes

QUERIES = {
    "sums": "select k, count(*) n, sum(d) d, min(t) t from a group by k",
    "whole": "select count(*) n, sum(d) d from a",
    "rows": "select * from a where k > 1",
    "distinct": "select distinct k, t from a",
    "joined": "select a.k, a.t, b.u from a left join b on a.k = b.k and a.t <= b.u",
    "middle": "select k, percentile(d, 0.5) m from a group by k",
    "ranked": "select * from (select k, t, row_number() over (partition by k order by t, d, x, s) r from a) where r < 3",
    "first": "select k, t, d from a order by d, t, k, x, s limit 4",
}


def declare(flow: Any) -> None:
    flow.source("a")
    flow.source("b")
    for name, query in QUERIES.items():
        flow.sql(f"create view {name} as {query}")


def test_every_view_is_what_batch_says_at_every_epoch_across_rescalings(quick: SparkSession, tmp_path: Path) -> None:
    check(quick, declare, SCHEMAS, changes(1, 5), tmp_path, shards=[2, 7, 3, 3, 1])


class House:
    """A flow that is stopped, robbed and rescaled between its epochs."""

    def __init__(self, spark: SparkSession, home: Path, seed: int) -> None:
        self.home, self.chance = home, random.Random(seed)
        self.flow = ns.Flow("house", spark)
        self.sources = {name: ns.memory(schema, removals=True) for name, schema in SCHEMAS.items()}
        for name, source in self.sources.items():
            self.flow.source(name, source, checked=False)
        for name, query in QUERIES.items():
            self.flow.sql(f"create view {name} as {query}")
        self.expected: list[dict[str, list[str]]] = []
        self.recomputed = 0

    def start(self, shards: int | None) -> Stepping:
        stepping = begin(self.flow.program(), self.home, shards).recover()
        self.recomputed += stepping.recovered.recomputed
        return stepping

    def feed(self, change: Change) -> None:
        for name, rows in change.added.items():
            self.sources[name].add(list(rows))
        for name, rows in change.removed.items():
            self.sources[name].remove(list(rows))

    def lose_some(self) -> None:
        layers = ns.open(self.home).image.layers()
        for layer in self.chance.sample(layers, len(layers) // 3):
            os.unlink(self.home / layer.path)

    def contents(self, at: int) -> dict[str, list[str]]:
        opened = ns.open(self.home)
        return {name: sorted(map(repr, opened.view(name, at=at).to_pylist())) for name in opened.views}


def test_what_is_lost_is_recomputed_by_other_shards_than_wrote_it(quick: SparkSession, tmp_path: Path) -> None:
    calm, house = House(quick, tmp_path / "calm", 2), House(quick, tmp_path / "house", 2)
    history = changes(2, 4)
    undisturbed = calm.start(2)
    for change in history:
        calm.feed(change)
        undisturbed.step()
    undisturbed.close()
    for epoch, change in enumerate(history, start=1):
        stepping = house.start(house.chance.choice((None, 2, 3)))
        stepping.rescaling.ask(house.chance.choice((stepping.shards, 1, 4)))
        house.feed(change)
        assert stepping.step() is not None
        if house.chance.random() < 0.5:
            stepping.merger.merge_all(stepping.image, lambda layer, journal=stepping.journal: journal.append(Merged(layer)))  # type: ignore[misc]
        stepping.close()
        assert house.contents(epoch) == calm.contents(epoch)
        house.lose_some()
    house.start(3).close()
    assert house.recomputed > 10
    for epoch in range(1, len(history) + 1):
        try:
            assert house.contents(epoch) == calm.contents(epoch), epoch
        except ns.NotInHistory:
            assert epoch < len(history)


def test_a_run_is_rescaled_while_it_goes_on_and_a_home_while_it_rests(quick: SparkSession, tmp_path: Path) -> None:
    flow, source = ns.Flow("live", quick), ns.memory("k int, v int")
    flow.source("s", source)
    flow.sql("create view sums as select k, sum(v) v from s group by k")
    with flow.start(tmp_path, shards=2) as run:
        source.add([(k, 1) for k in range(100)])
        run.processAllAvailable()
        assert run.rescale(8) == 2
        assert run.status.shards == 8
        source.add([(k, 1) for k in range(100)])
        run.processAllAvailable()
        assert run.view("sums").where("v = 2").count() == 100 == run.view("sums", at=1).where("v = 1").count()
        with pytest.raises(ns.Invalid, match="shards=0 is not possible"):
            run.rescale(0)
    with pytest.raises(ns.Conflict, match="the run has ended"):
        run.rescale(3)
    with flow.start(tmp_path, shards="auto") as run:
        assert run.status.shards == 8
    image = ns.open(tmp_path).image
    (trace,) = image.newest
    ranges = {layer.range for layer in image.layers() if layer.lower == 2}
    assert ranges == set(shard_ranges(8)) and len(image.newest[trace]) == 8


def test_an_engine_takes_nothing_along_that_was_prepared_for_other_shards(quick: SparkSession, tmp_path: Path) -> None:
    flow, source = ns.Flow("prepared", quick), ns.memory("k int, v int")
    flow.source("s", source)
    flow.sql("create view rows as select k, v from s where v > 0")
    stepping = begin(flow.program(), tmp_path, 2).recover()
    try:
        for number in range(3):
            source.add([(k, number + 1) for k in range(40)])
            stepping.step()
        source.add([(k, 9) for k in range(40)])
        opened = stepping.epochs._open(stepping.image.epoch + 1)
        assert opened is not None
        stepping.engine.prepare(opened)
        assert stepping.rescaling.ask(3) == 4
        stepping.step()
        written = {layer.range for layer in stepping.image.layers() if layer.lower == 4}
        assert written <= set(shard_ranges(3))
        assert quick.conf.get("spark.sql.shuffle.partitions") != "3" == stepping.engine.session.conf.get("spark.sql.shuffle.partitions")
    finally:
        stepping.close()
    assert ns.open(tmp_path).view("rows").num_rows == 160
    assert Rescaled(4, 3, 0.0).shards == ns.open(tmp_path).status.shards
