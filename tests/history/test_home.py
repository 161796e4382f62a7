"""A home without Spark: views as of any epoch, what is there, what is not."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import nosync as ns
from nosync.history.changes import check_clear
from nosync.history.reader import rows
from nosync.history.record import ViewRecord
from nosync.journal.entries import Computed, Declared, Opened
from nosync.journal.journal import Journal
from nosync.kernels.accumulate import Accumulation
from nosync.kernels.functions import Result
from nosync.model.hash_range import ALL_HASHES
from nosync.model.run import this_process
from nosync.state.layer import write_layer
from nosync.store.disk import LocalDisk

SUMS = Accumulation((pa.string(),), (pa.int64(),), (Result("sum", (0,), pa.int64()), Result("count", (), pa.int64())))
WHOLE = Accumulation((), (pa.int64(),), (Result("count", (), pa.int64()), Result("sum", (0,), pa.int64())), whole=True)
ROWS = ViewRecord(pa.schema([("x", pa.int64())]), "rows/rows", "diffs")
SUM = ViewRecord(pa.schema([("total", pa.int64()), ("k", pa.string())]), "sums/aggregate", "upserts", SUMS, (1, 0))
ALL = ViewRecord(pa.schema([("n", pa.int64()), ("t", pa.int64())]), "all/aggregate", "upserts", WHOLE, (0, 1))


def upserts(values: dict[str, tuple[int, int]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {
            "_hash": pa.array(sorted(map(len, values)), pa.uint64()),
            "k0": pa.array(sorted(values, key=len), pa.string()),
            "n": pa.array([values[key][0] for key in sorted(values, key=len)], pa.int64()),
            "sum0.0": pa.array([values[key][1] for key in sorted(values, key=len)], pa.int64()),
        }
    )


def diffs(counts: dict[int, int]) -> pa.RecordBatch:
    numbers = pa.array(sorted(counts), pa.uint64())
    values, times = pa.array(sorted(counts), pa.int64()), pa.array([counts[x] for x in sorted(counts)], pa.int64())
    return pa.RecordBatch.from_pydict({"_hash": numbers, "_row": numbers, "c0": values, "_count": times})


@pytest.fixture
def home(tmp_path: Path) -> ns.Home:
    journal = Journal(LocalDisk(tmp_path), None, this_process(0.0))
    records = {"rows": ROWS, "sums": SUM, "all": ALL}
    journal.append(Declared("shop", 1, {}, {}, {name: record.to_json() for name, record in records.items()}))
    epochs = [
        [("rows/rows", "diffs", diffs({1: 2, 5: 1})), ("sums/aggregate", "upserts", upserts({"a": (2, 7), "bb": (1, 5)}))],
        [("rows/rows", "diffs", diffs({1: -1, 5: -1, 9: 1})), ("sums/aggregate", "upserts", upserts({"bb": (0, 0)}))],
    ]
    for epoch, content in enumerate(epochs, start=1):
        journal.append(Opened(epoch, 1000.0 * epoch, {}))
        layers = tuple(
            write_layer(
                str(tmp_path), f"layers/{epoch}-{kind}", [batch],
                flow="shop", trace=trace, range=ALL_HASHES, lower=epoch, upper=epoch + 1, kind=kind, run="r",
            )
            for trace, kind, batch in content
        )
        journal.append(Computed(epoch, layers, {"s": 3}, {}))
    return ns.open(tmp_path)


def test_retained_rows_occur_as_often_as_they_count(home: ns.Home) -> None:
    assert home.view("rows", at=1).to_pylist() == [{"x": 1}, {"x": 1}, {"x": 5}]
    assert home.view("rows").to_pylist() == [{"x": 1}, {"x": 9}]


def test_accumulators_are_finished_and_tombstones_are_gone(home: ns.Home) -> None:
    assert home.view("sums", at=1).to_pylist() == [{"total": 7, "k": "a"}, {"total": 5, "k": "bb"}]
    assert home.view("sums", at=2).to_pylist() == [{"total": 7, "k": "a"}]


def test_an_aggregate_without_a_key_has_its_row_before_any_input(home: ns.Home) -> None:
    assert home.view("all").to_pylist() == [{"n": 0, "t": None}]


@pytest.mark.parametrize("at", [0, 3, -1])
def test_an_epoch_outside_history_is_named_with_the_range(home: ns.Home, at: int) -> None:
    with pytest.raises(ns.NotInHistory) as error:
        home.view("sums", at=at)
    words = "is not there yet: the newest is 2" if at > 2 else "is not kept"
    assert str(error.value) == f'epoch {at} of view "sums" {words}\nAsk for epoch 1 to 2.'


def test_an_unknown_view_is_named_beside_those_there_are(home: ns.Home) -> None:
    with pytest.raises(ns.Invalid) as error:
        home.view("sum")
    assert str(error.value) == 'there is no view "sum"\nDid you mean "sums"? There are: all, rows, sums.'


def test_the_status_counts_what_is_there(home: ns.Home) -> None:
    status = home.status
    assert (home.epoch, status.flow, status.rows, status.layers) == (2, "shop", {"s": 6}, 4)
    assert set(home.views) == {"rows", "sums", "all"} and home.schema("sums") == SUM.schema


def test_a_column_called_as_changes_call_theirs_is_an_error_of_changes_alone() -> None:
    record = replace(ROWS, schema=pa.schema([("_Epoch", pa.int64())]))
    with pytest.raises(ns.Invalid, match='view "v" has a column "_Epoch", and so have its changes'):
        check_clear("v", record)
    check_clear("v", ROWS)


@pytest.mark.parametrize("record", [ROWS, SUM, ALL], ids=["rows", "sums", "all"])
def test_a_record_comes_back_as_it_was(record: ViewRecord) -> None:
    assert ViewRecord.from_json(record.to_json()) == record


def test_a_missing_layer_is_reported_by_name(home: ns.Home) -> None:
    (home.path / "layers/2-diffs").unlink()
    with pytest.raises(ns.Corrupt, match="2-diffs"):
        home.view("rows").to_arrow()
    assert home.view("rows", at=1).num_rows == 3


@pytest.mark.parametrize(
    ("at", "epoch"),
    [
        (datetime.fromtimestamp(1000.0, UTC), 1),
        ("1970-01-01T00:33:19Z", 1),
        ("1970-01-01T00:33:20Z", 2),
        ("an hour ago", 2),
        ("2", 2),
        ("safe", None),
    ],
)
def test_a_time_means_the_newest_epoch_opened_by_then(home: ns.Home, at: Any, epoch: int | None) -> None:
    assert home.resolve(at) == (epoch if epoch is not None else min(home.status.safe.values()))
    if epoch is not None:
        assert home.view("rows", at=at) == home.view("rows", at=epoch)


def test_before_the_first_epoch_there_is_nothing(home: ns.Home) -> None:
    with pytest.raises(ns.NotInHistory, match=r'no epoch had been opened at "1970-01-01T00:16:39Z"\nThe first epoch was opened at 1970'):
        home.view("rows", at="1970-01-01T00:16:39Z")


def test_a_whole_aggregate_without_rows_has_its_columns_where_the_view_has_them(tmp_path: Path) -> None:
    swapped = replace(ALL, schema=pa.schema([("t", pa.int64()), ("n", pa.int64())]), columns=(1, 0))
    assert [batch.to_pylist() for batch in rows(swapped, [], owns_whole=True)] == [[{"t": None, "n": 0}]]
