"""More of the same: `make test` has a few seeds and ways, `make test-long` the rest."""

from collections.abc import Iterable
from typing import Any

import pytest


def more(values: Iterable[Any]) -> list[Any]:
    """Parameters that are left out unless they are asked for."""
    return [pytest.param(value, marks=pytest.mark.long) for value in values]
