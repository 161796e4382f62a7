"""One epoch is one job: each operator runs once per shard, whatever reads it, and failed tasks and stages change nothing."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import nosync as ns
from nosync.model.identifiers import TraceName
from nosync.model.layers import LayerInfo
from nosync.model.shards import shard_ranges
from nosync.runtime.starting import begin
from nosync.spark import job
from nosync.spark.descriptions import described
from nosync.spark.receipts import Receipt, agreed
from nosync.spark.ways import Ways
from tests.metamorphic import checksums, contents, run_all
from tests.spark.retried_job import run_job
from tests.ways import pinned

SHARDS = 3


def fan_out(spark: SparkSession) -> tuple[ns.Flow, Any]:
    flow = ns.Flow("fan", spark)
    source = ns.memory("k int, x int", removals=True)
    rows = flow.source("s", source, checked=False)
    first = flow.view("first", rows.groupBy("k").agg(F.sum("x").alias("t"), F.count("*").alias("n")))
    flow.view("big", first.where("t > 10"))
    flow.view("second", first.groupBy("n").agg(F.sum("t").alias("t")))
    flow.view("third", first.groupBy("t").agg(F.expr("mode(n, true)").alias("m")))
    flow.view("again", flow.view("fourth", first.agg(F.max("t").alias("most"))).select(F.col("most") + 1))
    return flow, source


def test_each_operator_runs_once_per_shard_and_epoch(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    handed_in: list[Receipt] = []

    def spy(receipts: list[Receipt]) -> list[Receipt]:
        handed_in.extend(receipts)
        return agreed(receipts)

    monkeypatch.setattr(job, "agreed", spy)
    flow, source = fan_out(spark)
    feeds = [lambda: source.add([(k, k) for k in range(20)]), lambda: source.add([(3, 100)]), lambda: source.remove([(3, 3), (4, 4)])]
    run_all(flow, tmp_path, feeds, shards=SHARDS, way="wide")
    assert described_jobs(spark, "fan") == {f"fan, epoch {epoch}: views first, big, second and 3 more" for epoch in (1, 2, 3)}
    runs = [(receipt.trace, receipt.shard, receipt.epoch) for receipt in handed_in]
    assert len(runs) == len(set(runs))
    assert {shard for trace, shard, epoch in runs if trace == "first/aggregate" and epoch == 1} == set(range(SHARDS))
    assert {trace for trace, _, _ in runs} >= {"first/aggregate", "big/rows", "second/aggregate", "third/regroup"}


def described_jobs(spark: SparkSession, flow: str) -> set[str]:
    """What Spark's UI says of the jobs of a flow."""
    context: Any = spark._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    jobs = context.statusStore().jobsList(None)
    said = [jobs.apply(index).description() for index in range(jobs.size())]
    return {one.get() for one in said if one.isDefined() and one.get().startswith(f"{flow}, ")}


def test_a_job_is_described_by_the_views_it_is_about(quick: SparkSession, tmp_path: Path) -> None:
    flow = ns.Flow("about", quick)
    rows = flow.source("s", ns.files(tmp_path, schema="k int, x int", format="json"))
    totals = flow.view("totals", rows.groupBy("k").agg(F.sum("x").alias("t")))
    flow.view("large", totals.where("t > 3"))
    flow.view("plain", rows.where("x > 3"))
    flow.sink("out", totals, ns.foreachEpoch(print))
    flow.view("wrong", flow.sql("select count(*) as n from `s.rejected`"))
    graph = flow.program().graph
    assert described(graph, None, rejects=False) == "views totals, large, plain; sink out"
    assert described(graph, None, rejects=True) == "views wrong, s.rejected"
    assert described(graph, {TraceName("totals/aggregate"): frozenset()}, rejects=False) == "views totals, large; sink out"


