"""Sinks get every epoch's changes, in order; what they promise is said; what they cannot take stops the flow and comes again."""

import threading
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import nosync as ns


@pytest.fixture
def source() -> Any:
    return ns.memory("k string, x int")


@pytest.fixture
def flow(spark: SparkSession, source: Any) -> ns.Flow:
    flow = ns.Flow("shop", spark)
    flow.source("s", source)
    return flow


def sums(flow: ns.Flow) -> DataFrame:
    return flow.sql("select k, sum(x) as t from s group by k")


def test_a_folder_of_parquet_has_one_file_an_epoch_that_adds_up_to_the_result(flow: ns.Flow, source: Any, tmp_path: Path) -> None:
    flow.sink("out", sums(flow), ns.parquet(tmp_path / "out"))
    with flow.start(home=tmp_path / "home", shards=2) as run:
        for rows in ([("a", 1), ("b", 2)], [("a", 3)], [("c", 0)]):
            source.add(rows)
            run.processAllAvailable()
    files = sorted((tmp_path / "out").glob("*.parquet"))
    assert [file.name for file in files] == [f"epoch-{epoch:012d}.parquet" for epoch in (1, 2, 3)]
    second = pq.read_table(files[1]).to_pylist()
    assert sorted((row["k"], row["t"], row["_epoch"], row["_diff"]) for row in second) == [("a", 1, 2, -1), ("a", 4, 2, 1)]
    total: dict[tuple[str, int], int] = {}
    for row in pq.read_table(tmp_path / "out").to_pylist():
        total[row["k"], row["t"]] = total.get((row["k"], row["t"]), 0) + row["_diff"]
    assert {row: count for row, count in total.items() if count} == {("a", 4): 1, ("b", 2): 1, ("c", 0): 1}


@pytest.mark.parametrize("release", ["safe", "computed"])
def test_a_function_is_called_with_each_epoch_in_order(flow: ns.Flow, source: Any, tmp_path: Path, release: Any) -> None:
    got: list[tuple[int, list[tuple[Any, ...]]]] = []
    target = ns.foreachEpoch(lambda rows, epoch: got.append((epoch, rows.collect())))
    flow.sink("out", flow.sql("select x from s where x > 1"), target, release)
    with flow.start(home=tmp_path, shards=2) as run:
        for x in (1, 2, 3):
            source.add([("a", x)])
            run.processAllAvailable()
    assert got == [(1, []), (2, [(2, 2, 1)]), (3, [(3, 3, 1)])]


def test_sinks_have_paces_of_their_own(flow: ns.Flow, source: Any, tmp_path: Path) -> None:
    """One gets each epoch at once; others later, as one change without what came and went, or epoch by epoch."""
    came, batches, each = threading.Semaphore(0), list[tuple[int, list[tuple[Any, ...]]]](), list[int]()
    flow.sink("at once", sums(flow), ns.foreachEpoch(lambda rows, epoch: came.release()), release="computed")
    slow: dict[str, Any] = {"trigger": "1 hour", "release": "computed"}  # safe ones may come in two steps, as disks allow
    flow.sink("batches", sums(flow), ns.foreachBatch(lambda rows, epoch: batches.append((epoch, rows.collect()))), **slow)
    flow.sink("each", sums(flow), ns.foreachEpoch(lambda rows, epoch: each.append(epoch)), **slow)
    flow.sink("state", sums(flow), ns.parquet(tmp_path / "state", mode="state"), **slow | {"trigger": {"processingTime": "1 hour"}})
    with flow.start(home=tmp_path / "home", shards=2) as run:
        source.add([("a", 1), ("b", 1)])
        run.processAllAvailable()
        assert came.acquire(timeout=60)
        run.rescale(3)
        for rows in ([("a", 1)], [("b", 1), ("c", 1)], [("b", -1), ("c", 5)]):
            source.add(rows)
            assert came.acquire(timeout=60)
        status = run.status
        assert status.sinks == {"at once": 4, "batches": 1, "each": 1, "state": 1}
        assert set(status.next_deliveries) == {"batches", "each", "state"} and "gets more at" in str(status)
    assert [(epoch, sorted(map(tuple, rows))) for epoch, rows in batches] == [(1, [("a", 1), ("b", 1)]), (4, [("a", 2), ("c", 6)])]
    assert each == [1, 2, 3, 4]
    assert sorted(pq.read_table(tmp_path / "state" / "current").to_pylist(), key=str) == [
        {"k": "a", "t": 2}, {"k": "b", "t": 1}, {"k": "c", "t": 6},
    ]  # fmt: skip
    assert not any("version-000000000002" in str(path) for path in (tmp_path / "state").iterdir())


