"""What stops a running flow, and how it goes on: state stays at the last whole epoch, the corrected program resumes."""

import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import nosync as ns


def declared(spark: SparkSession, function: Callable[[int], int]) -> tuple[ns.Flow, Any]:
    flow = ns.Flow("shop", spark)
    source = ns.memory("k string, x int")
    rows = flow.source("s", source)
    flow.view("plain", rows.groupBy("k").count())
    flow.view("inverse", rows.select("k", F.udf(function, "int")("x").alias("y")))
    return flow, source


def test_a_function_that_raises_stops_the_flow_naming_view_epoch_and_its_own_lines(quick: SparkSession, tmp_path: Path) -> None:
    def inverse(x: int) -> int:
        return 12 // x

    flow, source = declared(quick, inverse)
    run = flow.start(home=tmp_path, shards=2)
    source.add([("a", 3)])
    run.processAllAvailable()
    source.add([("a", 4), ("b", 0)])
    with pytest.raises(ns.Failed) as error:
        run.processAllAvailable()
    text = str(error.value)
    assert text.splitlines()[0] == 'a function in view "inverse" raised an error in epoch 2:'
    assert "return 12 // x" in text and "ZeroDivisionError" in text and "\tat " not in text and "pyspark/worker" not in text
    assert not run.isActive and run.exception() is error.value and run.epoch == 1
    home = ns.open(tmp_path)
    assert home.view("inverse").to_pylist() == [{"k": "a", "y": 4}]

    def corrected() -> Callable[[int], int]:
        def inverse(x: int) -> int:
            return 12 // x if x else 0

        return inverse

    flow, source = declared(quick, corrected())
    with flow.start(home=tmp_path) as run:
        run.processAllAvailable()
        assert run.epoch == 2
        assert sorted(map(tuple, run.view("inverse").collect())) == [("a", 3), ("a", 4), ("b", 0)]
        assert sorted(map(tuple, run.view("plain").collect())) == [("a", 2), ("b", 1)]


