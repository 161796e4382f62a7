"""Whoever runs the tests sees which were left out, and why."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.conftest import LEFT_OUT, pytest_collection_modifyitems, pytest_terminal_summary


@pytest.mark.parametrize("asked", [False, True])
def test_tests_that_are_left_out_are_named_with_the_reason(request: pytest.FixtureRequest, asked: bool) -> None:
    config: Any = SimpleNamespace(getoption=lambda name: asked, stash={}, hook=SimpleNamespace(pytest_deselected=lambda items: None))
    request.node.add_marker("connectors")
    items = [request.node]
    pytest_collection_modifyitems(config, items)
    assert bool(items) == asked
    lines: list[str] = []
    reporter: Any = SimpleNamespace(config=config, stats={}, write_line=lambda line, **_: lines.append(line))
    pytest_terminal_summary(reporter)
    named = f"  {request.node.nodeid.partition('[')[0]}"
    assert lines == ([] if asked else ["left out, servers are killed and waited for: `make test-connectors` runs it:", named])
    assert LEFT_OUT in config.stash
