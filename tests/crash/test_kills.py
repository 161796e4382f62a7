"""Real processes, really killed. `make crash-test` does more of the same."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.crash.killing import kill_and_judge
from tests.longer import more

SEED = 1


KINDS = [["worker", "recovering"], *more([["worker", "merger", "driver", "recovering", "worker"]])]


@pytest.mark.slow
@pytest.mark.parametrize("kinds", KINDS, ids=len)
def test_a_flow_that_is_killed_again_and_again_ends_as_if_it_had_not_been(quick: SparkSession, tmp_path: Path, kinds: list[str]) -> None:
    kill_and_judge(quick, tmp_path / "local", kinds, SEED)


@pytest.mark.long
def test_a_flow_whose_executors_are_killed_ends_as_if_they_had_not_been(quick: SparkSession, tmp_path: Path) -> None:
    kill_and_judge(quick, tmp_path / "cluster", ["executor", "executor"], SEED, "local-cluster[2,1,1024]")
