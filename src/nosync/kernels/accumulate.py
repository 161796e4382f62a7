"""accumulate: aggregate functions by group, in proportion to the change.

`grouped` turns rows into accumulators and adds up those of equal keys, `collapse` adds up groups of several origins, `advance` adds a
collapsed change to the state. All three see multisets: no order, split or retry of the input changes a bit of the result. Sums are exact.
Minimum, maximum and bitwise and/or hold for input that is only ever added to; everything else can also be taken away again.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nosync.kernels import exact
from nosync.kernels.families import BEST, SUMS, UNKNOWN, Family, additive, best_of, digits_of, is_digit, reduced
from nosync.kernels.functions import FUNCTIONS, Result
from nosync.kernels.groups import Groups, Int64s, concat, decoded, sort_by_key
from nosync.model.columns import HASH
from nosync.state.layer import Layer
from nosync.state.search import BloomUse, lookup


@dataclass(frozen=True, slots=True)
class Accumulation:
    """What an accumulate operator computes. `whole`: one group without a key that exists even over no rows."""

    keys: tuple[pa.DataType, ...]
    inputs: tuple[pa.DataType, ...]
    results: tuple[Result, ...]
    whole: bool = False

    @property
    def families(self) -> tuple[Family, ...]:
        return tuple(dict.fromkeys(family for result in self.results for family in FUNCTIONS[result.function].needs(result, self.inputs)))

    def finish(self, groups: Groups) -> list[pa.Array]:
        """The values that the query asks for: one array per result, in the order of the groups."""
        return [FUNCTIONS[result.function].finish(result, self.inputs, groups) for result in self.results]

    @property
    def deduplicates(self) -> bool:
        """Whether it looks for duplicates: then most keys are met for the first time, and layers have Bloom filters."""
        return not self.whole and all(result.function == "first" for result in self.results)

    @property
    def best(self) -> dict[str, pa.DataType]:
        return {f.name: self.inputs[f.inputs[0]] for f in self.families if f.kind in BEST}


def lift(spec: Accumulation, hashes: np.ndarray, keys: list[pa.Array], inputs: Sequence[pa.Array], diffs: Int64s) -> Groups:
    """Each row as a group of its own, not yet sorted."""
    weights = None if len(diffs) == 0 or (diffs.min() == 1 and diffs.max() == 1) else diffs
    rows = Groups(hashes, keys, diffs, {}, {})
    for family in spec.families:
        columns = [inputs[i] for i in family.inputs]
        if family.kind in BEST:
            rows.best[family.name] = columns[0]
        else:
            rows.additive.update(additive(family, columns, weights))
    return rows


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
            {name: reduced(name, column, starts) for name, column in rows.additive.items()},
            {name: best_of(name, column, starts) for name, column in rows.best.items()},
        )
    rows.additive = normalise(spec, rows.additive)
    return rows


def normalise(spec: Accumulation, additive: dict[str, Int64s]) -> dict[str, Int64s]:
    """Carries between the digits of each exact sum, so that equal sums are equal bits."""
    result = {name: column for name, column in additive.items() if not name.startswith(SUMS) or not is_digit(name)}
    for family in spec.families:
        if family.kind in SUMS:
            digits = digits_of(family.name, additive)
            if digits:
                result.update({f"{family.name}.{index}": digit for index, digit in exact.normalise(digits).items()})
    return result


@dataclass(slots=True)
class Step:
    """The touched groups before and after; rows belong together. `n` is zero where a group does not exist."""

    before: Groups
    after: Groups
    bloom: BloomUse


def advance(spec: Accumulation, cover: Sequence[Layer], change: Groups) -> Step:
    """Adds a collapsed change to the state. `after` is what the new layer holds. A best value that is there and not known stays so."""
    before, bloom = state_of(spec, cover, change.hashes, change.keys)
    best = spec.best
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
        if (unknown := before.additive.get(f"{name}{UNKNOWN}")) is not None:
            after.best[name] = pc.if_else(pa.array(unknown > 0), before.best[name], after.best[name])
    return Step(before, after, bloom)


def state_of(spec: Accumulation, cover: Sequence[Layer], hashes: np.ndarray, keys: list[pa.Array]) -> tuple[Groups, BloomUse]:
    """The groups with these keys, as a cover has them, and what Bloom filters did. Hashes ascend."""
    found, best = lookup(cover, hashes, keys), spec.best
    groups = Groups(hashes, keys, found.additive("n"), {}, {})
    names = [name for name in found.names if name not in best and name != "n" and not _structural(name)]
    groups.additive = {name: found.additive(name) for name in names}
    groups.best = {name: found.best(name, type) for name, type in best.items()}
    return groups, found.bloom


def _structural(name: str) -> bool:
    return name == HASH or (name[0] == "k" and name[1:].isdigit())


def _better(name: str, old: pa.Array, new: pa.Array) -> pa.Array:
    """The better of two, row by row: the pairs are laid side by side and reduced."""
    if old.null_count == len(old):
        return new
    rows = len(old)
    both = pa.concat_arrays([old, new.cast(old.type)])
    side_by_side = np.arange(2 * rows).reshape(2, rows).T.ravel()
    return best_of(name, both.take(pa.array(side_by_side)), np.arange(0, 2 * rows, 2))


def merged(spec: Accumulation, parts: Sequence[Groups]) -> Groups:
    """Several collapsed changes as one."""
    return collapse(spec, concat(parts)) if len(parts) > 1 else parts[0]
