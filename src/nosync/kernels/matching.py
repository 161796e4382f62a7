"""matching: rows of one side of a join that have no match, or have one, where somebody else decides which pairs match.

For each distinct row of the side two numbers are kept: how often it occurs, and how many pairs it is part of. Both only add up, so an
epoch costs in proportion to its changed rows and pairs, however large the other side is.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from nosync.kernels.groups import Groups, sort_by_key
from nosync.kernels.join import MATCHED, TOO_MANY, Ints
from nosync.model.errors import Failed
from nosync.state.layer import Layer
from nosync.state.search import lookup

Wanted = Literal["unmatched", "single", "matched", "both"]
PAIRS = "pairs"  # a column of the layers


@dataclass(frozen=True, slots=True)
class Matching:
    """Which rows of a side to emit; `single`: those without a match, and two matches are an error. `passing`: pairs go on as well."""

    wanted: Wanted
    side: int
    passing: bool


@dataclass(frozen=True, slots=True)
class Matched:
    """`layer` is what is kept. `emitted`: by kind of part, which rows (of `keys`), and how often."""

    layer: pa.RecordBatch
    keys: list[pa.Array]
    hashes: np.ndarray
    emitted: list[tuple[int, Ints, Ints]]


def match(spec: Matching, cover: Sequence[Layer], hashes: np.ndarray, rows: Sequence[pa.Array], parts: Ints, diffs: Ints) -> Matched:
    """`rows` are the side's columns, one row or more, in pairs (where `parts` is MATCHED) and in changed rows (where it is the side)."""
    order, starts = sort_by_key(hashes, rows)
    firsts = pa.array(order[starts])
    keys, paired = [column.take(firsts) for column in rows], parts[order] == MATCHED
    own, pairs = (np.add.reduceat(np.where(chosen, diffs[order], 0), starts) for chosen in (~paired, paired))
    found = lookup(cover, hashes[order[starts]], keys)
    before = found.additive("n"), found.additive(PAIRS) if PAIRS in found.names else np.zeros(len(starts), np.int64)
    after = before[0] + own, before[1] + pairs
    if spec.wanted == "single" and bool((after[1] > after[0]).any()):
        raise Failed(TOO_MANY)
    groups = Groups(hashes[order[starts]], keys, after[0], {PAIRS: after[1]}, {})
    changed = np.flatnonzero((own != 0) | (pairs != 0))
    layer = (groups if len(changed) == len(groups) else groups.take(changed)).to_batch()
    return Matched(layer, keys, groups.hashes, list(_parts(spec, before, after)))


def _parts(spec: Matching, before: tuple[Ints, Ints], after: tuple[Ints, Ints]) -> Iterator[tuple[int, Ints, Ints]]:
    for part, matched in ((MATCHED, True), (spec.side, False)):
        if spec.wanted == "both" or matched == (spec.wanted == "matched"):
            weights = after[0] * ((after[1] > 0) == matched) - before[0] * ((before[1] > 0) == matched)
            rows = np.flatnonzero(weights)
            if len(rows):
                yield part, rows, weights[rows]
