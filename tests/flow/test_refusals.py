"""Mistakes in a program: an error of ours at declaration or start, whose first line says what to change. No Java stack trace."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StatefulProcessor

import nosync as ns


@pytest.fixture
def flow(spark: SparkSession) -> ns.Flow:
    return ns.Flow("shop", spark)


@pytest.fixture
def rows(flow: ns.Flow) -> DataFrame:
    return flow.source("s", ns.memory("k string, x int, at timestamp"))


def first_line(error: pytest.ExceptionInfo[ns.NosyncError]) -> str:
    text = str(error.value)
    assert "\tat " not in text and "java." not in text.splitlines()[0] and "Py4J" not in text
    return text.splitlines()[0]


CLOCKS_AND_CHANCE = ["rand()", "uuid()", "current_timestamp()", "now()", "current_date()", "monotonically_increasing_id()", "randn()",
                     "localtimestamp()", "unix_timestamp()", "curdate()", "shuffle(array(1, 2))"]


@pytest.mark.parametrize("expression", CLOCKS_AND_CHANCE)
def test_an_answer_that_changes_with_every_run_is_refused(flow: ns.Flow, rows: DataFrame, expression: str) -> None:
    with pytest.raises(ns.Refused) as error:
        flow.view("v", rows.select("k", F.expr(expression)))
    assert 'view "v"' in first_line(error) and error.value.hint


def test_an_undeclared_nondeterministic_function_is_refused(flow: ns.Flow, rows: DataFrame) -> None:
    with pytest.raises(ns.Refused) as error:
        flow.view("v", rows.select(F.udf(lambda x: x, "int").asNondeterministic()("x")))
    assert "not deterministic" in first_line(error)


class Processor(StatefulProcessor):
    """A program of Spark's arbitrary stateful processing."""

    def init(self, handle: Any) -> None: ...

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
        yield from rows

    def close(self) -> None: ...


def with_state(key: Any, rows: Any, state: Any) -> Iterator[Any]:
    yield from rows


PIECES: dict[str, Callable[[DataFrame], DataFrame]] = {
    "a sample": lambda rows: rows.sample(0.5, seed=1),
    "mapInPandas": lambda rows: rows.mapInPandas(lambda batches: batches, "k string, x int, at timestamp"),
    "transformWithState": lambda rows: rows.groupBy("k").transformWithState(Processor(), "k string, x int", "Update", "None"),
    "transformWithState,": lambda rows: rows.groupBy("k").transformWithStateInPandas(Processor(), "k string, x int", "Update", "None"),
    "applyInPandasWithState": lambda rows: rows.groupBy("k").applyInPandasWithState(
        with_state, "k string, x int", "n int", "update", "NoTimeout"
    ),
    "mapInArrow": lambda rows: rows.mapInArrow(lambda batches: batches, "k string, x int, at timestamp"),
}


@pytest.mark.parametrize("piece", PIECES)
def test_what_cannot_be_maintained_yet_is_named_with_a_way_out(flow: ns.Flow, rows: DataFrame, piece: str) -> None:
    with pytest.raises(ns.Refused) as error:
        flow.view("v", PIECES[piece](rows))
    assert f'view "v" uses {piece}' in first_line(error) and error.value.hint


def test_a_subquery_where_no_column_can_take_its_place_is_refused(flow: ns.Flow, rows: DataFrame) -> None:
    with pytest.raises(ns.Refused) as error:
        flow.sql("create view v as select explode(sequence(1, (select max(x) from s))) from s")
    assert 'view "v"' in first_line(error)


def test_drop_duplicates_is_taken_as_spark_takes_it_in_batch(flow: ns.Flow, rows: DataFrame) -> None:
    flow.view("v", rows.dropDuplicates(["k"]))  # an aggregate
    assert [view.schema for view in flow._compiler.graph.views.values()] == [rows.schema]


