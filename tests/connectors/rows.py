"""Changes for sinks, given by a test."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from nosync.model.sink import Identity

IDENTITY = Identity("flow", "out", "1.first")


@dataclass(frozen=True)
class Rows:
    """`Changes` of one epoch: rows of the schema, each with its diff."""

    epoch: int
    columns: pa.Schema
    rows: tuple[tuple[Any, ...], ...]

    @property
    def empty(self) -> bool:
        return not self.rows

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([*self.columns, ("_epoch", pa.int64()), ("_diff", pa.int64())])

    def table(self) -> pa.Table:
        columns: list[list[Any]] = [list(values) for values in zip(*self.rows)] or [[] for _ in self.schema]
        if self.rows:
            columns.insert(len(self.columns), [self.epoch] * len(self.rows))
        return pa.table([pa.array(values, column.type) for values, column in zip(columns, self.schema)], schema=self.schema)

    def batches(self) -> Iterator[pa.RecordBatch]:
        yield from self.table().to_batches()

    def frame(self) -> Any:
        raise NotImplementedError


def changes(epoch: int, columns: dict[str, pa.DataType], *rows: tuple[Any, ...]) -> Rows:
    """`rows` end with their diff."""
    return Rows(epoch, pa.schema(list(columns.items())), rows)
