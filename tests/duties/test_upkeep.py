"""Behind the stream: input that nobody needs is let go, files that nobody names are swept, what cannot be read again is kept."""

import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

import nosync as ns
from nosync.model.errors import Invalid
from nosync.tiers.host import HostTier


def soon(condition: Callable[[], bool]) -> bool:
    """Whether it comes true within a minute."""
    until = time.monotonic() + 60
    while not condition() and time.monotonic() < until:
        time.sleep(0.02)
    return condition()


def written(folder: Path, number: int) -> None:
    folder.mkdir(exist_ok=True)
    pq.write_table(pa.table({"x": pa.array([number], pa.int64())}), folder / f".{number}")
    (folder / f".{number}").rename(folder / f"{number}.parquet")


@pytest.mark.parametrize("clean", ["archive", "delete", "off"])
def test_consumed_files_are_cleaned_once_nothing_can_ask_for_them(
    quick: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clean: str
) -> None:
    monkeypatch.setattr("nosync.runtime.stepping.TRIM_BATCH", 1)
    folder, archive = tmp_path / "in", tmp_path / "archive"
    written(folder, 1)
    flow = ns.Flow("shop", quick)
    options: dict[str, Any] = {"cleanSource": clean} | ({"sourceArchiveDir": archive} if clean == "archive" else {})
    rows = flow.source("s", ns.files(folder, schema="x bigint", maxFilesPerTrigger=1, **options))
    flow.view("v", rows)
    with flow.start(home=tmp_path / "home", shards=2) as run:
        run.processAllAvailable()
        written(folder, 2)
        run.processAllAvailable()
        left = [] if clean != "off" else ["1.parquet", "2.parquet"]
        assert soon(lambda: sorted(file.name for file in folder.iterdir()) == left)
        assert sorted(row.x for row in run.view("v").collect()) == [1, 2]
    assert not archive.exists() or sorted(file.name for file in archive.iterdir()) == ["1.parquet", "2.parquet"]


def test_an_archive_inside_the_source_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="lies inside the source"):
        ns.files(tmp_path, cleanSource="archive", sourceArchiveDir=tmp_path / "old")


def test_rows_in_memory_are_kept_until_they_are_safe_and_then_let_go(
    quick: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nosync.runtime.stepping.TRIM_BATCH", 1)
    flow = ns.Flow("shop", quick)
    source = ns.memory("x int")
    flow.view("v", flow.source("s", source))
    with flow.start(home=tmp_path, shards=2) as run:
        source.add([(1,)])
        run.processAllAvailable()
        assert soon(lambda: not list((tmp_path / "input/s").iterdir()))


class Ticker:
    """A source that forgets what it gave as soon as it is recorded."""

    append_only = True

    def __init__(self) -> None:
        self.given = 0
        self.reads = 0
        self.forgotten = set[int]()

    def declare(self, name: str, spark: SparkSession) -> StructType:
        return StructType().add("x", "long")

    def start(self, folder: Path, taken: Iterable[dict[str, Any]]) -> None:
        self.given = max((slice["number"] for slice in taken), default=0)

    def available(self) -> dict[str, Any] | None:
        if self.given >= 3:
            return None
        self.given += 1
        return {"number": self.given}

    def read(self, spark: SparkSession, slice: dict[str, Any]) -> DataFrame:
        assert slice["number"] not in self.forgotten
        self.reads += 1
        return spark.createDataFrame([(slice["number"], 1)], "x bigint, _diff bigint")

    def acknowledge(self, slice: dict[str, Any]) -> None:
        self.forgotten.add(slice["number"])


def test_a_source_that_cannot_be_read_again_is_read_once(quick: SparkSession, tmp_path: Path) -> None:
    flow = ns.Flow("shop", quick)
    source = Ticker()
    flow.view("v", flow.source("s", source))
    with flow.start(home=tmp_path, shards=2) as run:
        run.processAllAvailable()
        assert sorted(row.x for row in run.view("v").collect()) == [1, 2, 3]
    assert source.reads == 3 and source.forgotten == {1, 2, 3}


def test_rows_stay_in_their_source_until_they_survive_the_loss_of_the_host(
    quick: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = threading.Event()
    step = HostTier.step

    def slow(tier: HostTier) -> bool:
        if not synced.is_set():
            raise ns.Unavailable("the disk does not answer")
        return step(tier)

    monkeypatch.setattr(HostTier, "step", slow)
    flow = ns.Flow("shop", quick)
    source = Ticker()
    flow.view("v", flow.source("s", source))
    with flow.start(home=tmp_path, shards=2) as run:
        run.processAllAvailable()
        assert run.epoch == 3 and source.forgotten == set()
        synced.set()
        assert soon(lambda: source.forgotten == {1, 2, 3})


def test_files_that_no_record_names_are_swept_and_no_others(quick: SparkSession, tmp_path: Path) -> None:
    def start() -> tuple[ns.Run, Any]:
        flow = ns.Flow("shop", quick)
        source = ns.memory("x int")
        flow.view("v", flow.source("s", source))
        return flow.start(home=tmp_path, shards=2), source

    run, source = start()
    source.add([(1,), (2,), (3,)])
    run.processAllAvailable()
    run.stop()
    kept = sorted((tmp_path / "layers").rglob("*.arrow"))
    orphan = kept[0].with_name(kept[0].name[:-9] + "0000.arrow")
    orphan.write_bytes(kept[0].read_bytes())
    foreign = kept[0].with_name("notes.txt")
    foreign.write_text("not ours")
    run, _ = start()
    assert soon(lambda: not orphan.exists())
    run.stop()
    assert sorted((tmp_path / "layers").rglob("*.arrow")) == kept and foreign.exists()
