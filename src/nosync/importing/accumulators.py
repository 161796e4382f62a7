"""Spark's aggregation buffers as accumulators: a few numbers that a sum, an average or a variance has come to, taken apart again.

Counts, integers, decimals, minima and maxima come over exactly. Of doubles Spark has only the rounded value: the exact sum goes on from
that, so the result right after is Spark's own. What a buffer does not say (how many rows a group has whose query counts none) never shows:
rows of such input are only added. Pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nosync.kernels import exact
from nosync.kernels.accumulate import Accumulation, collapse, normalise
from nosync.kernels.families import BEST, UNKNOWN, Family, additive, digits_of
from nosync.kernels.functions import FUNCTIONS, Result
from nosync.kernels.groups import Groups, Int64s, Uint64s
from nosync.model.errors import Invalid

DIGITS = 8  # of 32 bits, kept of a number that has no end
LOST = "goes on from the double that Spark had"
ROUNDED = "goes on from Spark's double, which is exact up to 2^53"


@dataclass(frozen=True, slots=True)
class Buffers:
    """Which columns of Spark's state belong to a result, from one on."""

    result: Result
    first: int
    count: int

    def of(self, columns: Sequence[pa.Array]) -> Sequence[pa.Array]:
        return columns[self.first : self.first + self.count]


def remark(result: Result, inputs: Sequence[pa.DataType]) -> str:
    """What becomes of a result that does not come over to the last bit; empty where it does."""
    if result.function not in ("sum", "avg") or not result.inputs:
        return "" if "sum" not in {family.kind for family in FUNCTIONS[result.function].needs(result, inputs)} else LOST
    if pa.types.is_floating(inputs[result.inputs[0]]):
        return LOST
    return ROUNDED if result.function == "avg" and pa.types.is_integer(inputs[result.inputs[0]]) else ""


def groups_of(
    spec: Accumulation, buffers: Sequence[Buffers], hashes: Uint64s, keys: list[pa.Array], columns: Sequence[pa.Array]
) -> Groups:
    """The groups of some rows of state, collapsed as a task hands them on."""
    found = _Found(spec, len(hashes))
    for buffer in sorted(buffers, key=lambda one: _rank(one.result)):
        found.take(buffer.result, buffer.of(columns))
    n = found.rows()
    groups = Groups(hashes, keys, n, found.additive | found.nulls(n) | _unknown(spec, n), found.best)
    groups.additive = normalise(spec, groups.additive)
    return collapse(spec, groups)


def _unknown(spec: Accumulation, n: Int64s) -> dict[str, Int64s]:
    """Marks for what dropDuplicates met first: its keys are in the state, nothing else is."""
    names = [family.name for one in spec.results if one.function == "first" for family in FUNCTIONS["first"].needs(one, spec.inputs)]
    return {f"{name}{UNKNOWN}": np.ones_like(n) for name in names}


def _rank(result: Result) -> int:
    """What says a sum exactly comes first; averages and moments are left for where nothing else does. Of booleans the greatest comes
    before the least, which may say that there is another value.
    """
    return {"count": 0, "sum": 1, "avg": 2 if pa.types.is_decimal(result.type) else 3, "min": 5}.get(result.function, 4)


