"""The accumulate operator reading Parquet columns itself, where the query needs them just as they are.

With few shards each shard's task reads the columns and keeps its own hashes: one stage, no exchange. With many, tasks share out the
files, aggregate first and send blobs. Both give the same bits as the ways through Spark's reader.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nosync.graph.operators import SourceColumns
from nosync.kernels.accumulate import grouped
from nosync.kernels.groups import Groups
from nosync.kernels.xxhash64 import hash_columns
from nosync.model.errors import Unreadable
from nosync.model.identifiers import Shard
from nosync.spark.steps.accumulate_task import AccumulateTask, packed
from nosync.spark.task import CHUNK_ROWS

Batches = Iterator[pa.RecordBatch]
FEW_SHARDS = 4
REPEATED = 0.75


@dataclass(frozen=True)
class DirectTask:
    """Tasks are numbered: by shard, or by their share of the files."""

    accumulate: AccumulateTask
    columns: SourceColumns
    paths: tuple[str, ...]

    def by_shard(self, batches: Iterable[pa.RecordBatch]) -> Batches:
        """Shard by shard, see `shard`."""
        for shard in map(Shard, _numbers(batches)):
            yield from self.shard(shard)

    def shard(self, number: Shard) -> Batches:
        """Reads, keeps what belongs to the shard, advances its state."""
        held = self.accumulate.work.held_by(number)
        lower, last = np.uint64(held.lower), np.uint64(held.upper - 1)
        parts = []
        for rows in self._rows(self.paths):
            mine = np.flatnonzero((rows[0] >= lower) & (rows[0] <= last))
            if len(mine):
                parts.append((number, self._groups(*rows, mine)))
        yield from self.accumulate.advance_with(parts)

    def by_share(self, batches: Iterable[pa.RecordBatch]) -> Batches:
        """One share of the files: read, aggregate, send each shard its part."""
        for number in _numbers(batches):
            for rows in self._rows(self.paths[number : number + 1]):
                yield from packed(self._groups(*rows), self.accumulate.work.shards)

    def _groups(self, hashes: np.ndarray, keys: list[pa.Array], inputs: list[pa.Array], chosen: np.ndarray | None = None) -> Groups:
        return grouped(self.accumulate.spec, hashes, keys, inputs, np.ones(len(hashes), np.int64), chosen)

    @property
    def _text_keys(self) -> list[str]:
        """Keys of text or binary that are not inputs too: only keys may come as dictionaries."""
        types = zip(self.columns.keys, self.accumulate.spec.keys, strict=True)
        return [name for name, type in types if type in (pa.string(), pa.binary()) and name not in self.columns.inputs]

    def _rows(self, paths: Iterable[str]) -> Iterator[tuple[np.ndarray, list[pa.Array], list[pa.Array]]]:
        names = list(dict.fromkeys((*self.columns.keys, *self.columns.inputs)))
        for path in paths:
            with _named(path):
                yield from self._rows_of(path, names)

    def _rows_of(self, path: str, names: list[str]) -> Iterator[tuple[np.ndarray, list[pa.Array], list[pa.Array]]]:
        with pq.ParquetFile(path, memory_map=True) as file:
            footer = file.metadata
        if not names:
            yield np.full(footer.num_rows, 42, np.uint64), [], []
            return
        repeated = repeated_texts(footer, self._text_keys)
        with pq.ParquetFile(path, metadata=footer, read_dictionary=repeated, memory_map=True) as file:
            for batch in file.iter_batches(batch_size=CHUNK_ROWS, columns=names, use_threads=False):
                keys = [batch.column(name) for name in self.columns.keys]
                yield hash_columns(keys, batch.num_rows), keys, [batch.column(name) for name in self.columns.inputs]


@contextmanager
def _named(path: str) -> Iterator[None]:
    """What a file does wrong is said with its name. An error of the disk is none of the file's."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise Unreadable(f'file "{path}" cannot be read: {str(error).splitlines()[0]}') from error


def repeated_texts(footer: pq.FileMetaData, names: Sequence[str]) -> list[str]:
    """Those of the columns, of text or binary, that are better read as a dictionary: clearly smaller in the file than value by value.

    A guess from what the footer says of the first row group, with the least and the greatest value as samples of length.
    """
    if footer.num_row_groups == 0:
        return []
    group = footer.row_group(0)
    chunks = {chunk.path_in_schema: chunk for chunk in map(group.column, range(group.num_columns))}
    return [name for name in names if name in chunks and _is_repeated(chunks[name])]


def _is_repeated(chunk: pq.ColumnChunkMetaData) -> bool:
    facts = chunk.statistics
    if not chunk.has_dictionary_page or facts is None or not facts.has_min_max:
        return False
    value_by_value = chunk.num_values * (4 + (len(facts.min) + len(facts.max)) / 2)
    return bool(chunk.total_uncompressed_size < REPEATED * value_by_value)


@dataclass(frozen=True)
class AloneTask:
    """Operators whose changes nobody reads, in a job without a plan: partition by partition one shard of one of them."""

    tasks: tuple[DirectTask, ...]

    @property
    def partitions(self) -> int:
        return len(self.tasks) * self.tasks[0].accumulate.work.shards

    def __call__(self, partition: int, _: Iterable[int]) -> Batches:
        shard, number = divmod(partition, len(self.tasks))
        return self.tasks[number].shard(Shard(shard))


def _numbers(batches: Iterable[pa.RecordBatch]) -> Iterator[int]:
    for batch in batches:
        yield from batch.column(0).to_pylist()
