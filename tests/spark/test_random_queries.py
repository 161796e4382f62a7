"""Random queries over random changes: each view at each epoch is what Spark answers in batch. The seed is in the test's name."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from nosync.testing import check
from tests.spark.random_cases import Case


@pytest.mark.parametrize("seed", range(10))
def test_a_random_query_equals_recomputation(quick: SparkSession, tmp_path: Path, seed: int) -> None:
    case = Case(seed, removing=seed % 2 == 0)
    check(quick, case.program, case.schemas, case.changes, tmp_path, case.shards)