@pytest.mark.parametrize(
    ("late", "words"),
    [
        (lambda rows, view: rows.withWatermark("at", "2 hours"), 'source "s" has a watermark already ("at", 3600 seconds)'),
        (lambda rows, view: rows.withWatermark("x", "1 hour"), "the column is int, not a timestamp"),
        (lambda rows, view: rows.where("x > 0").withWatermark("at", "1 hour"), "some rows of the source were left out, (x > 0)"),
        (lambda rows, view: rows.withWatermark("nope", "1 hour"), "no such column, or several"),
        (lambda rows, view: rows.select(F.struct("at").alias("s")).withWatermark("s.at", "1 hour"), "the time is inside of another column"),
        (lambda rows, view: view.withWatermark("at", "1 hour"), 'the column is one of view "v", not of a source'),
        (lambda rows, view: rows.groupBy("at").count().withWatermark("at", "1 hour"), "any more, but behind Aggregate"),
        (lambda rows, view: rows.withColumn("at", F.col("at") + F.expr("interval 1 day")).withWatermark("at", "1 hour"), "is computed"),
        (lambda rows, view: rows.withWatermark("at", "soon"), '"soon"'),
    ],
)
def test_a_watermark_that_cannot_be_is_refused_where_it_is_said(flow: ns.Flow, rows: DataFrame, late: Any, words: str) -> None:
    view = flow.view("v", rows.withWatermark("at", "1 hour").select("at", "x"))
    with pytest.raises(ns.Invalid) as error:
        late(rows, view)
    assert words in first_line(error)


def test_a_watermark_in_sql_is_refused_and_one_without_a_flow_is_sparks(flow: ns.Flow, rows: DataFrame, spark: SparkSession) -> None:
    with pytest.raises(ns.Refused, match="a watermark in SQL"):
        flow.sql("create view v as select * from s watermark at delay of interval 5 minutes")
    flow.sql("create view w as select 'a watermark has a delay of 5' as words, k from s -- watermark at delay of 1")
    static = spark.createDataFrame([], "at timestamp")
    assert static.withWatermark("at", "1 hour").collect() == []


def test_a_dataframe_of_another_flow_or_of_an_earlier_declaration_is_refused(flow: ns.Flow, rows: DataFrame, spark: SparkSession) -> None:
    again = ns.Flow(flow.name, spark)
    mine = again.source("s", ns.memory(rows.schema))
    for query in (rows, rows.groupBy("k").count(), mine.join(rows, "k", "left_anti"), flow.view("v", rows.select("k"))):
        with pytest.raises(ns.Refused) as error:
            again.view("w", query)
        assert f'view "w" reads a DataFrame of another declaration of flow "{flow.name}"' in first_line(error)


def test_a_home_that_is_no_folder_is_refused(flow: ns.Flow, rows: DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ns.Invalid, match='home="s3://bucket/state" is no folder of this machine'):
        flow.start(home="s3://bucket/state")
    assert list(tmp_path.iterdir()) == []


def test_a_cached_dataframe_of_a_source_is_refused(flow: ns.Flow, rows: DataFrame) -> None:
    cached = rows.select("k").cache()
    try:
        with pytest.raises(ns.Refused, match="reads a cached DataFrame"):
            flow.view("v", cached.groupBy("k").count())
    finally:
        cached.unpersist()


def test_what_is_declared_while_the_flow_runs_is_refused(flow: ns.Flow, rows: DataFrame, tmp_path: Path) -> None:
    flow.view("v", rows.select("k"))
    with flow.start(home=tmp_path, shards=1):
        for declare in (lambda: flow.view("w", rows), lambda: flow.sink("out", rows, ns.console()), lambda: flow.source("t", ns.rate())):
            with pytest.raises(ns.Conflict, match="is running"):
                declare()
    flow.view("w", rows)


def test_a_key_with_a_collation_is_refused(flow: ns.Flow, rows: DataFrame) -> None:
    with pytest.raises(ns.Refused) as error:
        flow.view("v", rows.groupBy(F.collate("k", "UTF8_LCASE")).count())
    assert "collation" in first_line(error)


def test_a_refused_view_leaves_the_flow_as_it_was(flow: ns.Flow, rows: DataFrame, tmp_path: Path) -> None:
    with pytest.raises(ns.Refused):
        flow.view("v", rows.groupBy("k").count().sample(0.5, seed=1))
    flow.view("v", rows.groupBy("k").count())
    assert list(flow._compiler.graph.views) == ["v"] and len(flow._compiler.graph.operators) == 1


def test_an_unknown_column_in_sql_is_named(flow: ns.Flow, rows: DataFrame) -> None:
    with pytest.raises(ns.Invalid) as error:
        flow.sql("create view v as select prize from s")
    assert "prize" in first_line(error)


