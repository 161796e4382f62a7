"""Runs one program twice, as a flow epoch by epoch and by Spark in batch, and compares every view at every epoch."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from nosync.flow.flow import Flow
from nosync.history.home import Home
from nosync.runtime.starting import begin
from nosync.sources.memory import Memory
from nosync.testing.batch import Batch
from nosync.testing.judge import disagreements as differences
from nosync.testing.rows import Admissible

Rows = Sequence[tuple[Any, ...]]
Program = Callable[[Any], None]  # declares sources by name and views, on a Flow or on a Batch
Schema = str | StructType
Shards = int | Sequence[int]


@dataclass(frozen=True)
class Change:
    """What happens to the sources in one epoch, by source."""

    added: Mapping[str, Rows] = field(default_factory=dict)
    removed: Mapping[str, Rows] = field(default_factory=dict)


class _Face:
    """A flow whose sources are rows in memory, under the names the program asks for."""

    def __init__(self, flow: Flow, sources: Mapping[str, Memory]) -> None:
        self.flow, self.sources = flow, sources
        self.view, self.sql = flow.view, flow.sql

    def source(self, name: str, source: Any = None, **settings: Any) -> DataFrame:
        return self.flow.source(name, self.sources[name], **{"checked": False, **settings})


def fill(
    spark: SparkSession, program: Program, schemas: Mapping[str, Schema], changes: Sequence[Change], home: Path, shards: Shards = 2
) -> tuple[str, ...]:
    """Runs the program as a flow over the changes, one epoch each; returns the names of its views. The home is left to be read. `shards`
    may be a number for each epoch: the flow is rescaled in between.
    """
    removing = {name for change in changes for name in change.removed}
    sources = {name: Memory(schema, append_only=name not in removing) for name, schema in schemas.items()}
    flow = Flow("oracle", spark)
    program(_Face(flow, sources))
    numbers = [shards] * len(changes) if isinstance(shards, int) else shards
    stepping = begin(flow.program(), home, numbers[0]).recover()
    try:
        for number, change in enumerate(changes, start=1):
            stepping.rescaling.ask(numbers[number - 1])
            for name, rows in change.added.items():
                sources[name].pending.append((list(rows), 1))
            for name, rows in change.removed.items():
                sources[name].pending.append((list(rows), -1))
            stepping.step()
            assert stepping.image.epoch == number, f"change {number} became epoch {stepping.image.epoch}"
    finally:
        stepping.close()
    return Home(home).views


def check(
    spark: SparkSession,
    program: Program,
    schemas: Mapping[str, Schema],
    changes: Sequence[Change],
    home: Path,
    shards: Shards = 2,
    admissible: Mapping[str, Admissible] | None = None,
    expected: Program | None = None,
    tolerance: float = 1e-9,
) -> None:
    """Raises AssertionError, naming view and epoch, where the flow and Spark disagree.

    `expected` is the program for Spark where it differs from the flow's: it then gives what `admissible`, by column, decides with.
    """
    for view, epoch, found in disagreements(spark, program, schemas, changes, home, shards, admissible, expected, tolerance):
        raise AssertionError(f'view "{view}" at epoch {epoch} of {len(changes)} ({shards} shards): {found}')


def disagreements(
    spark: SparkSession,
    program: Program,
    schemas: Mapping[str, Schema],
    changes: Sequence[Change],
    home: Path,
    shards: Shards = 2,
    admissible: Mapping[str, Admissible] | None = None,
    expected: Program | None = None,
    tolerance: float = 1e-9,
) -> Iterator[tuple[str, int, str]]:
    """Like `check`, but lists everything that differs: the view, the epoch, and what is missing or too much."""
    fill(spark, program, schemas, changes, home, shards)
    tables = Tables(spark, schemas, changes)

    def batch_at(epoch: int) -> Batch:
        batch = tables.batch(epoch)
        (expected or program)(batch)
        return batch

    yield from differences(Home(home), batch_at, tolerance=tolerance, admissible=admissible)


class Tables:
    """The input of a history, as tables after any of its epochs. Spark is given each row once; tables are cut from what it made of them."""

    def __init__(self, spark: SparkSession, schemas: Mapping[str, Schema], changes: Sequence[Change]) -> None:
        self.spark, self.changes = spark, changes
        self.empty = {name: spark.createDataFrame([], schema) for name, schema in schemas.items()}
        self.rows = {name: [row for change in changes for row in change.added.get(name, ())] for name in schemas}
        self.all = {
            name: spark.createDataFrame(rows, self.empty[name].schema, verifySchema=False).toArrow()
            for name, rows in self.rows.items()
            if rows
        }
        self._made: dict[tuple[str, tuple[int, ...]], DataFrame] = {}

    def after(self, epoch: int) -> dict[str, DataFrame]:
        return {name: self._table(name, self._kept(name, self.changes[:epoch])) for name in self.empty}

    def batch(self, epoch: int) -> Batch:
        """The face of a flow over the tables after an epoch."""
        kept = {name: self._kept(name, self.changes[:epoch]) for name in self.empty}
        return Batch(self.spark, {name: self._table(name, rows) for name, rows in kept.items()}, kept)

    def _kept(self, name: str, changes: Sequence[Change]) -> tuple[int, ...]:
        """Which of the rows are there after the changes."""
        gone = Counter(repr(row) for change in changes for row in change.removed.get(name, ()))
        kept = []
        for index in range(sum(len(change.added.get(name, ())) for change in changes)):
            text = repr(self.rows[name][index])
            if gone[text]:
                gone[text] -= 1
            else:
                kept.append(index)
        return tuple(kept)

    def _table(self, name: str, rows: tuple[int, ...]) -> DataFrame:
        """One DataFrame for all epochs in which the table holds the same rows."""
        if rows and (name, rows) not in self._made:
            self._made[name, rows] = self.spark.createDataFrame(self.all[name].take(list(rows)), self.empty[name].schema)
        return self._made[name, rows] if rows else self.empty[name]
