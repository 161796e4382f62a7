"""Reading Parquet without Spark: repeated texts come as dictionaries, and nothing of that shows in the groups."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nosync.graph.operators import SourceColumns
from nosync.kernels.accumulate import Accumulation
from nosync.kernels.functions import Result
from nosync.spark.receipts import Receipt
from nosync.spark.steps.accumulate_task import AccumulateTask
from nosync.spark.steps.direct_task import DirectTask, repeated_texts
from nosync.spark.task import Work


class Collected:
    """In the place of Spark's accumulator."""

    def __init__(self) -> None:
        self.receipts: list[Receipt] = []

    def add(self, receipts: list[Receipt]) -> None:
        self.receipts += receipts


def checksum(home: Path, paths: list[Path], type: pa.DataType) -> tuple[int, str]:
    """Rows and checksum of the layer that the files become in a single shard."""
    collected = Collected()
    work = Work(str(home), "flow", "run", "trace", 1, 2, 1, "upserts", {}, collected)  # type: ignore[arg-type]
    spec = Accumulation((type,), (pa.int64(),), (Result("sum", (0,), pa.int64()),))
    task = DirectTask(AccumulateTask(work, spec, None), SourceColumns("s", ("k",), ("x",)), tuple(map(str, paths)))
    assert list(task.shard(0)) == []
    (receipt,) = collected.receipts
    assert receipt.layer is not None
    return receipt.layer.rows, receipt.layer.checksum


@pytest.mark.parametrize("type", [pa.string(), pa.binary()])
def test_dictionaries_of_several_row_groups_and_files_give_the_same_bits(tmp_path: Path, type: pa.DataType) -> None:
    keys = [None if i % 11 == 0 else f"key of some length {i * i % 50}" for i in range(1200)]
    table = pa.table({"k": pa.array(keys).cast(type), "x": pa.array(range(1200), pa.int64())})
    plain, coded = [tmp_path / "plain"], [tmp_path / "coded0", tmp_path / "coded1"]
    pq.write_table(table, plain[0], use_dictionary=False)
    for number, path in enumerate(coded):
        pq.write_table(table.slice(600 * number, 600), path, row_group_size=170)
    assert [repeated_texts(pq.read_metadata(path), ["k"]) for path in plain + coded] == [[], ["k"], ["k"]]
    assert checksum(tmp_path / "a", plain, type) == checksum(tmp_path / "b", coded, type)


def test_texts_that_rarely_repeat_are_read_one_by_one(tmp_path: Path) -> None:
    pq.write_table(pa.table({"k": [f"{i:020d}" for i in range(1000)]}), tmp_path / "a")
    assert repeated_texts(pq.read_metadata(tmp_path / "a"), ["k"]) == []
    pq.write_table(pa.table({"k": pa.array([None, None], pa.string())}), tmp_path / "b")
    assert repeated_texts(pq.read_metadata(tmp_path / "b"), ["k"]) == []