def test_the_console_shows_changes(flow: ns.Flow, source: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    flow.sink("out", sums(flow), ns.console())
    with flow.start(home=tmp_path) as run:
        source.add([("a", 1)])
        run.processAllAvailable()
    assert "epoch 1: 1 changes" in capfd.readouterr().out


def test_guarantees_are_said_with_their_reason(flow: ns.Flow, tmp_path: Path) -> None:
    flow.sink("file", sums(flow), ns.parquet(tmp_path / "out"))
    flow.sink("call", sums(flow), ns.foreachEpoch(print))
    flow.sink("safe call", sums(flow), ns.foreachEpoch(print, idempotent=True))
    flow.sink("show", sums(flow), ns.console())
    promises = flow.guarantees()
    assert {name: promise.guarantee for name, promise in promises.items()} == {
        "file": "precise", "call": "repeating", "safe call": "precise", "show": "repeating",
    }  # fmt: skip
    assert "crash between" in promises["call"].reason


def test_an_epoch_that_a_function_refuses_stops_the_flow_and_comes_again(
    flow: ns.Flow, source: Any, tmp_path: Path, spark: SparkSession
) -> None:
    def refuse(rows: DataFrame, epoch: int) -> None:
        raise RuntimeError("the till is closed")

    flow.sink("out", sums(flow), ns.foreachEpoch(refuse))
    run = flow.start(home=tmp_path, shards=2)
    source.add([("a", 1)])
    with pytest.raises(ns.Failed, match='sink "out" did not take epoch 1: RuntimeError: the till is closed'):
        run.processAllAvailable()
    got: list[int] = []
    again = ns.Flow("shop", spark)
    again.source("s", ns.memory("k string, x int"))
    again.sink("out", sums(again), ns.foreachEpoch(lambda rows, epoch: got.append(epoch)))
    with again.start(home=tmp_path) as second:
        second.processAllAvailable()
    assert got == [1]


class Doors:
    """Notes what is done to it; some doors stick."""

    promise = ns.Promise("repeating", "it only looks")

    def __init__(self, notes: list[str], name: str, stuck: str = "") -> None:
        self.notes, self.name, self.stuck = notes, name, stuck

    def _note(self, what: str) -> None:
        self.notes.append(f"{what} {self.name}")
        if what == self.stuck:
            raise RuntimeError("stuck")

    def open(self, run: str, identity: ns.Identity) -> None:
        assert run and identity == ns.Identity("shop", self.name, identity.history) and identity.history
        self._note("open")

    def deliver(self, epoch: int, changes: ns.Changes) -> None:
        self._note("deliver")

    def close(self) -> None:
        self._note("close")


@pytest.mark.parametrize(
    ("stuck", "words"),
    [
        ("", None),
        ("open", 'sink "b" cannot be opened: RuntimeError: stuck'),
        ("deliver", 'sink "b" did not take epoch 1: RuntimeError: stuck'),
        ("close", 'sink "b" cannot be closed: RuntimeError: stuck'),
    ],
)
def test_what_was_opened_is_closed_however_the_run_ends(
    flow: ns.Flow, source: Any, tmp_path: Path, stuck: str, words: str | None
) -> None:
    notes: list[str] = []
    for name in ("a", "b"):
        flow.sink(name, sums(flow), Doors(notes, name, stuck if name == "b" else ""))
    source.add([("a", 1)])
    with pytest.raises(ns.Failed, match=words) if words else nullcontext(), flow.start(home=tmp_path, shards=1) as run:
        run.processAllAvailable()
    opened = {"a"} if stuck == "open" else {"a", "b"}
    assert sorted(note for note in notes if note.startswith("close")) == [f"close {name}" for name in sorted(opened)]
    assert set(notes[-len(opened) :]) == {f"close {name}" for name in opened}


def test_a_sink_that_cannot_be_is_refused(flow: ns.Flow, tmp_path: Path) -> None:
    with pytest.raises(ns.Invalid, match='release="now" is not known'):
        flow.sink("out", sums(flow), ns.console(), release="now")  # type: ignore[arg-type]
    (tmp_path / "file").write_text("")
    with pytest.raises(ns.Invalid, match=r'sink "out": ".*/file" is a file'):
        flow.sink("out", sums(flow), ns.parquet(tmp_path / "file"))


def test_a_start_whose_sink_cannot_be_opened_says_so_in_the_home(flow: ns.Flow, tmp_path: Path) -> None:
    flow.sink("out", sums(flow), Doors([], "out", "open"))
    with pytest.raises(ns.Failed, match='sink "out" cannot be opened'):
        flow.start(home=tmp_path, shards=1)
    status = ns.open(tmp_path).status
    assert status.phase == "failed" and 'sink "out" cannot be opened: RuntimeError: stuck' in status.message


def test_readers_that_know_nothing_of_us_get_what_they_can_read(flow: ns.Flow, source: Any, tmp_path: Path) -> None:
    batches: list[tuple[int, list[tuple[Any, ...]]]] = []
    rows = flow.sql("select k, x from s where x > 0")
    flow.sink("added", rows, ns.json(tmp_path / "added", mode="append"))
    flow.sink("now", sums(flow), ns.parquet(tmp_path / "now", mode="state", partitionBy="k"))
    flow.sink("batches", sums(flow), ns.foreachBatch(lambda df, epoch: batches.append((epoch, sorted(map(tuple, df.collect()))))))
    with pytest.raises(ns.Refused) as error:
        flow.sink("corrected", sums(flow), ns.parquet(tmp_path / "corrected", mode="append"))
    assert 'mode="append" needs rows that are only ever added, but "added' not in error.value.message
    assert "takes back what it gave" in error.value.message and "emit=" in error.value.hint
    with flow.start(home=tmp_path / "home", shards=2) as run:
        for given in ([("a", 1), ("b", 2)], [("a", 3), ("a", 3)]):
            source.add(given)
            run.processAllAvailable()
    assert batches == [(1, [("a", 1), ("b", 2)]), (2, [("a", 7)])]
    lines = [line for file in sorted((tmp_path / "added").glob("epoch-*.json")) for line in file.read_text().splitlines()]
    assert sorted(lines) == ['{"k":"a","x":1}', '{"k":"a","x":3}', '{"k":"a","x":3}', '{"k":"b","x":2}']
    assert sorted((row["k"], row["t"]) for row in pq.read_table(tmp_path / "now" / "current").to_pylist()) == [("a", 7), ("b", 2)]
    assert repr(flow.guarantees()["now"].guarantee) == "'precise'"
