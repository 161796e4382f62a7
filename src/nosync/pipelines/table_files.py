"""Versions of a table as Parquet files: the next one made of the last by an epoch's changes, in proportion to them where it can be.

Rows that come are written into files of their own. Rows that go are looked for, file by file; only a file that has some is written anew.
All other files are linked. Many small files are folded together.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nosync.model.columns import COUNT, DIFF
from nosync.model.errors import Corrupt
from nosync.sinks.formats import row_count, rows_in
from nosync.sinks.rows import partitions, summed

MOST_ROWS = 1 << 20  # of one file
MOST_FILES = 16  # of one partition, before small ones are folded


def write_whole(target: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch], columns: Sequence[str]) -> None:
    """A version of all these rows."""
    held: list[pa.RecordBatch] = []
    number = 0
    for batch in batches:
        held.append(batch)
        if sum(one.num_rows for one in held) >= MOST_ROWS:
            _write_parts(target, pa.Table.from_batches(held, schema), columns, number)
            held, number = [], number + 1
    if held or not number:
        _write_parts(target, pa.Table.from_batches(held, schema), columns, number)


def write_next(before: Path, target: Path, number: int, changes: pa.Table, columns: Sequence[str]) -> bool:
    """A version with the changes (`_diff` last) on top of another; False, and nothing is written, where they come to nothing."""
    counts, first = summed(changes)
    bare = changes.drop_columns([DIFF])
    gone, come = counts < 0, counts > 0
    if not gone.any() and not come.any():
        return False
    removed = bare.take(first[gone]).append_column(COUNT, pa.array(-counts[gone]))
    lost = dict(partitions(removed, columns))
    for name in parts_of(before):
        (target / name).mkdir(parents=True, exist_ok=True)
        _take_out(before / name, target / name, number, lost.pop(name, None))
    if any(table.num_rows for table in lost.values()):
        raise Corrupt("rows are taken back from a table that has not got them", hint="Write it anew: --full-refresh-all.")
    _write_parts(target, bare.take(np.repeat(first[come], counts[come])), columns, number)
    for name in list(parts_of(target)):
        _fold(target / name, number)
    return True


def parts_of(version: Path) -> Iterator[str]:
    """The folders that have files."""
    for place, _, files in os.walk(version):
        if any(file.endswith(".parquet") for file in files):
            yield "" if Path(place) == version else str(Path(place).relative_to(version))


def _write_parts(target: Path, rows: pa.Table, columns: Sequence[str], number: int) -> None:
    for name, part in partitions(rows, columns):
        if part.num_rows or not name:
            (target / name).mkdir(parents=True, exist_ok=True)
            for offset in range(0, max(part.num_rows, 1), MOST_ROWS):
                _write(target / name, f"{number:012d}-{offset // MOST_ROWS:04d}", part.slice(offset, MOST_ROWS))


def _write(folder: Path, name: str, rows: pa.Table) -> None:
    pq.write_table(rows, folder / f"part-{name}.parquet", compression="snappy")


def _take_out(before: Path, target: Path, number: int, removed: pa.Table | None) -> None:
    for index, file in enumerate(sorted(before.glob("*.parquet"), reverse=True)):  # the newest rows go first
        left = None
        if removed is not None and removed.num_rows:
            rows = rows_in(file)
            left, removed = _without(rows, removed)
        if left is None:
            os.link(file, target / file.name)
        elif left.num_rows:
            _write(target, f"{number:012d}-r{index:03d}", left)
    if removed is not None and removed.num_rows:
        raise Corrupt("rows are taken back from a table that has not got them", hint="Write it anew: --full-refresh-all.")


def _without(rows: pa.Table, removed: pa.Table) -> tuple[pa.Table | None, pa.Table]:
    """The rows without those removed, None where it has none of them; and what is still to be removed elsewhere.

    One sum tells both: a row that is there counts 1, one that goes a large number, so that the two can be taken apart again.
    """
    unit = 1 << 31
    bare = removed.drop_columns([COUNT]).cast(rows.schema)
    said = np.concatenate([np.ones(rows.num_rows, np.int64), removed.column(COUNT).to_numpy() * unit])
    counts, first = summed(pa.concat_tables([rows, bare]).append_column(DIFF, pa.array(said)))
    there, going = counts % unit, counts // unit
    taken = np.minimum(there, going)
    still = going > taken
    rest = pa.concat_tables([rows, bare]).take(first[still]).append_column(COUNT, pa.array((going - taken)[still]))
    if not taken.any():
        return None, removed
    kept = there - taken
    return rows.take(np.repeat(first[kept > 0], kept[kept > 0])), rest


def _fold(folder: Path, number: int) -> None:
    files = sorted(folder.glob("*.parquet"))
    if len(files) <= MOST_FILES:
        return
    small = [file for file in files if row_count(file) < MOST_ROWS // 4]
    if len(small) > 1:
        rows = pa.concat_tables([rows_in(file) for file in small])
        for file in small:
            file.unlink()
        for offset in range(0, max(rows.num_rows, 1), MOST_ROWS):
            _write(folder, f"{number:012d}-f{offset // MOST_ROWS:03d}", rows.slice(offset, MOST_ROWS))
