"""`run.why`: from a row of a view back to its input, as far as that is kept."""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from nosync.bridge.columns import column_named
from nosync.bridge.frames import unobserved
from nosync.history.home import Home
from nosync.journal.entries import Opened
from nosync.model.columns import EPOCH
from nosync.model.errors import NosyncError
from nosync.model.identifiers import Epoch
from nosync.model.why import Contribution, Why
from nosync.runtime.program import Program
from nosync.spark.engine import SparkEngine
from nosync.spark.origins import Origin, origins

MOST_EPOCHS = 500


def why(program: Program, engine: SparkEngine, home: Home, view: str, values: Mapping[str, Any], epoch: Epoch, most: int) -> Why:
    """At most `most` input rows of each source, and the last `MOST_EPOCHS` epochs."""
    result = home.view(view, epoch or None).where(**values).slice(0, most).to_pylist() if epoch else []
    query = program.queries[view]
    for name, value in values.items():
        query = query.where(column_named(name).eqNullSafe(F.lit(value)))
    found = list(origins(engine.context.catalyst, query, program.queries, program.leaves))
    openings = [entry for entry in home.openings() if entry.epoch <= epoch]
    notes = [f"only the last {MOST_EPOCHS} of {len(openings)} epochs were looked at"] if len(openings) > MOST_EPOCHS else []
    parts: list[Contribution] = []
    rows: dict[str, tuple[Mapping[str, Any], ...]] = {}
    for name in dict.fromkeys(origin.source.name for origin in found):
        looked = _Looked(engine, home, name, [origin for origin in found if origin.source.name == name], most)
        looked.at(openings[-MOST_EPOCHS:])
        parts += looked.parts
        rows[name] = tuple(looked.rows)
        notes += looked.notes
    return Why(view, values, epoch, tuple(result), tuple(sorted(parts, key=lambda part: part.epoch)), rows, tuple(notes))


class _Looked:
    """What one source has to say. It may stand in the query several times: then a row counts if it fits anywhere."""

    def __init__(self, engine: SparkEngine, home: Home, source: str, wanted: Sequence[Origin], most: int) -> None:
        self.engine, self.home, self.source, self.wanted, self.most = engine, home, source, wanted, most
        self.parts: list[Contribution] = []
        self.rows: list[Mapping[str, Any]] = []
        self.notes: list[str] = []

    def at(self, openings: Sequence[Opened]) -> None:
        mine = [entry for entry in openings if self.source in entry.slices]
        trimmed = self.home.image.trimmed.get(self.source, 0)
        there = [entry for entry in mine if entry.epoch > trimmed]
        if len(there) < len(mine):
            self.notes.append(f'the input of "{self.source}" up to epoch {trimmed} was given up')
        if not any(origin.conditions for origin in self.wanted):
            self.notes.append(f'the values say nothing of the rows of "{self.source}": any of them could have had a part')
        if len(self.wanted) > 1:
            self.notes.append(f'"{self.source}" stands in the query {len(self.wanted)} times: a row may be given as often')
        counts = self._counted(there) if there else {}
        for entry in mine:
            rows = None if counts is None or entry.epoch <= trimmed else counts.get(entry.epoch, 0)
            self.parts.append(Contribution(self.source, entry.epoch, entry.at, entry.slices[self.source], rows))

    def _counted(self, there: Sequence[Opened]) -> dict[Epoch, int] | None:
        """How many rows by epoch; None where they cannot be read."""
        try:
            frame = reduce(DataFrame.unionAll, [self._of(entry) for entry in there])
            counts = {Epoch(row[0]): int(row[1]) for row in frame.groupBy(EPOCH).count().collect()}
            kept = frame.orderBy(EPOCH).limit(self.most)
            self.rows = [row.asDict(recursive=True) for row in kept.collect()]
        except Exception as error:
            words = error.message if isinstance(error, NosyncError) else str(error).splitlines()[0]
            self.notes.append(f'the input of "{self.source}" cannot be read any more: {words}'[:500])
            return None
        if sum(counts.values()) > len(self.rows):
            self.notes.append(f'of {sum(counts.values()):,} rows of "{self.source}", {len(self.rows):,} are given')
        return counts

    def _of(self, entry: Opened) -> DataFrame:
        rows = unobserved(self.engine.rows_of(self.source, entry))
        return self._fitting(rows).withColumn(EPOCH, F.lit(entry.epoch).cast("bigint"))

    def _fitting(self, rows: DataFrame) -> DataFrame:
        if not all(origin.conditions for origin in self.wanted):
            return rows
        catalyst = self.engine.context.catalyst
        found = [origin.of(catalyst, rows) for origin in self.wanted]
        return found[0] if len(found) == 1 else reduce(DataFrame.unionAll, found)