def test_the_lines_of_a_function_are_shown_wherever_its_file_lies(quick: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "a nosync of pyspark" / "pyspark" / "nosync"
    folder.mkdir(parents=True)
    program = folder / "shop.py"
    program.write_text("def inverse(x):\n    return 12 // x\n")
    names: dict[str, Any] = {}
    exec(compile(program.read_text(), program, "exec"), names)
    flow, source = declared(quick, names["inverse"])
    run = flow.start(home=tmp_path / "home")
    source.add([("a", 0)])
    with pytest.raises(ns.Failed, match="ZeroDivisionError") as error:
        run.processAllAvailable()
    lines = str(error.value).splitlines()
    assert lines[0] == 'a function in view "inverse" raised an error in epoch 1:'
    assert f'  File "{program}", line 2, in inverse' in lines and "    return 12 // x" in lines
    assert len([line for line in lines if line.startswith("  File ")]) == 1


def test_an_expression_that_fails_on_the_data_is_reported_in_one_line(quick: SparkSession, tmp_path: Path) -> None:
    flow = ns.Flow("shop", quick)
    source = ns.memory("x int")
    flow.view("v", flow.source("s", source).select(F.expr("10 / x")))
    run = flow.start(home=tmp_path)
    source.add([(0,)])
    with pytest.raises(ns.Failed) as error:
        run.processAllAvailable()
    first = str(error.value).splitlines()[0]
    assert 'epoch 1 failed in view "v"' in first and "DIVIDE_BY_ZERO" in first and "SQLSTATE" not in first
    assert "\tat " not in str(error.value) and "java." not in first
    printed = "".join(traceback.format_exception(error.value))
    assert "loop.py" not in printed and len(printed.splitlines()) < 20, printed


def test_a_sum_that_overflows_is_reported_in_one_line(quick: SparkSession, tmp_path: Path) -> None:
    flow = ns.Flow("shop", quick)
    source = ns.memory("x bigint")
    rows = flow.source("s", source)
    flow.view("total", rows.groupBy().agg(F.sum("x").alias("t")).selectExpr("t % 10 as t"))
    run = flow.start(home=tmp_path)
    source.add([(2**62,), (2**62,)])
    with pytest.raises(ns.Failed) as error:
        run.processAllAvailable()
    assert "overflow" in str(error.value).splitlines()[0] and "\tat " not in str(error.value)


def test_a_kept_sum_that_overflows_is_an_error_for_its_reader_until_it_fits_again(quick: SparkSession, tmp_path: Path) -> None:
    flow = ns.Flow("shop", quick)
    source = ns.memory("x bigint", removals=True)
    flow.view("total", flow.source("s", source).agg(F.sum("x").alias("t")))
    with flow.start(home=tmp_path) as run:
        source.add([(2**62,), (2**62,)])
        run.processAllAvailable()
        with pytest.raises(ns.Failed, match="overflows"):
            ns.open(tmp_path).view("total").to_arrow()
        source.remove([(2**62,)])
        run.processAllAvailable()
    assert ns.open(tmp_path).view("total").to_pylist() == [{"t": 2**62}]


def test_a_second_run_on_a_home_fences_the_first(quick: SparkSession, tmp_path: Path) -> None:
    flow, source = declared(quick, lambda x: x)
    first = flow.start(home=tmp_path)
    with declared(quick, lambda x: x)[0].start(home=tmp_path) as second:
        source.add([("a", 1)])
        with pytest.raises(ns.Fenced, match=f"process {os.getpid()} on .* took this flow over"):
            first.awaitTermination(60)
        assert not first.isActive and second.isActive


def test_a_second_process_on_a_home_fences_the_first(quick: SparkSession, tmp_path: Path) -> None:
    code = f"""
from pathlib import Path
from nosync.journal.journal import Journal
from nosync.model.run import this_process
from nosync.store.disk import LocalDisk
Journal(LocalDisk(Path({str(tmp_path)!r})), None, this_process(0.0))
"""
    flow, source = declared(quick, lambda x: x)
    run = flow.start(home=tmp_path)
    subprocess.run([sys.executable, "-c", code], check=True)
    source.add([("a", 1)])
    with pytest.raises(ns.Fenced, match="took this flow over"):
        run.awaitTermination(60)


def changed(spark: SparkSession, name: str, query: str, rows: Sequence[tuple[str, int]] = ()) -> ns.Flow:
    flow = ns.Flow(name, spark)
    source = ns.memory("k string, x int")
    flow.source("s", source)
    source.add(rows)
    flow.sql(f"create view v as {query}")
    return flow


@pytest.mark.parametrize(
    ("name", "query", "words"),
    [
        ("shop", "select k, max(x) from s group by k", "the program has changed"),
        ("shop", "select k, sum(x) from s where x > 0 group by k", "the program has changed"),
        ("store", "select k, sum(x) from s group by k", 'belongs to flow "shop"'),
    ],
)
def test_a_changed_program_is_an_error_that_says_what_changed(
    quick: SparkSession, tmp_path: Path, name: str, query: str, words: str
) -> None:
    once = {"availableNow": True}
    changed(quick, "shop", "select k, sum(x) from s group by k", [("a", 1)]).start(tmp_path, 2, once).awaitTermination()
    with pytest.raises(ns.Invalid) as error:
        changed(quick, name, query).start(home=tmp_path, shards=2)
    assert words in str(error.value).splitlines()[0]
    changed(quick, "shop", "select k, sum(x) from s group by k").start(home=tmp_path).stop()  # the home is free again


def test_an_aggregate_that_fails_over_no_rows_runs_over_some(quick: SparkSession, tmp_path: Path) -> None:
    flow = ns.Flow("shop", quick)
    source = ns.memory("x int")
    flow.source("s", source)
    flow.sql("create view v as select element_at(sort_array(collect_list(x)), 1) as least from s")
    with flow.start(home=tmp_path) as run:
        source.add([(3,), (2,)])
        run.processAllAvailable()
    assert ns.open(tmp_path).view("v").to_pylist() == [{"least": 2}]


def test_an_epoch_that_is_not_kept_is_named_with_those_that_are(quick: SparkSession, tmp_path: Path) -> None:
    flow, source = declared(quick, lambda x: x)
    with flow.start(home=tmp_path) as run:
        source.add([("a", 1)])
        run.processAllAvailable()
        for reader in (run, ns.open(tmp_path)):
            with pytest.raises(ns.NotInHistory) as error:
                reader.view("plain", at=7)
            assert str(error.value) == 'epoch 7 of view "plain" is not there yet: the newest is 1\nAsk for epoch 1 to 1.'
        with pytest.raises(ns.Invalid, match='there is no view "plane"'):
            run.view("plane")


def test_a_flow_runs_once_at_a_time(quick: SparkSession, tmp_path: Path) -> None:
    flow = ns.Flow("once", quick)
    flow.view("all", flow.source("rows", ns.memory("x int")))
    with flow.start(home=tmp_path / "one", shards=1), pytest.raises(ns.Conflict, match='flow "once" is already running'):
        flow.start(home=tmp_path / "two", shards=1)
    flow.start(home=tmp_path / "two", shards=1).stop()
