"""The files every engine reads, and what the right answer over them is.

Promise: the same name and sizes give the same bytes, so figures of different days compare. Modification times rise by one second
a file, hence an engine that orders files by time reads them in the order of their names.

A data set is a folder `<work>/<name>/` with its files in `files/` and `truth.json` beside them, which is written last: a folder
without it is unfinished and is made again.
"""

from __future__ import annotations

import json
import os
import shutil
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

PLAIN_SCHEMA = "key bigint, value bigint, at bigint"
REALISTIC_SCHEMA = "customer string, amount decimal(12,2), weight double, score double, at timestamp"
FIRST_FILE_AT = 1_700_000_000

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Input:
    """One data set: where it lies, how to read it, and the totals a right answer has."""

    name: str
    folder: str
    format: str
    schema: str
    rows: int
    files: int
    bytes: int
    truth: dict[str, Any]


def plain(work: Path, files: int, rows: int, keys: int, format: str = "parquet", label: str = "plain") -> Input:
    """Integer keys, drawn evenly; a count and a sum are asked of it."""
    return made(
        work, f"{label}-{format}-{files}x{rows}-{keys}", format, PLAIN_SCHEMA, lambda: _plain_tables(files, rows, keys), _plain_truth
    )


def growth(work: Path, state_keys: int, files: int, rows: int, touched: int, fill_files: int = 20) -> Input:
    """First files that bring in every one of `state_keys` keys once, then files that each touch `touched` of them.

    The number of filling files is the same whatever the size, so that a small and a large state are measured after the same warm-up.
    """
    name = f"growth-{state_keys}-{files}x{rows}-{touched}"
    return made(work, name, "parquet", PLAIN_SCHEMA, lambda: _growth_tables(state_keys, files, rows, touched, fill_files), _plain_truth)


def realistic(work: Path, files: int, rows: int, keys: int) -> Input:
    """What orders look like: skewed names of customers, some unknown, money as decimals, doubles with gaps, times."""
    name = f"realistic-{files}x{rows}-{keys}"
    return made(work, name, "parquet", REALISTIC_SCHEMA, lambda: _realistic_tables(files, rows, keys), _realistic_truth)


def _plain_tables(files: int, rows: int, keys: int) -> Iterator[pa.Table]:
    for number in range(files):
        generator = np.random.default_rng([1, number])
        yield _plain_table(generator, generator.integers(0, keys, rows), number)


def _growth_tables(state_keys: int, files: int, rows: int, touched: int, fill_files: int) -> Iterator[pa.Table]:
    everything = np.random.default_rng(2).permutation(state_keys)
    for number, keys in enumerate(np.array_split(everything, fill_files)):
        yield _plain_table(np.random.default_rng([3, number]), keys, number)
    for number in range(fill_files, fill_files + files):
        generator = np.random.default_rng([3, number])
        chosen = generator.choice(state_keys, touched, replace=False)
        yield _plain_table(generator, generator.permutation(np.resize(chosen, rows)), number)


def _plain_table(generator: np.random.Generator, keys: Integers, number: int) -> pa.Table:
    at = FIRST_FILE_AT * 1000 + number * 1000 + np.arange(len(keys)) % 1000
    return pa.table({"key": keys.astype(np.int64), "value": generator.integers(0, 1000, len(keys)), "at": at})


def _realistic_tables(files: int, rows: int, keys: int) -> Iterator[pa.Table]:
    weights = 1.0 / np.arange(1, keys + 1) ** 1.05
    cumulated = np.cumsum(weights) / weights.sum()
    names = pa.array([f"customer-{key:07d}" for key in np.random.default_rng(4).permutation(keys)])
    for number in range(files):
        generator = np.random.default_rng([5, number])
        drawn = np.searchsorted(cumulated, generator.random(rows))
        customers = names.take(pa.array(drawn, mask=generator.random(rows) < 0.02))
        amounts = _money(generator.integers(1, 1_000_000, rows))
        micros = (FIRST_FILE_AT + number) * 1_000_000 + generator.integers(0, 1_000_000, rows)
        yield pa.table(
            {
                "customer": customers,
                "amount": amounts,
                "weight": generator.lognormal(0.0, 2.0, rows),
                "score": pa.array(generator.normal(50.0, 15.0, rows), mask=generator.random(rows) < 0.01),
                "at": pa.array(micros, pa.timestamp("us", tz="UTC")),
            }
        )