class _Found:
    """What the buffers of a few groups have said so far."""

    def __init__(self, spec: Accumulation, rows: int) -> None:
        self.spec, self.length = spec, rows
        self.counted: Int64s | None = None
        self.known: dict[int, Int64s] = {}
        self.present: dict[int, Int64s] = {}
        self.additive: dict[str, Int64s] = {}
        self.best: dict[str, pa.Array] = {}

    def take(self, result: Result, columns: Sequence[pa.Array]) -> None:
        match result.function:
            case "count" if not result.inputs:
                self.counted = _whole(columns[0])
            case "count":
                self.known[result.inputs[0]] = _whole(columns[0])
            case "sum":
                self._sum(result, columns)
            case "avg":
                self._average(result, columns)
            case "xor":
                self._presence(result.inputs[0], columns[0].is_valid())
                self.additive[f"xor{result.inputs[0]}"] = _whole(columns[0])
            case "min" | "max" | "and" | "or":
                self._best(result, columns[0])
            case _:
                self._moments(result, columns)

    def rows(self) -> Int64s:
        """How many rows the groups have; at least as many as any column has values where no buffer counts them."""
        if self.counted is not None:
            return self.counted
        counts = [np.ones(self.length, np.int64), *self.known.values(), *self.present.values()]
        found: Int64s = np.maximum.reduce(counts)
        return found

    def nulls(self, n: Int64s) -> dict[str, Int64s]:
        known = self.present | self.known
        wanted = {family.inputs[0] for family in self.spec.families if family.kind == "nulls"}
        return {f"nulls{i}": n - known[i] for i in sorted(wanted) if i in known}

    def _presence(self, i: int, there: pa.Array, least: Int64s | None = None) -> None:
        """That there is some value, where nobody counts them."""
        found = there.cast(pa.int8()).to_numpy(zero_copy_only=False).astype(np.int64)
        found = found if least is None else np.maximum(found, least)
        self.present[i] = np.maximum(self.present.get(i, 0), found)

    def _sum(self, result: Result, columns: Sequence[pa.Array]) -> None:
        there = columns[0].is_valid() if len(columns) == 1 else pc.invert(columns[1])
        if pc.any(pc.and_(there, columns[0].is_null())).as_py():
            raise Invalid(f"{result.text} has overflowed in the checkpoint", hint="Widen the type in a new query: this sum cannot go on.")
        self._presence(result.inputs[0], there)
        self.additive |= additive(Family("sum", result.inputs), [columns[0]], None)

    def _average(self, result: Result, columns: Sequence[pa.Array]) -> None:
        i = result.inputs[0]
        self.known[i] = _whole(columns[1])
        if not self._has_sum(i):
            self.additive |= additive(Family("sum", (i,)), [columns[0]], None)

    def _has_sum(self, i: int) -> bool:
        return any(name.startswith(f"sum{i}.") for name in self.additive)

    def _best(self, result: Result, column: pa.Array) -> None:
        [*families] = FUNCTIONS[result.function].needs(result, self.spec.inputs)
        if families[0].kind in BEST:
            self.best[families[0].name] = column.cast(self.spec.inputs[result.inputs[0]])
            return
        i, values = result.inputs[0], column.cast(pa.int8()).fill_null(0).to_numpy().astype(np.int64)
        if result.function == "max":  # some value is true
            self.additive[f"true{i}"] = np.maximum(self.additive.get(f"true{i}", 0), values)
            self._presence(i, column.is_valid())
        else:  # all are, or at least one is not
            true = self.additive.get(f"true{i}", np.zeros(self.length, np.int64))
            self.additive[f"true{i}"] = np.where(values > 0, np.maximum(true, 1), true)
            false = column.is_valid().to_numpy(zero_copy_only=False) & (values == 0)
            self._presence(i, column.is_valid(), np.where(false, true + 1, 0))

    def _moments(self, result: Result, columns: Sequence[pa.Array]) -> None:
        """n, averages, and sums of products of distances from them."""
        numbers = [column.fill_null(0.0).to_numpy() for column in columns]
        n, averages = numbers[0], numbers[1 : 1 + len(result.inputs)]
        for i, average in zip(result.inputs, averages, strict=True):
            self.known[i] = n.astype(np.int64)
            if not self._has_sum(i):
                self.additive |= _products(f"sum{i}", n, average)
        for (kind, inputs), distances in zip(_distances(result), numbers[1 + len(result.inputs) :], strict=True):
            self.additive |= self._about(Family(kind, inputs).name, inputs, distances, n)

    def _about(self, name: str, inputs: Sequence[int], distances: np.ndarray, n: np.ndarray) -> dict[str, Int64s]:
        """distance + sum * sum / n: what the products themselves add up to."""
        sums = [exact.to_objects(digits_of(f"sum{i}", self.additive), self.length) for i in (inputs[0], inputs[-1])]
        (x, x_exponent), (y, y_exponent) = sums
        scale = Fraction(2) ** (32 * (x_exponent + y_exponent))
        finite = np.where(np.isfinite(distances), distances, 0.0)
        values = [Fraction(d) + scale * a * b / int(c) if c else Fraction(0) for d, a, b, c in zip(finite.tolist(), x, y, n.tolist())]
        return {f"{name}.{index}": digit for index, digit in _digits_of_fractions(values).items()}


def _distances(result: Result) -> list[tuple[str, tuple[int, ...]]]:
    """Of which products the last columns of its buffer are."""
    found: list[tuple[str, tuple[int, ...]]] = [("product", result.inputs)] if len(result.inputs) == 2 else []
    if result.function == "corr" or not found:
        found += [("square", (i,)) for i in result.inputs]
    return found


def _whole(column: pa.Array) -> Int64s:
    found: Int64s = column.cast(pa.int64()).fill_null(0).to_numpy()
    return found


def _products(name: str, n: np.ndarray, average: np.ndarray) -> dict[str, Int64s]:
    """n * average exactly, with a mark for what is not finite."""
    finite = np.isfinite(average)
    digits = exact.digits_of_products(n, np.where(finite, average, 0.0))
    marks = {".nan": np.isnan(average), ".inf": average == np.inf, ".-inf": average == -np.inf}
    return {f"{name}.{i}": digit for i, digit in digits.items()} | {
        name + mark: where.astype(np.int64) for mark, where in marks.items() if where.any()
    }


def _digits_of_fractions(values: Sequence[Fraction]) -> exact.Digits:
    """Digits of 32 bits, from the first of each number on as many as are kept."""
    digits: dict[int, Int64s] = {}
    for row, value in enumerate(values):
        if not value:
            continue
        lowest = (value.numerator.bit_length() - value.denominator.bit_length()) // 32 - DIGITS
        shifted = value / Fraction(2) ** (32 * lowest)
        whole, sign = abs(shifted.numerator) // shifted.denominator, 1 if shifted > 0 else -1
        index = lowest
        while whole:
            digits.setdefault(index, np.zeros(len(values), np.int64))[row] = sign * (whole & 0xFFFFFFFF)
            whole, index = whole >> 32, index + 1
    return digits
