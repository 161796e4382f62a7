"""Random SQL over random changes: each view at each epoch is what Spark answers in batch. The seed is in the test's name."""

import pytest
from pyspark.sql import SparkSession

from tests.longer import more
from tests.random_sql.judge import grown, judge, reported, ways_apart, wrong
from tests.random_sql.shrink import shrunk


@pytest.mark.parametrize("seed", [0, 1, *more([2, 3])])
def test_random_queries_equal_recomputation(quick: SparkSession, seed: int) -> None:
    case = grown(seed)
    for view, text in wrong(judge(quick, case)).items():
        smaller = shrunk(case.alone(view), lambda other: bool(wrong(judge(quick, other))), tries=20)
        pytest.fail(f"seed {seed}: {reported(smaller, text)}")


@pytest.mark.parametrize("seed", [1, *more([5])])
def test_every_way_gives_the_same_bits(quick: SparkSession, seed: int) -> None:
    case = grown(seed, views=4)
    assert not ways_apart(quick, case), reported(case, f"seed {seed}")
