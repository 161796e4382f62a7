"""accumulate: count, sum, avg, moments, min, max and bits by group, in proportion to the change.

`grouped` turns rows into accumulators and adds up those of equal keys, `collapse` adds up groups from several places, `advance` adds a
collapsed change to the state. All three see multisets: no order, split or retry of the input changes a bit of the result. Sums are exact.
Minimum, maximum and bitwise and/or hold for input that is only ever added to; everything else can also be taken away again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nosync.kernels import exact, order
from nosync.kernels.groups import Groups, Int64s, concat, decoded, sort_by_key
from nosync.state.layer import Layer
from nosync.state.search import BloomUse, lookup

Overflow = Literal["raise", "wrap", "null"]
SUMS = ("sum", "square", "product")


@dataclass(frozen=True, slots=True)
class Result:
    """One aggregate function over input columns; `type` is what Spark says it returns."""

    function: str
    inputs: tuple[int, ...]
    type: pa.DataType
    overflow: Overflow = "raise"
    text: str = ""


@dataclass(frozen=True, slots=True)
class Family:
    """One accumulator: what is kept of the input columns."""

    kind: str
    inputs: tuple[int, ...]

    @property
    def name(self) -> str:
        return self.kind + "_".join(map(str, self.inputs))


@dataclass(frozen=True, slots=True)
class Accumulation:
    """What an accumulate operator computes. `whole`: one group without a key that exists even over no rows."""

    keys: tuple[pa.DataType, ...]
    inputs: tuple[pa.DataType, ...]
    results: tuple[Result, ...]
    whole: bool = False

    @property
    def families(self) -> tuple[Family, ...]:
        return tuple(dict.fromkeys(family for result in self.results for family in needed(result, self.inputs)))

    @property
    def mostly_new(self) -> bool:
        """Whether it looks for duplicates: then most keys are met for the first time, and layers have Bloom filters."""
        return not self.whole and all(result.function == "first" for result in self.results)

    @property
    def best(self) -> dict[str, pa.DataType]:
        return {f.name: self.inputs[f.inputs[0]] for f in self.families if f.kind in ("min", "max", "and", "or")}


MOMENTS = ("var_pop", "var_samp", "stddev_pop", "stddev_samp")
PAIRS = ("covar_pop", "covar_samp", "corr")


def needed(result: Result, inputs: Sequence[pa.DataType]) -> list[Family]:
    """The accumulators that a function is computed from."""
    nulls = [Family("nulls", (i,)) for i in result.inputs]
    sums = [Family("sum", (i,)) for i in result.inputs]
    squares = [Family("square", (i,)) for i in result.inputs]
    match result.function:
        case "count":
            return nulls
        case "sum" | "avg":
            return nulls + sums
        case "min" | "max" if pa.types.is_boolean(inputs[result.inputs[0]]):
            return [*nulls, Family("true", result.inputs)]
        case "min" | "max" | "and" | "or":
            return [Family(result.function, result.inputs)]
        case "first":
            return [Family("min", result.inputs)]
        case "xor":
            return [*nulls, Family("xor", result.inputs)]
        case function if function in MOMENTS:
            return nulls + sums + squares
        case "covar_pop" | "covar_samp":
            return [*nulls, *sums, Family("product", result.inputs)]
        case "corr":
            return [*nulls, *sums, *squares, Family("product", result.inputs)]
    raise ValueError(result.function)


def lift(spec: Accumulation, hashes: np.ndarray, keys: list[pa.Array], inputs: Sequence[pa.Array], diffs: Int64s) -> Groups:
    """Each row as a group of its own, not yet sorted."""
    weights = None if len(diffs) == 0 or (diffs.min() == 1 and diffs.max() == 1) else diffs
    rows = Groups(hashes, keys, diffs, {}, {})
    for family in spec.families:
        columns = [inputs[i] for i in family.inputs]
        if family.kind in ("min", "max", "and", "or"):
            rows.best[family.name] = columns[0]
        else:
            rows.additive.update(_additive(family, columns, weights))
    return rows


def _additive(family: Family, columns: Sequence[pa.Array], weights: Int64s | None) -> dict[str, Int64s]:
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
    return {f"{family.name}.{place}": digit for place, digit in digits.items()} | _weighted(specials, weights)


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


def collapse(spec: Accumulation, rows: Groups) -> Groups:
    """Adds up equal keys. The result is sorted and does not depend on the order of the rows."""
    if len(rows) == 0:
        return rows
    arranged, starts = sort_by_key(rows.hashes, rows.keys)
    return _summed(spec, rows.take(arranged), starts)


def grouped(
    spec: Accumulation,
    hashes: np.ndarray,
    keys: list[pa.Array],
    inputs: Sequence[pa.Array],
    diffs: Int64s,
    chosen: np.ndarray | None = None,
) -> Groups:
    """Rows (the chosen ones, if given) straight to collapsed groups: sorted first, so that each input is moved only once.

    Keys may come as dictionaries; those of the groups do not.
    """
    arranged, starts = sort_by_key(hashes, keys, chosen)
    where, firsts = pa.array(arranged), pa.array(arranged[starts])
    rows = lift(spec, hashes[arranged], [], [column.take(where) for column in inputs], diffs[arranged])
    groups = _summed(spec, rows, starts) if len(rows) else rows
    groups.keys = [decoded(key.take(firsts)) for key in keys]
    return groups


def _summed(spec: Accumulation, rows: Groups, starts: np.ndarray) -> Groups:
    """Adds up consecutive rows; a group begins at each start."""
    if len(starts) < len(rows):
        firsts = pa.array(starts)
        rows = Groups(
            rows.hashes[starts],
            [key.take(firsts) for key in rows.keys],
            np.add.reduceat(rows.n, starts),
            {name: _reduce(name, column, starts) for name, column in rows.additive.items()},
            {name: _best(name, column, starts) for name, column in rows.best.items()},
        )
    rows.additive = normalise(spec, rows.additive)
    return rows


def _reduce(name: str, column: Int64s, starts: np.ndarray) -> Int64s:
    function = np.bitwise_xor if name.startswith("xor") else np.add
    return function.reduceat(column, starts)


def _best(name: str, column: pa.Array, starts: np.ndarray) -> pa.Array:
    if name.startswith(("min", "max")):
        return order.best(column, starts, largest=name.startswith("max"))
    conjunctive = name.startswith("and")
    values = pc.fill_null(column, -1 if conjunctive else 0).to_numpy(zero_copy_only=False)
    result = (np.bitwise_and if conjunctive else np.bitwise_or).reduceat(values, starts)
    known = np.logical_or.reduceat(column.is_valid().to_numpy(zero_copy_only=False), starts)
    return pa.array(result, column.type, mask=~known)


def normalise(spec: Accumulation, additive: dict[str, Int64s]) -> dict[str, Int64s]:
    """Carries between the digits of each exact sum, so that equal sums are equal bits."""
    result = {name: column for name, column in additive.items() if not name.startswith(SUMS) or not _is_digit(name)}
    for family in spec.families:
        if family.kind in SUMS:
            digits = digits_of(family.name, additive)
            if digits:
                result.update({f"{family.name}.{place}": digit for place, digit in exact.normalise(digits).items()})
    return result


def _is_digit(name: str) -> bool:
    return name.rsplit(".", 1)[-1].lstrip("-").isdigit()


def digits_of(family: str, additive: dict[str, Int64s]) -> exact.Digits:
    """The digit columns of one exact sum."""
    prefix = family + "."
    return {int(name[len(prefix) :]): column for name, column in additive.items() if name.startswith(prefix) and _is_digit(name)}


@dataclass(slots=True)
class Step:
    """The touched groups before and after; rows belong together. `n` is zero where a group does not exist."""

    before: Groups
    after: Groups
    bloom: BloomUse


def advance(spec: Accumulation, cover: Sequence[Layer], change: Groups) -> Step:
    """Adds a collapsed change to the state. `after` is what the new layer holds."""
    found = lookup(cover, change.hashes, change.keys)
    best = spec.best
    before = Groups(change.hashes, change.keys, found.additive("n"), {}, {})
    names = [name for name in found.names if name not in best and name != "n" and not _structural(name)]
    before.additive = {name: found.additive(name) for name in names}
    before.best = {name: found.best(name, type) for name, type in best.items()}
    after = Groups(change.hashes, change.keys, before.n + change.n, dict(before.additive), {})
    for name, column in change.additive.items():
        old = before.additive.get(name)
        if name.startswith("xor"):
            after.additive[name] = column if old is None else old ^ column
        else:
            after.additive[name] = column if old is None else old + column
    after.additive = normalise(spec, after.additive)
    for name, type in best.items():
        after.best[name] = _better(name, before.best[name], change.best.get(name, pa.nulls(len(change), type)))
    return Step(before, after, found.bloom)


def _structural(name: str) -> bool:
    return name == "_hash" or (name[0] == "k" and name[1:].isdigit())


def _better(name: str, old: pa.Array, new: pa.Array) -> pa.Array:
    """The better of two, row by row: the pairs are laid side by side and reduced."""
    if old.null_count == len(old):
        return new
    rows = len(old)
    both = pa.concat_arrays([old, new.cast(old.type)])
    side_by_side = np.arange(2 * rows).reshape(2, rows).T.ravel()
    return _best(name, both.take(pa.array(side_by_side)), np.arange(0, 2 * rows, 2))


def merged(spec: Accumulation, parts: Sequence[Groups]) -> Groups:
    """Several collapsed changes as one."""
    return collapse(spec, concat(parts)) if len(parts) > 1 else parts[0]
