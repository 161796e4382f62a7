"""Functions of rows: a few rows are computed twice, and must come out the same."""

import math
import random
from collections.abc import Callable, Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from nosync.compile.repeatable import FEW, Repeatable
from nosync.model.errors import Failed


class Opaque:
    """Equal to nothing but itself."""


def growing(values: list[int]) -> int:
    values.append(1)
    return len(values)


@pytest.mark.parametrize(
    ("function", "argument"),
    [
        (lambda x: x + 1, 1),
        (lambda x: math.nan, 1),
        (lambda x: [x, {"a": math.nan}, (Decimal(1), datetime(2026, 1, 1))], 1),
        (lambda x: np.float64("nan"), 1),
        (lambda x: np.array([x, math.nan]), 1),
        (lambda x: Opaque(), 1),
        (lambda x: None, 1),
        (growing, [1]),
    ],
)
def test_a_function_that_repeats_itself_is_left_alone(function: Callable[..., Any], argument: Any) -> None:
    expected = repr(function(*[list(argument) if isinstance(argument, list) else argument]))
    found = repr(Repeatable("f", function)(argument))
    assert found == expected or "Opaque" in found


def test_a_function_of_vectors_may_change_what_it_is_given() -> None:
    def raised(values: pd.Series) -> pd.Series:
        values += 1
        return values

    assert Repeatable("raised", raised)(pd.Series([1.0, math.nan, 3.0])).tolist()[::2] == [2.0, 4.0]
    assert Repeatable("f", lambda values: pc.add(values, 1))(pa.array([1, None])).to_pylist() == [2, None]


@pytest.mark.parametrize(
    ("function", "argument"),
    [
        (lambda x: random.random(), 1),
        (lambda x: [x, {"at": random.random()}], 1),
        (lambda x: x + np.random.random(len(x)), pd.Series([1.0, 2.0])),
        (lambda x: pa.array([random.random() for _ in x]), pa.array([1, 2])),
    ],
)
def test_a_function_that_draws_random_numbers_is_found_out(function: Callable[..., Any], argument: Any) -> None:
    with pytest.raises(Failed, match=r'function "f" is not deterministic: for the same arguments it gave .*, then .*'):
        Repeatable("f", function)(argument)


def test_only_a_few_calls_are_made_twice() -> None:
    calls: list[int] = []
    checked = Repeatable("f", lambda x: calls.append(x))
    for number in range(100):
        checked(number)
    assert len(calls) == 100 + FEW


def test_a_function_of_iterators_is_called_once() -> None:
    def doubled(batches: Iterator[pd.Series]) -> Iterator[pd.Series]:
        yield from (batch * 2 for batch in batches)

    assert [batch.tolist() for batch in Repeatable("doubled", doubled)(iter([pd.Series([1, 2])]))] == [[2, 4]]
