"""The 22 queries of TPC-H over tables that grow and shrink: at every epoch what Spark answers in batch."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

import nosync as ns
from bench.tpch.history import Life, history
from bench.tpch.queries import queries
from bench.tpch.tables import Tables
from nosync.testing import Change, check

EPOCHS = 3
SCALE = 0.00001


def _rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _changes(lives: dict[str, Life]) -> list[Change]:
    return [
        Change(
            {name: _rows(life.added(epoch)) for name, life in lives.items()},
            {name: rows for name, life in lives.items() if (rows := _rows(life.removed(epoch)))},
        )
        for epoch in range(1, EPOCHS + 1)
    ]


@pytest.mark.slow
def test_the_22_queries_equal_batch_at_every_epoch(quick: SparkSession, tmp_path: Path) -> None:
    lives = history(Tables(SCALE, seed=1, focus=0.7).all, EPOCHS, moving=0.1)
    schemas = {name: from_arrow_schema(life.table.schema) for name, life in lives.items()}

    def program(flow: Any) -> None:
        for name in lives:
            flow.source(name)
        for name, query in queries(SCALE).items():
            flow.sql(f"create view {name} as {query}")

    check(quick, program, schemas, _changes(lives), tmp_path, shards=2)
    home = ns.open(tmp_path)
    unanswered = [view for view in home.views if not any(home.view(view, at=epoch).num_rows for epoch in range(1, EPOCHS + 1))]
    assert not unanswered, "the tables give these queries nothing to find"