@pytest.mark.parametrize("stateful", [False, True])
def test_what_was_prepared_while_the_epoch_before_computed_is_not_read_again(
    quick: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stateful: bool
) -> None:
    flow, source = ns.Flow("ahead", quick), ns.memory("k int, x int", removals=True)
    rows = flow.source("s", source, checked=False)
    flow.view("v", rows.groupBy("k").agg(F.sum("x").alias("x")) if stateful else rows.where("x > 1"))
    program, reads = flow.program(), list[Any]()
    kept = program.sources["s"]
    program.sources["s"] = replace(kept, read=lambda session, slice: reads.append(slice) or kept.read(session, slice))
    stepping = begin(program, tmp_path, SHARDS).recover()
    stepping.engine.ways = Ways("wide")
    for epoch in (1, 2):
        source.add([(k, epoch) for k in range(9)])
        if epoch == 2:
            opened = stepping.epochs._open(epoch)
            assert opened is not None
            stepping.engine.prepare(opened)
            assert len(reads) == 2
        stepping.step()
    stepping.close()
    assert len(reads) == 2
    assert [len(rows) for rows in contents(tmp_path, at=2).values()] == [9]
    assert contents(tmp_path, at=1) != contents(tmp_path, at=2)


def test_an_epoch_that_changes_nothing_writes_no_file(spark: SparkSession, tmp_path: Path) -> None:
    flow, source = fan_out(spark)

    def nothing() -> None:
        source.add([(1, 5)])
        source.remove([(1, 5)])

    run_all(flow, tmp_path, [lambda: source.add([(1, 1)]), nothing], shards=SHARDS)
    assert ns.open(tmp_path).epoch == 2
    assert {epoch for _, _, epoch in checksums(tmp_path)} == {1}
    assert contents(tmp_path, at=1) == contents(tmp_path, at=2)


def receipt(checksum: str | None, shard: int = 0) -> Receipt:
    layer = LayerInfo("v/aggregate", shard_ranges(2)[shard], 4, 5, "upserts", "layers/x", 1, 1, checksum) if checksum else None
    return Receipt("v/aggregate", shard, 4, 10, layer)


def test_the_same_work_done_twice_counts_once() -> None:
    twice = replace(receipt("aa"), millis=9.0)
    assert agreed([receipt("aa"), twice, receipt("bb", shard=1)]) == [receipt("aa"), receipt("bb", shard=1)]


@pytest.mark.parametrize("other", ["bb", None])
def test_two_attempts_with_different_results_stop_the_flow(other: str | None) -> None:
    with pytest.raises(ns.Failed) as error:
        agreed([receipt("aa"), receipt(other)])
    assert 'trace "v/aggregate", shard 0' in str(error.value) and "not deterministic" in error.value.hint


def test_a_run_whose_attempts_disagree_ends_with_that_error(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def disagreeing(receipts: list[Receipt]) -> list[Receipt]:
        return agreed([*receipts, *(replace(r, layer=replace(r.layer, checksum="other")) for r in receipts if r.layer)])

    monkeypatch.setattr(job, "agreed", disagreeing)
    flow, source = fan_out(spark)
    with pinned(spark, "wide"):
        run = flow.start(home=tmp_path)
    source.add([(1, 1)])
    with pytest.raises(ns.Failed, match="gave different results"):
        run.processAllAvailable()
    assert ns.open(tmp_path).epoch == 0 and not run.isActive


@pytest.mark.slow
def test_tasks_and_stages_that_are_retried_change_nothing(quick: SparkSession, tmp_path: Path) -> None:
    calm, retried, flags = tmp_path / "calm", tmp_path / "retried", tmp_path / "flags"
    run_job(quick, str(calm), None)
    flags.mkdir()
    environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, str(Path(__file__).with_name("retried_job.py")), "local-cluster[2,1,1024]", str(retried), str(flags)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    assert {flag.name for flag in flags.iterdir()} == {"below", "above", "killed"}
    assert checksums(retried) == checksums(calm) != {}
    assert all(contents(retried, at=epoch) == contents(calm, at=epoch) for epoch in (1, 2, 3))


def test_a_view_and_what_is_built_on_it_come_back_together(spark: SparkSession, tmp_path: Path) -> None:
    def declared() -> tuple[ns.Flow, Any]:
        flow, source = ns.Flow("lost", spark), ns.memory("k int, x int", removals=True)
        small = flow.view("small", flow.source("s", source, checked=False).where("x < 9"))
        flow.view("sums", small.groupBy("k").agg(F.sum("x").alias("x")))
        return flow, source

    flow, source = declared()
    run_all(flow, tmp_path, [lambda: source.add([(k % 3, k) for k in range(12)]), lambda: source.remove([(1, 4)])], shards=SHARDS)
    before = contents(tmp_path)
    for layer in ns.open(tmp_path).image.layers():
        (tmp_path / layer.path).unlink()
    run_all(declared()[0], tmp_path, shards=SHARDS)
    assert before["small"] and contents(tmp_path) == before
