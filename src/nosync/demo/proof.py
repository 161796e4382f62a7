"""Whether two homes and two folders of sink files hold the same, row for row. Reads Arrow and Parquet; no Spark."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import nosync as ns
from nosync.model.columns import DIFF, EPOCH

OF_THE_RUN = ("epoch", EPOCH, DIFF)  # when something came, not what it is


@dataclass(frozen=True)
class Compared:
    """One output of both runs: how many rows each has, and how many are not in the other."""

    name: str
    rows: int
    undisturbed_rows: int
    different: int


def compare_views(home: ns.Home, undisturbed: ns.Home) -> list[Compared]:
    """All views, as of the newest epochs. Which epoch a row came in is left out: that depends on when files came."""
    return [_compared(name, _counted(home.view(name)), _counted(undisturbed.view(name))) for name in home.views]


def compare_sinks(name: str, folder: Path, undisturbed: Path) -> Compared:
    """What the files of a sink add up to, in both folders."""
    return _compared(name, added_up(folder), added_up(undisturbed))


def added_up(folder: Path) -> Counter[Any]:
    """All changes in a sink's files, taken together: additions less removals."""
    total: Counter[Any] = Counter()
    for file in sorted(folder.glob("*.parquet")):
        table = pq.read_table(file)
        for row, times in zip(_rows(table), table.column(DIFF).to_pylist()):
            total[row] += times
    return Counter({row: times for row, times in total.items() if times})


def _counted(table: pa.Table) -> Counter[Any]:
    return Counter(_rows(table))


def _rows(table: pa.Table) -> list[tuple[Any, ...]]:
    columns = [table.column(name).to_pylist() for name in table.column_names if name not in OF_THE_RUN]
    return list(zip(*columns))


def _compared(name: str, one: Counter[Any], other: Counter[Any]) -> Compared:
    different = sum(abs(one[row] - other[row]) for row in one.keys() | other.keys())
    return Compared(name, one.total(), other.total(), different)
