"""Python functions of rows, held to what they declare: the same arguments give the same result.

A function that draws random numbers or asks the time, and does not say so, would leave rows behind for good: when a row is removed, the
function is called again, and what it then returns was never added. So a few rows of each task are computed twice. Runs in Spark's Python
workers.
"""

import math
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from nosync.model.errors import Failed

FEW = 8  # rows, or calls, of a task that are computed twice
VECTORS = (pd.Series, pd.DataFrame, pa.Array, pa.ChunkedArray)


class Repeatable:
    """The function, called twice for its first few rows. `Failed` where it gives two answers."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name, self.function, self.left = name, function, FEW

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if self.left <= 0 or any(isinstance(value, Iterator) for value in (*arguments, *named.values())):
            return self.function(*arguments, **named)
        if any(isinstance(value, VECTORS) for value in (*arguments, *named.values())):
            self.left = 0
            self._compare(self._of_few(arguments, named), self._of_few(arguments, named))
            return self.function(*arguments, **named)
        self.left -= 1
        given = deepcopy((arguments, named))
        result, again = self.function(*arguments, **named), self.function(*given[0], **given[1])
        self._compare(result, again)
        return result

    def _of_few(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        return self.function(*map(_few, arguments), **{name: _few(value) for name, value in named.items()})

    def _compare(self, first: Any, again: Any) -> None:
        if not same(first, again):
            answers = f"{_short(first)}, then {_short(again)}"
            raise Failed(f'function "{self.name}" is not deterministic: for the same arguments it gave {answers}')


def _few(value: Any) -> Any:
    if isinstance(value, pd.Series | pd.DataFrame):
        return value.iloc[:FEW].copy()  # a function may change what it is given
    return value.slice(0, FEW) if isinstance(value, pa.Array | pa.ChunkedArray) else value


def same(one: Any, other: Any) -> bool:
    """Whether two results are equal, as far as that can be known; NaN equals itself."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float) and not isinstance(one, np.generic):
        return one == other or (math.isnan(one) and math.isnan(other))
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, pd.Series | pd.DataFrame):
        return same(one.to_numpy().tolist(), other.to_numpy().tolist())
    if isinstance(one, np.ndarray):
        return same(one.tolist(), other.tolist())
    if isinstance(one, pa.Array | pa.ChunkedArray):
        return same(one.to_pylist(), other.to_pylist())
    if isinstance(one, np.generic):
        return same(one.item(), other.item())
    if getattr(type(one), "__eq__", None) is object.__eq__:
        return True  # objects that are equal to nothing else say nothing
    found = one == other
    return found if isinstance(found, bool) else True


def _short(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "..."
