"""Rows as programs give them: values of numpy and pandas are Python's, and nothing is cut off in silence."""

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pyspark.sql.types import ArrayType, DataType, DoubleType, IntegerType, LongType, StructType

from nosync.sources.given import plain, would_lose

NOON = datetime.datetime(2026, 5, 1, 12)


def test_values_of_numpy_and_pandas_are_pythons_own() -> None:
    row = plain((np.int64(3), np.float32(0.5), np.bool_(True), pd.Timestamp(NOON), "a", None))
    assert row == (3, 0.5, True, NOON, "a", None)
    assert [type(value) for value in row] == [int, float, bool, datetime.datetime, str, type(None)]
    assert plain({"at": pd.Timestamp(NOON)}) == {"at": NOON}


@pytest.mark.parametrize(
    ("value", "type", "lost"),
    [
        (3.5, IntegerType(), True), (3.0, IntegerType(), False), (float("nan"), LongType(), True), (Decimal("0.5"), LongType(), True),
        (True, IntegerType(), False), (3.5, DoubleType(), False), (None, IntegerType(), False), ([1, 2.5], ArrayType(IntegerType()), True),
        ((1, 2.5), StructType().add("a", "integer").add("b", "integer"), True),
        ((1, 2.5), StructType().add("a", "integer").add("b", "double"), False),
    ],
)  # fmt: skip
def test_what_would_be_cut_off_is_found(value: Any, type: DataType, lost: bool) -> None:
    assert would_lose(value, type) is lost
