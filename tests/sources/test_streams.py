"""Spark's own streams as sources: read by recorded offsets, again after a restart and on another host; files as folders."""

import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.types import StructType

import nosync as ns
from tests.crash.waiting import until
from tests.sources.test_sources import names, slices_of, write


class Numbers(DataSource):
    """0, 1, 2 and so on, three an offset, up to `last`."""

    @classmethod
    def name(cls) -> str:
        return "numbers"

    def schema(self) -> str:
        return "x int, at timestamp"

    def simpleStreamReader(self, schema: StructType) -> SimpleDataSourceStreamReader:
        return NumbersReader(int(self.options["last"]))


class NumbersReader(SimpleDataSourceStreamReader):
    def __init__(self, last: int) -> None:
        self.last = last

    def initialOffset(self) -> dict[str, int]:
        return {"n": 0}

    def read(self, start: dict[str, int]) -> tuple[Iterator[Any], dict[str, int]]:
        end = {"n": min(start["n"] + 3, self.last)}
        return self.readBetweenOffsets(start, end), end

    def readBetweenOffsets(self, start: dict[str, int], end: dict[str, int]) -> Iterator[Any]:
        from datetime import UTC, datetime

        return iter([(n, datetime.fromtimestamp(60 * n, UTC)) for n in range(start["n"], end["n"])])


@pytest.fixture
def numbers(quick: SparkSession) -> Any:
    quick.dataSource.register(Numbers)
    return lambda last: quick.readStream.format("numbers").option("last", last).load()


def test_a_stream_goes_on_where_it_stopped_and_is_read_again_by_its_offsets(quick: SparkSession, tmp_path: Path, numbers: Any) -> None:
    home = tmp_path / "home"

    def flow(last: int) -> ns.Flow:
        flow = ns.Flow("numbers", quick)
        rows = flow.source("s", numbers(last).where("x % 2 = 0").withColumn("y", F.col("x") * 10))
        flow.view("sums", rows.groupBy().agg(F.sum("y").alias("y"), F.count("*").alias("n")))
        flow.sql("create view rows as select x, y from s")
        return flow

    with flow(5).start(home, shards=1) as run:
        run.processAllAvailable()
        assert sum(found["numInputRows"] for found in run.recentProgress) == 5
    first = slices_of(home)
    assert [(slice["start"], slice["end"]) for slice in first] == [('{"n": 0}', '{"n": 3}'), ('{"n": 3}', '{"n": 5}')]
    for layer in home.glob("layers/**/*.arrow"):
        layer.unlink()
    with flow(8).start(home) as run:
        assert run.recovered.recomputed_epochs == 2
        run.processAllAvailable()
        assert sorted(row.x for row in run.view("rows").collect()) == [0, 2, 4, 6]
        assert [tuple(row) for row in run.view("sums").collect()] == [(120, 4)]
    assert slices_of(home)[:2] == first


def test_a_stream_without_a_name_is_a_source_named_after_what_it_reads(quick: SparkSession, tmp_path: Path) -> None:
    """Three rows an epoch, all of one time; each epoch is a minute later."""
    reader = quick.readStream.format("rate-micro-batch").option("rowsPerBatch", 3).option("startTimestamp", 0)
    flow, stream = ns.Flow("unnamed", quick), reader.option("advanceMillisPerBatch", 60_000).load().withColumnRenamed("value", "x")
    late = stream.withWatermark("timestamp", "1 minute").groupBy(F.window("timestamp", "2 minutes")).count()
    flow.view("windows", late.select("window.start", "count"), emit="final")
    flow.view("pairs", stream.alias("a").join(stream.alias("b"), F.expr("a.x = b.x + 1")).select("a.x"))
    with flow.start(tmp_path / "home", shards=1) as run:
        until(lambda: run.epoch >= 5, instead=lambda: run.status)
        assert [source["description"] for source in run.recentProgress[0]["sources"]] == ["rate-micro-batch"]
        assert sorted(row.x for row in run.view("pairs", at=4).collect()) == list(range(1, 12))
        assert [row["count"] for row in run.view("windows", at=5).collect()] == [6]  # of the minutes 0 and 1; 3 has come before epoch 5


def test_what_a_stream_remembers_goes_with_its_slices(quick: SparkSession, tmp_path: Path) -> None:
    """Spark's rate source keeps the time at which it began in its checkpoint."""
    import shutil

    def flow() -> ns.Flow:
        flow = ns.Flow("rate", quick)
        rows = flow.source("s", quick.readStream.format("rate").option("rowsPerSecond", 50).load())
        flow.view("v", rows)
        return flow

    def rows_of(run: ns.Run) -> list[Any]:
        return sorted((row.value, row.timestamp) for row in run.view("v", at=1).collect())

    home = tmp_path / "home"
    with flow().start(home, shards=1) as run:
        until(lambda: run.epoch >= 1, instead=lambda: run.status)
        before = rows_of(run)
    shutil.rmtree(home / "input")
    for layer in home.glob("layers/**/*.arrow"):
        layer.unlink()
    with flow().start(home) as run:
        assert rows_of(run) == before