def test_an_unknown_table_is_named_beside_those_there_are(flow: ns.Flow, rows: DataFrame) -> None:
    with pytest.raises(ns.Invalid) as error:
        flow.sql("select * from ordres")
    assert "ordres" in first_line(error) and "s" in error.value.hint


def test_a_wrong_type_is_named(flow: ns.Flow, rows: DataFrame) -> None:
    with pytest.raises(ns.Invalid) as error:
        flow.sql("create view v as select sum(array(x)) from s")
    assert "sum" in first_line(error)


def test_a_name_is_used_once(flow: ns.Flow, rows: DataFrame) -> None:
    flow.view("v", rows)
    with pytest.raises(ns.Invalid, match='already has a source, view or sink "v"'):
        flow.view("v", rows)
    with pytest.raises(ns.Invalid, match='already has a source, view or sink "s"'):
        flow.source("s", ns.memory("x int"))


def test_a_view_must_be_a_dataframe(flow: ns.Flow) -> None:
    with pytest.raises(ns.Invalid, match="not a DataFrame"):
        flow.view("v", [1, 2])  # type: ignore[arg-type]


def test_a_missing_folder_is_named(flow: ns.Flow, tmp_path: Path) -> None:
    with pytest.raises(ns.Invalid) as error:
        flow.source("orders", ns.files(tmp_path / "nowhere", format="csv", schema="x int"))
    assert "nowhere" in first_line(error) and '"orders"' in first_line(error)


def test_a_schema_that_cannot_be_read_is_quoted(flow: ns.Flow, tmp_path: Path) -> None:
    with pytest.raises(ns.Invalid) as error:
        flow.source("orders", ns.files(tmp_path, format="csv", schema="x nonsense"))
    assert "x nonsense" in first_line(error)


def test_a_folder_without_files_needs_a_schema(flow: ns.Flow, tmp_path: Path) -> None:
    with pytest.raises(ns.Invalid) as error:
        flow.source("orders", ns.files(tmp_path))
    assert "schema" in first_line(error)


@pytest.mark.parametrize("options", [{"format": "xml"}, {"maxFilesPerTrigger": 0}])
def test_impossible_settings_of_files_are_refused_at_once(tmp_path: Path, options: dict[str, object]) -> None:
    with pytest.raises(ns.Invalid):
        ns.files(tmp_path, schema="x int", **options)  # type: ignore[arg-type]


def test_rows_that_do_not_fit_are_the_givers_error(flow: ns.Flow) -> None:
    source = ns.memory("k string, x int")
    flow.source("m", source)
    with pytest.raises(ns.Invalid, match=r'source "m": the row .* does not fit the schema: x='):
        source.add([("a", "not a number")])


def test_a_flow_without_sources_does_not_start(flow: ns.Flow, tmp_path: Path) -> None:
    with pytest.raises(ns.Invalid, match="has no source"):
        flow.start(home=tmp_path)


@pytest.mark.parametrize("trigger", [{"processingTime": "soon"}, {"once": True}, {"availableNow": False}])
def test_a_trigger_that_is_not_understood_is_quoted(flow: ns.Flow, rows: DataFrame, tmp_path: Path, trigger: dict[str, object]) -> None:
    with pytest.raises(ns.Invalid, match=r'is not understood|"soon" is not a time between epochs'):
        flow.start(home=tmp_path, trigger=trigger)


def test_what_is_no_source_or_sink_is_refused_when_it_is_declared(flow: ns.Flow, rows: DataFrame) -> None:
    class Untyped(type(ns.memory("x int"))):  # type: ignore[misc]
        def declare(self, name: str, spark: SparkSession) -> Any:
            return "x int"

    for source, words in [(rows, "is a DataFrame that does not stream"), (Untyped("x int"), "declare gave a str")]:
        with pytest.raises(ns.Invalid) as error:
            flow.source("other", source)  # type: ignore[arg-type]
        assert 'source "other"' in first_line(error) and words in first_line(error)
    with pytest.raises(ns.Invalid) as error:
        flow.sink("out", rows, object())  # type: ignore[arg-type]
    assert 'sink "out" is a object, which has no open()' in first_line(error)
