"""Families: the accumulators that aggregate functions are computed from, and what one row adds to each.

A family is kept as columns of integers that are added up (exact sums as digits, bits by exclusive or), or as the best value so far, which
holds for input that is only ever added to. Functions share families: `sum` and `avg` of one column keep one sum.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nosync.kernels import exact, order
from nosync.kernels.groups import Int64s

SUMS = ("sum", "square", "product")
BEST = ("min", "max", "and", "or")
UNKNOWN = ".unknown"  # ends the name of a mark: the best value was found elsewhere, and is not to be had (see `importing`)


@dataclass(frozen=True, slots=True)
class Family:
    """One accumulator: what is kept of the input columns."""

    kind: str
    inputs: tuple[int, ...]

    @property
    def name(self) -> str:
        return self.kind + "_".join(map(str, self.inputs))


def additive(family: Family, columns: Sequence[pa.Array], weights: Int64s | None) -> dict[str, Int64s]:
    """What each row adds to a family that is added up; `weights` say how often it counts, once where None."""
    column = columns[0]
    if family.kind == "nulls":
        marks = {} if column.null_count == 0 else {family.name: column.is_null().cast(pa.int8()).to_numpy().astype(np.int64)}
        return _weighted(marks, weights)
    if family.kind == "true":
        trues = pc.fill_null(column, False).cast(pa.int8()).to_numpy().astype(np.int64)
        return _weighted({family.name: trues}, weights)
    if family.kind == "xor":
        bits = _integers(column)
        return {family.name: bits if weights is None else np.where(weights % 2 != 0, bits, 0)}
    digits, specials = _digits(family, columns)
    if weights is not None:
        digits = exact.scale(digits, weights)
    return {f"{family.name}.{index}": digit for index, digit in digits.items()} | _weighted(specials, weights)


def _weighted(columns: dict[str, Int64s], weights: Int64s | None) -> dict[str, Int64s]:
    return columns if weights is None else {name: column * weights for name, column in columns.items()}


def _integers(column: pa.Array) -> Int64s:
    if not pa.types.is_int64(column.type):
        column = column.cast(pa.int64())
    filled: Int64s = (pc.fill_null(column, 0) if column.null_count else column).to_numpy()
    return filled


def _digits(family: Family, columns: Sequence[pa.Array]) -> tuple[exact.Digits, dict[str, Int64s]]:
    """Exact digits of the finite values, and counts of those that are not finite (they would drown the rest)."""
    type = columns[0].type
    if pa.types.is_decimal(type):
        return exact.digits_of_decimals(columns[0]), {}
    if pa.types.is_integer(type) and family.kind == "sum":
        return exact.digits_of_integers(_integers(columns[0])), {}
    values = [_doubles(column) for column in columns]
    odd = ~np.isfinite(values[0])
    specials: dict[str, Int64s] = {}
    if odd.any() and family.kind == "sum":
        first = values[0]
        for name, marks in (("nan", np.isnan(first)), ("inf", first == np.inf), ("-inf", first == -np.inf)):
            if marks.any():
                specials[f"{family.name}.{name}"] = marks.astype(np.int64)
    for i, value in enumerate(values):
        finite = np.isfinite(value)
        values[i] = value if finite.all() else np.where(finite, value, 0.0)
    match family.kind:
        case "sum":
            return exact.digits_of_doubles(values[0]), specials
        case "square":
            return exact.digits_of_products(values[0], values[0]), {}
    return exact.digits_of_products(values[0], values[1]), {}


def _doubles(column: pa.Array) -> np.ndarray:
    column = column if pa.types.is_float64(column.type) else column.cast(pa.float64())
    filled: np.ndarray = (pc.fill_null(column, 0.0) if column.null_count else column).to_numpy()
    return filled


def reduced(name: str, column: Int64s, starts: np.ndarray) -> Int64s:
    """Consecutive rows added up; a group begins at each start."""
    function = np.bitwise_xor if name.startswith("xor") else np.add
    return function.reduceat(column, starts)


def best_of(name: str, column: pa.Array, starts: np.ndarray) -> pa.Array:
    """The best of consecutive rows; a group begins at each start."""
    if name.startswith(("min", "max")):
        return order.best(column, starts, largest=name.startswith("max"))
    conjunctive = name.startswith("and")
    values = pc.fill_null(column, -1 if conjunctive else 0).to_numpy(zero_copy_only=False)
    result = (np.bitwise_and if conjunctive else np.bitwise_or).reduceat(values, starts)
    known = np.logical_or.reduceat(column.is_valid().to_numpy(zero_copy_only=False), starts)
    return pa.array(result, column.type, mask=~known)


def is_digit(name: str) -> bool:
    """Whether a column holds digits of an exact sum."""
    return name.rsplit(".", 1)[-1].lstrip("-").isdigit()


def digits_of(family: str, additive: dict[str, Int64s]) -> exact.Digits:
    """The digit columns of one exact sum."""
    prefix = family + "."
    return {int(name[len(prefix) :]): column for name, column in additive.items() if name.startswith(prefix) and is_digit(name)}
