"""The example with everything in it: flow, broker and database are killed while orders go on, and all outputs are compared."""

from pathlib import Path

import pytest

from examples.shop_live.__main__ import play


@pytest.mark.connectors
def test_whatever_is_killed_nothing_is_lost_and_nothing_comes_twice(tmp_path: Path) -> None:
    assert play(kills=3, seed=7, folder=tmp_path, seconds=3.0) > 100