def test_a_stream_of_files_is_a_folder_with_the_same_options(quick: SparkSession, tmp_path: Path) -> None:
    folder, home = tmp_path / "in", tmp_path / "home"
    for name in "abc":
        write(folder, name, "json", [ord(name)])
    stream = quick.readStream.format("json").schema("x int, name string").option("maxFilesPerTrigger", 2)
    flow = ns.Flow("files", quick)
    flow.source("s", stream.load(str(folder)))
    flow.sql("create view v as select * from s")
    with flow.start(home, shards=1) as run:
        run.processAllAvailable()
    assert names(home) == ["n97", "n98", "n99"]
    assert [[file[0] for file in slice["files"]] for slice in slices_of(home)] == [["a", "b"], ["c"]]


def test_a_stream_of_the_older_interface_gets_an_input_log(quick: SparkSession, tmp_path: Path) -> None:
    """Binary files have no other one in Spark. What was taken is neither read again by another run, nor lost with what it was read from."""
    import shutil

    folder, home = tmp_path / "in", tmp_path / "home"
    folder.mkdir()

    def add(*names: str) -> None:
        for name in names:
            (folder / name).write_bytes(name.encode())

    def flow() -> ns.Flow:
        flow = ns.Flow("older", quick)
        reader = quick.readStream.format("binaryFile").option("maxFilesPerTrigger", 2)
        stream = reader.schema("path string, modificationTime timestamp, length bigint, content binary").load(str(folder))
        rows = flow.source("s", stream.select(F.col("content").cast("string").alias("x"), "length"))
        flow.view("v", rows.groupBy("x").agg(F.count("*").alias("n"), F.sum("length").alias("length")))
        return flow

    def counted(run: ns.Run) -> list[tuple[Any, ...]]:
        run.processAllAvailable()
        return sorted(tuple(row) for row in run.view("v").collect())

    add("a", "bb", "ccc")
    with flow().start(home, shards=1) as run:
        assert counted(run) == [("a", 1, 1), ("bb", 1, 2), ("ccc", 1, 3)]
        assert run.epoch == 2
    for layer in home.glob("layers/**/*.arrow"):
        layer.unlink()
    for name in ("a", "bb", "ccc"):
        (folder / name).unlink()
    add("dd")
    with flow().start(home) as run:
        assert run.recovered.recomputed_epochs == 2
        assert counted(run) == [("a", 1, 1), ("bb", 1, 2), ("ccc", 1, 3), ("dd", 1, 2)]
    shutil.rmtree(home / "input" / "s" / "stream")
    with pytest.raises(ns.Invalid, match="has what it remembers in"), flow().start(home) as run:
        run.processAllAvailable()


def test_a_stream_that_forgets_gets_an_input_log(quick: SparkSession, tmp_path: Path) -> None:
    home = tmp_path / "home"
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def serve() -> None:
            for text in (b"a\nb\n", b"c\n"):
                connection = server.accept()[0]
                connection.sendall(text)
                talking.append(connection)

        talking: list[socket.socket] = []
        thread = threading.Thread(target=serve)
        thread.start()

        def flow() -> ns.Flow:
            flow = ns.Flow("lines", quick)
            flow.view("v", flow.source("s", quick.readStream.format("socket").option("host", "127.0.0.1").option("port", port).load()))
            return flow

        for expected in (["a", "b"], ["a", "b", "c"]):
            with flow().start(home, shards=1) as run:
                until(lambda run=run, expected=expected: sorted(row.value for row in run.view("v").collect()) == expected)
        thread.join()
        for connection in talking:
            connection.close()


@pytest.mark.parametrize("wrong", ["static", "two", "keyed", "latest"])
def test_what_cannot_be_taken_says_so_at_declaration(quick: SparkSession, tmp_path: Path, wrong: str) -> None:
    files, rate = quick.readStream.format("text"), quick.readStream.format("rate")
    flow = ns.Flow("wrong", quick)
    given: dict[str, tuple[DataFrame, dict[str, Any], str]] = {
        "static": (quick.range(3).toDF("x"), {}, "does not stream"),
        "two": (rate.load().join(rate.load(), "value"), {}, "reads 2 streams"),
        "keyed": (rate.load().where("value > 1"), {"key": "value"}, "is a query over a stream"),
        "latest": (files.option("latestFirst", "true").load(str(tmp_path)), {}, "latestfirst"),
    }
    frame, more, words = given[wrong]
    with pytest.raises(ns.Invalid, match=words):
        flow.source("s", frame, **more)