def _money(cents: Integers) -> pa.Array:
    """Positive cents as decimal(12,2): the low half of each 128-bit value is the cents, the high half zero."""
    words = np.zeros((len(cents), 2), np.int64)
    words[:, 0] = cents
    return pa.Array.from_buffers(pa.decimal128(12, 2), len(cents), [None, pa.py_buffer(words.tobytes())])


def _plain_truth(tables: Iterator[pa.Table]) -> dict[str, Any]:
    partial = [table.group_by("key").aggregate([("key", "count"), ("value", "sum")]) for table in tables]
    groups = pa.concat_tables(partial).group_by("key").aggregate([("key_count", "sum"), ("value_sum", "sum")])
    key, count, total = (groups[name].to_numpy() for name in ("key", "key_count_sum", "value_sum_sum"))
    return {
        "groups": len(groups),
        "count": int(count.sum()),
        "total": int(total.sum()),
        "weighted_count": int((key * count).sum()),
        "weighted_total": int((key * total).sum()),
    }


def _realistic_truth(tables: Iterator[pa.Table]) -> dict[str, Any]:
    first = [("amount", "sum"), ("weight", "sum"), ("score", "sum"), ("score", "count"), ("weight", "min"), ("at", "max")]
    again = [(f"{column}_{function}", "sum" if function == "count" else function) for column, function in first]
    partial = [table.group_by("customer").aggregate(first) for table in tables]
    groups = pa.concat_tables(partial).group_by("customer").aggregate(again)
    cents = [int(amount * 100) for amount in groups["amount_sum_sum"].to_pylist()]
    marks = [zlib.crc32((customer or "").encode()) for customer in groups["customer"].to_pylist()]
    scores, counts = groups["score_sum_sum"].to_numpy(), groups["score_count_sum"].to_numpy()
    return {
        "groups": len(groups),
        "cents": sum(cents),
        "weighted_cents": sum(a * b for a, b in zip(cents, marks, strict=True)),
        "weight": float(groups["weight_sum_sum"].to_numpy().sum()),
        "averages": float((scores[counts > 0] / counts[counts > 0]).sum()),
        "lowest": float(groups["weight_min_min"].to_numpy().sum()),
        "latest": int((groups["at_max_max"].cast(pa.int64()).to_numpy() - FIRST_FILE_AT * 1_000_000).sum()),
    }


def made(
    work: Path,
    name: str,
    format: str,
    schema: str,
    tables: Callable[[], Iterator[pa.Table]],
    truth: Callable[[Iterator[pa.Table]], dict[str, Any]],
) -> Input:
    folder = work / name
    if not (folder / "truth.json").exists():
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "files").mkdir(parents=True)
        seen = {"rows": 0, "files": 0, "bytes": 0}
        answer = truth(_written(tables(), folder / "files", format, seen))
        made = Input(name, str(folder / "files"), format, schema, seen["rows"], seen["files"], seen["bytes"], answer)
        (folder / "truth.json").write_text(json.dumps(asdict(made)))
    return Input(**{**json.loads((folder / "truth.json").read_text()), "folder": str(folder / "files")})


def _written(tables: Iterator[pa.Table], folder: Path, format: str, seen: dict[str, int]) -> Iterator[pa.Table]:
    for number, table in enumerate(tables):
        path = folder / f"part-{number:05d}.{format}"
        if format == "csv":
            pa.csv.write_csv(table, path, pa.csv.WriteOptions(include_header=False))
        else:
            pa.parquet.write_table(table, path, compression="snappy")
        os.utime(path, (FIRST_FILE_AT + number, FIRST_FILE_AT + number))
        seen["rows"] += len(table)
        seen["files"] += 1
        seen["bytes"] += path.stat().st_size
        yield table
