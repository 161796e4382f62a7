"""Folders for readers that know nothing of us: what is added, and the newest rows, in Parquet, JSON and CSV, partitioned or not."""

import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import nosync as ns
from nosync.sinks.folders import Folder

MINE = ns.Identity("shop", "out", "1.aa")
COLUMNS = pa.schema([("day", pa.date32()), ("shop", pa.string()), ("spent", pa.decimal128(10, 2))])


@dataclass
class Given:
    """One epoch's output, made up: rows with their diffs."""

    epoch: int
    rows: list[tuple[tuple[Any, ...], int]]
    columns: pa.Schema = COLUMNS

    @property
    def empty(self) -> bool:
        return not self.rows

    @property
    def schema(self) -> pa.Schema:
        return self.columns.append(pa.field("_epoch", pa.int64())).append(pa.field("_diff", pa.int64()))

    def table(self) -> pa.Table:
        columns = [pa.array([row[i] for row, _ in self.rows], field.type) for i, field in enumerate(self.columns)]
        return pa.table([*columns, [self.epoch] * len(self.rows), [diff for _, diff in self.rows]], schema=self.schema)

    def batches(self) -> Iterator[pa.RecordBatch]:
        yield from self.table().to_batches()

    def frame(self) -> Any:
        raise AssertionError("a file needs no Spark")


def opened(folder: Path, kind: Any = ns.parquet, run: str = "1.aa", **settings: Any) -> Folder:
    sink: Folder = kind(folder, **settings)
    sink.open(run, MINE)
    return sink


def row(day: int, shop: str | None, spent: str) -> tuple[Any, ...]:
    return date(2026, 5, day), shop, Decimal(spent)


def random_epochs(seed: int) -> Iterator[tuple[int, list[tuple[tuple[Any, ...], int]], Counter[Any]]]:
    """What comes and goes, epoch by epoch, and what is there after it."""
    chance, there = random.Random(seed), Counter[Any]()
    for epoch in range(1, 12):
        changes = Counter[Any]()
        for _ in range(chance.randrange(6)):
            gone = chance.choice(sorted(there.elements(), key=repr)) if there and chance.random() < 0.4 else None
            one = gone or row(chance.randrange(1, 4), chance.choice(["a", "b/c", "", None]), f"{chance.randrange(5)}.50")
            if gone is None or there[gone] + changes[gone] > 0:
                changes[one] += -1 if gone else 1
        there = Counter({one: count for one in {*there, *changes} if (count := there[one] + changes[one]) > 0})
        yield epoch, [(one, count) for one, count in changes.items() if count], there


def rows_in(folder: Path) -> Counter[Any]:
    found = [tuple(one.values()) for file in folder.rglob("part-*.parquet") for one in pq.ParquetFile(file).read().to_pylist()]
    return Counter(found)


@pytest.mark.parametrize("seed", range(12))
def test_the_newest_rows_are_what_the_changes_add_up_to(tmp_path: Path, seed: int) -> None:
    for epoch, changes, there in random_epochs(seed):
        sink = opened(tmp_path, mode="state")  # each epoch by another run
        for _ in range(1 + seed % 2):
            sink.deliver(epoch, Given(epoch, changes))
        assert rows_in(tmp_path / "current") == there, f"seed {seed}, epoch {epoch}"
    assert len([*tmp_path.glob("version-*")]) <= 2


def test_partitions_of_the_newest_rows_are_replaced_one_by_one(tmp_path: Path) -> None:
    sink = opened(tmp_path, mode="state", partitionBy="day")
    sink.deliver(1, Given(1, [(row(1, "a", "1.00"), 1), (row(2, "b", "2.00"), 1)]))
    first = (tmp_path / "current" / "day=2026-05-01" / "part-000000000001.parquet").stat().st_ino
    sink.deliver(2, Given(2, [(row(2, "b", "2.00"), -1), (row(3, None, "3.00"), 2)]))
    read = pq.read_table(tmp_path / "current").to_pylist()
    assert sorted((str(one["day"]), one["shop"], one["spent"]) for one in read) == [
        ("2026-05-01", "a", Decimal("1.00")), ("2026-05-03", None, Decimal("3.00")), ("2026-05-03", None, Decimal("3.00")),
    ]  # fmt: skip
    assert (tmp_path / "current" / "day=2026-05-01" / "part-000000000001.parquet").stat().st_ino == first  # linked, not written again
    assert not (tmp_path / "current" / "day=2026-05-02").exists()


def test_a_version_that_a_killed_run_began_is_not_read(tmp_path: Path) -> None:
    opened(tmp_path, mode="state").deliver(1, Given(1, [(row(1, "a", "1.00"), 1)]))
    begun = tmp_path / "version-000000000002"
    begun.mkdir()
    (begun / "part-000000000002.parquet").write_bytes(b"half")
    assert rows_in(tmp_path / "current") == {row(1, "a", "1.00"): 1}
    opened(tmp_path, run="2.bb", mode="state").deliver(2, Given(2, [(row(1, "a", "1.00"), -1)]))
    assert rows_in(tmp_path / "current") == {}


