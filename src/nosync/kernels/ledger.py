"""ledger: which of a source's changes count, given what is there.

Without a key a row is known by all its columns, and the ledger counts it. A removal counts while there is such a row; within one call
additions come first, whatever the order. With a key the newest row of the key counts: by its sequence where rows have one, then by its
position in the input, then removals first and in canonical order. What replaces a row, or removes it, takes the old one out.

Removals of what is not there are *refused*: separate, and without effect. Work is in proportion to the change. Both forms keep upserts:
counts by row, or the row by key (columns `value0`, `value1`...). With sequences a removed key is remembered for ever, so that an
older row that comes later does not bring it back.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nosync.kernels.groups import Groups, Int64s, Uint64s, sort_by_key
from nosync.state.canonical import canonical_bytes, rows_equal
from nosync.state.layer import Layer
from nosync.state.search import Found, lookup

ALIVE, SEQUENCE = "value_alive", "value_sequence"


@dataclass(frozen=True, slots=True)
class Events:
    """Changes of one shard, one or more. `diffs` say what each does; `positions` say where they stood, most significant first."""

    hashes: Uint64s
    keys: list[pa.Array]
    rows: list[pa.Array]
    diffs: Int64s
    positions: list[Int64s]
    sequence: pa.Array | None = None


@dataclass(frozen=True, slots=True)
class Posted:
    """`layer`: what is kept. `rows` go in or out, as `diffs` say. `refused`: events without effect, as often as they are to be emitted."""

    layer: pa.RecordBatch
    hashes: Uint64s
    rows: list[pa.Array]
    diffs: Int64s
    refused: Int64s


def post_rows(cover: Sequence[Layer], events: Events) -> Posted:
    """Rows without a key, counted."""
    order, starts = sort_by_key(events.hashes, events.rows)
    firsts = order[starts]
    rows = [column.take(pa.array(firsts)) for column in events.rows]
    net = np.add.reduceat(events.diffs[order], starts)
    before = lookup(cover, events.hashes[firsts], rows).additive("n")
    deficit = np.maximum(-(before + net), 0)
    passed = net + deficit
    changed = np.flatnonzero(passed)
    kept = Groups(events.hashes[firsts], rows, before + passed, {}, {}).take(changed)
    return Posted(kept.to_batch(), kept.hashes, kept.keys, passed[changed], _surplus(events, order, starts, deficit))


def _surplus(events: Events, order: Int64s, starts: Int64s, deficit: Int64s) -> Int64s:
    """Removals beyond what is there: of each row the last ones."""
    group = _numbers(starts, len(order))
    mine = (deficit[group] > 0) & (events.diffs[order] < 0)
    removals, group = order[mine], group[mine]
    latest = np.lexsort((*(-position[removals] for position in reversed(events.positions)), group))
    removals, group = removals[latest], group[latest]
    sizes = -events.diffs[removals]
    total = np.cumsum(sizes)
    first = np.flatnonzero(_fresh(group))
    base = np.repeat((total - sizes)[first], np.diff(np.append(first, len(group))))
    return np.repeat(removals, np.clip(deficit[group] - (total - sizes - base), 0, sizes))


def post_keyed(cover: Sequence[Layer], events: Events) -> Posted:
    """Rows with a key: the newest counts."""
    order, starts = sort_by_key(events.hashes, events.keys)
    group = np.empty(len(order), np.int64)
    group[order] = _numbers(starts, len(order))
    firsts = order[starts]
    keys = [key.take(pa.array(firsts)) for key in events.keys]
    found = lookup(cover, events.hashes[firsts], keys)
    was = _alive(found, events)
    line = _current_in_order(events, group, _ranks(events, group, found))
    if not len(line):
        return _nothing(events)
    number = group[line]
    first = _fresh(number)
    adding = events.diffs[line] > 0
    there = np.where(first, was[number], np.insert(adding[:-1], 0, False))
    last = line[np.append(first[1:], True)]
    groups = Groups(events.hashes[firsts], keys, was.astype(np.int64), {}, {}).take(number[first])
    return _replaced(events, found, number[first], groups, last, line[~adding & ~there])


def _replaced(events: Events, found: Found, touched: Int64s, groups: Groups, last: Int64s, refused: Int64s) -> Posted:
    """Old rows out, new rows in, where they differ.

    `groups` are the touched keys, `n` whether they were there; `last` their newest events.
    """
    was, now = groups.n > 0, events.diffs[last] > 0
    where = pa.array(touched)
    old = [found.best(f"value{i}", column.type).take(where) for i, column in enumerate(events.rows)]
    new = [column.take(pa.array(last, mask=~now)) for column in events.rows]
    same = was & now & rows_equal(old, new)
    out, into = np.flatnonzero(was & ~same), np.flatnonzero(now & ~same)
    rows = [pa.concat_arrays([a.take(pa.array(out)), b.take(pa.array(into))]) for a, b in zip(old, new, strict=True)]
    groups.best = {f"value{i}": column for i, column in enumerate(new)}
    groups.n = now.astype(np.int64)
    kept = np.flatnonzero((was | now) & ~same)
    if events.sequence is not None:
        groups.best |= {ALIVE: pa.array(now), SEQUENCE: events.sequence.take(pa.array(last))}
        groups.n, kept = np.ones(len(now), np.int64), np.arange(len(now))
    hashes = np.concatenate((groups.hashes[out], groups.hashes[into]))
    diffs = np.concatenate((np.full(len(out), -1, np.int64), np.ones(len(into), np.int64)))
    return Posted(groups.take(kept).to_batch(), hashes, rows, diffs, np.sort(refused))


def _nothing(events: Events) -> Posted:
    none = np.zeros(0, np.int64)
    empty = Groups(events.hashes[:0], [key.slice(0, 0) for key in events.keys], none, {}, {})
    return Posted(empty.to_batch(), events.hashes[:0], [column.slice(0, 0) for column in events.rows], none, none)


def _alive(found: Found, events: Events) -> np.ndarray:
    if events.sequence is None:
        return found.additive("n") > 0
    alive: np.ndarray = found.best(ALIVE, pa.bool_()).fill_null(False).to_numpy(zero_copy_only=False)
    return alive


def _ranks(events: Events, group: Int64s, found: Found) -> Int64s:
    """Each event's rank by its sequence; -1 where something newer of its key is kept."""
    if events.sequence is None:
        return np.zeros(len(group), np.int64)
    both = pa.concat_arrays([events.sequence, found.best(SEQUENCE, events.sequence.type)])
    ranks = pc.rank(both, sort_keys="ascending", tiebreaker="dense").to_numpy().astype(np.int64)
    ranks[both.is_null().to_numpy(zero_copy_only=False)] = 0
    kept = np.where(found.mask, ranks[len(group) :], 0)
    ranks = ranks[: len(group)]
    return np.where(ranks < kept[group], -1, ranks)


def _current_in_order(events: Events, group: Int64s, ranks: Int64s) -> Int64s:
    """Events that are not outdated, key by key, oldest first."""
    chosen = np.flatnonzero(ranks >= 0)
    by = [group[chosen], ranks[chosen], *(position[chosen] for position in events.positions)]
    order = np.lexsort(by[::-1])
    tied = np.ones(max(len(order) - 1, 0), bool)
    for column in by:
        tied &= column[order][1:] == column[order][:-1]
    if tied.any():
        contents = canonical_bytes([pa.array(events.diffs > 0), *events.rows]).take(pa.array(chosen))
        order = np.lexsort([pc.rank(contents, tiebreaker="dense").to_numpy(), *by[::-1]])
    return chosen[order]


def _numbers(starts: Int64s, rows: int) -> Int64s:
    """The number of its group for each row, where groups start at `starts`."""
    return np.repeat(np.arange(len(starts)), np.diff(np.append(starts, rows)))


def _fresh(numbers: Int64s) -> np.ndarray:
    """Where a number differs from the one before."""
    return np.concatenate((np.ones(min(len(numbers), 1), bool), numbers[1:] != numbers[:-1]))
