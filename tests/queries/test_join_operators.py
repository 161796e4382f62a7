"""Joins as operators: shared where equal, run once, and blind to the cut into epochs, to restarts, shards and merging."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import nosync as ns
from nosync.compile.rules.join import JoinNode
from nosync.spark import job
from nosync.spark.receipts import Receipt, agreed
from tests.metamorphic import checksums, contents, run_all

QUERIES = {
    "pairs": "select a.k, x, y from a join b on a.k = b.k",
    "again": "select a.k, x + y as z from a join b on a.k = b.k",
    "kept": "select a.k, x, y from a full join b on a.k = b.k and x < y",
    "seen": "select k, x, exists (select 1 from b where b.k = a.k) as e from a",
    "counts": "select k, count(*) as n from a group by k",
    "twins": "select l.k, l.n, r.k as other from counts l left join counts r on l.n = r.n and l.k < r.k",
    "few": "select * from a where x * 10 > (select avg(y) from b) and k not in (select k from b where y > 90)",
}
ROWS = {"a": [(n % 7, n % 11) for n in range(60)], "b": [(n % 5 or None, n) for n in range(0, 100, 4)]}


def declared(spark: SparkSession) -> tuple[ns.Flow, dict[str, Any]]:
    flow, schemas = ns.Flow("joins", spark), {"a": "k int, x int", "b": "k int, y int"}
    sources = {name: ns.memory(schema, removals=True) for name, schema in schemas.items()}
    for name, source in sources.items():
        flow.source(name, source, checked=False)
    for name, query in QUERIES.items():
        flow.sql(f"create view {name} as {query}")
    return flow, sources


def fed(spark: SparkSession, home: Path, cuts: int, **knobs: Any) -> dict[str, list[str]]:
    """All rows, in so many epochs; after a restart every other one goes, in as many."""
    for adding in (True, False):
        flow, sources = declared(spark)

        def feed(cut: int, adding: bool = adding, sources: dict[str, Any] = sources) -> None:
            for name, rows in ROWS.items():
                (sources[name].add if adding else sources[name].remove)(rows[:: 1 if adding else 2][cut::cuts])

        run_all(flow, home, [lambda cut=cut, feed=feed: feed(cut) for cut in range(cuts)], **knobs)
    return contents(home)


def test_epochs_shards_and_merging_do_not_matter(quick: SparkSession, tmp_path: Path) -> None:
    whole = fed(quick, tmp_path / "one", 1, shards=2)
    assert all(whole.values())
    assert fed(quick, tmp_path / "merged", 2, shards=3, merged=True) == whole
    merged = {layer.trace for layer in ns.open(tmp_path / "merged").image.layers() if layer.upper > layer.lower + 1}
    assert merged >= {"pairs/join/left", "pairs/join/right", "kept/matches-2"}


def test_equal_joins_are_one_operator_and_each_runs_once(quick: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    handed_in: list[Receipt] = []

    def spy(receipts: list[Receipt]) -> list[Receipt]:
        handed_in.extend(receipts)
        return agreed(receipts)

    monkeypatch.setattr(job, "agreed", spy)
    flow, _ = declared(quick)
    names = [operator.name for operator in flow._compiler.graph.operators if isinstance(operator, JoinNode)]
    assert "pairs/join" in names and not any(name.startswith("again/") for name in names)
    fed(quick, tmp_path, 1, shards=3)
    runs = [(receipt.trace, receipt.shard, receipt.epoch) for receipt in handed_in]
    assert len(runs) == len(set(runs)) and {"pairs/join/left", "twins/join/right", "few/rows"} <= {trace for trace, _, _ in runs}


def test_a_program_that_takes_the_column_of_the_other_side_has_changed(quick: SparkSession, tmp_path: Path) -> None:
    def run(side: int) -> None:
        flow, source = ns.Flow("sides", quick), ns.memory("k int, x int")
        one = flow.source("s", source)
        other = flow.source("r", ns.memory("k int, x int"))
        flow.view("v", one.join(other, one.k == other.k).select((one, other)[side].x))
        run_all(flow, tmp_path, [lambda: source.add([(1, 1)])])

    run(0)
    run(0)
    with pytest.raises(ns.Invalid, match="the program has changed"):
        run(1)


def test_a_side_that_cannot_have_changed_is_not_computed(quick: SparkSession, tmp_path: Path) -> None:
    flow, sources = declared(quick)
    run_all(flow, tmp_path, [lambda: [sources[name].add(ROWS[name]) for name in sources], lambda: sources["a"].add([(1, 1)])], shards=2)
    written = {trace for trace, _, epoch in checksums(tmp_path) if epoch == 2}
    assert "pairs/join/left" in written and "pairs/rows" in written and "pairs/join/right" not in written