def test_what_is_added_has_no_columns_of_ours(tmp_path: Path) -> None:
    sink = opened(tmp_path, mode="append", partitionBy=["shop"])
    sink.deliver(1, Given(1, [(row(1, "a b", "1.00"), 2), (row(2, None, "2.00"), 1)]))
    sink.deliver(1, Given(1, [(row(1, "a b", "1.00"), 2), (row(2, None, "2.00"), 1)]))
    read = pq.read_table(tmp_path).to_pylist()
    assert [*read[0]] == ["day", "spent", "shop"] and Counter(one["shop"] for one in read) == {"a b": 2, None: 1}


@pytest.mark.parametrize("mode", ["changes", "append", "state"])
def test_json_and_csv_have_the_same_rows(tmp_path: Path, mode: str) -> None:
    rows = [(row(1, 'a "b"', "1.50"), 1), (row(2, None, "2.25"), 1), (row(2, "", "0.00"), 1)]
    for kind in (ns.json, ns.csv):
        folder = tmp_path / kind.__name__
        sink = opened(folder, kind, mode=mode)
        sink.deliver(1, Given(1, rows))
        sink.deliver(2, Given(2, [(row(3, "c", "3.00"), 1)]))
    below = "current" if mode == "state" else "."
    files = {suffix: sorted((tmp_path / suffix / below).glob(f"[ep]*.{suffix}")) for suffix in ("json", "csv")}
    wanted = {"spent": [1.5, 2.25, 0.0, 3.0], "shop": ['a "b"', None, "", "c"]}
    found = [json.loads(line) for file in files["json"] for line in file.read_text().splitlines()]
    own = {"_epoch", "_diff"} if mode == "changes" else set()
    assert set(found[0]) == {"day", "shop", "spent"} | own and found[0]["day"] == "2026-05-01"
    assert sorted(map(str, (one["spent"] for one in found))) == sorted(map(str, wanted["spent"]))
    options = pa_csv.ConvertOptions(strings_can_be_null=True, quoted_strings_can_be_null=False)
    table = pa.concat_tables([pa_csv.read_csv(file, convert_options=options) for file in files["csv"]])
    assert sorted(map(str, table.column("shop").to_pylist())) == sorted(map(str, wanted["shop"]))


def test_values_with_parts_are_counted_too(tmp_path: Path) -> None:
    columns = pa.schema([("tags", pa.list_(pa.string())), ("at", pa.timestamp("us", "UTC"))])
    at = datetime(2026, 5, 1, 12)
    sink = opened(tmp_path, mode="state")
    sink.deliver(1, Given(1, [((["x"], at), 2), ((["x", "y"], at), 1)], columns))
    sink.deliver(2, Given(2, [((["x"], at), -1)], columns))
    assert sorted(len(tags) for tags, _ in [tuple(one.values()) for one in pq.read_table(tmp_path / "current").to_pylist()]) == [1, 2]


@pytest.mark.parametrize(
    ("make", "words", "hint"),
    [
        (lambda: ns.parquet("out", mode="apend"), 'ns.parquet: mode="apend" is not known', 'Did you mean "append"?'),
        (lambda: ns.parquet("out", mode="complete"), 'ns.parquet: mode="complete" is not known', 'Pass "changes"'),
        (lambda: ns.json("s3://bucket/out"), "writes into folders of this machine", "ns.foreachBatch"),
        (lambda: ns.parquet("out", partitionBy="nope").check_query("o", COLUMNS, []), 'partitionBy="nope" is no column', "day, shop"),
        (lambda: ns.parquet("out", partitionBy=COLUMNS.names).check_query("o", COLUMNS, []), "names all columns", "Leave one"),
        (lambda: ns.parquet("out", mode="append").check_query("o", COLUMNS, ["spend/aggregate"]), '"spend/aggregate" takes back', "state"),
        (lambda: ns.foreachBatch(print, mode="append").check_query("o", COLUMNS, ["s"]), '"s" takes back what it gave', "foreachEpoch"),
        (lambda: ns.foreachBatch(print, mode="complete"), "is not known", 'mode="state"'),
        (lambda: ns.csv("out").check_query("o", pa.schema([("tags", pa.list_(pa.string()))]), []), 'column "tags" has no place', "ns.json"),
    ],
)
def test_what_cannot_be_is_refused_at_declaration(make: Any, words: str, hint: str) -> None:
    with pytest.raises(ns.Invalid) as error:
        make()
    assert words in error.value.message and hint in error.value.hint
