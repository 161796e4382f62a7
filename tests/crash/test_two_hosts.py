"""Two hosts on one remote. `make crash-test` does more of the same."""

from pathlib import Path

import pytest

from tests.crash.two_hosts_run import suffer

SEED = 1


@pytest.mark.slow
def test_two_hosts_that_are_killed_and_cut_off_go_on_with_one_history(tmp_path: Path) -> None:
    both = suffer(tmp_path / "place", "local[1,8]", SEED, ["worker", "full", "partition"], kills=10)
    assert both.takeovers and both.kills
