"""What epochs have added to a view and taken from it, without Spark.

The steps are the kept epochs in question: a step says what differs between its epoch and the kept one before. Where the log has that as
layers of their own, as it mostly has, work is in proportion to the change; where history was thinned or merged across, both states are
read.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from nosync.history.reader import of_groups, repeated, rows
from nosync.history.record import ViewRecord
from nosync.kernels.accumulate import state_of
from nosync.kernels.groups import from_batch
from nosync.model.columns import COUNT, DIFF, EPOCH, TIME
from nosync.model.errors import Invalid
from nosync.model.hash_range import HashRange
from nosync.model.identifiers import Epoch
from nosync.model.layers import Covers, LayerInfo
from nosync.state.canonical import canonical_bytes, rows_equal
from nosync.state.cover import LayerRange, cover, is_covered, known_updates, layer_ranges
from nosync.state.layer import Layer
from nosync.state.merge import merge_diffs, merge_upserts

Open = Callable[[Sequence[LayerRange]], list[Layer]]


@dataclass(frozen=True, slots=True)
class ChangeStep:
    """What one step reads in one piece: the layers of its epochs alone, where there are such, and the state before and after."""

    epoch: Epoch
    time: float | None
    own: tuple[LayerRange, ...] | None
    before: tuple[LayerRange, ...]
    after: tuple[LayerRange, ...]
    first: bool = False


def steps(
    layers: Mapping[HashRange, Sequence[LayerInfo]],
    kept: Sequence[Epoch],
    since: Epoch,
    times: Mapping[Epoch, float],
    covers: Callable[[Epoch], Covers],
) -> Iterator[ChangeStep]:
    """One for each piece and kept epoch, oldest first. `layers` are those of the view by pieces, `kept` the epochs after `since`."""
    before = since
    for epoch in kept:
        earlier, later = covers(before) if before else {}, covers(epoch)
        for piece in sorted(layers):
            own = own_layers(layers[piece], before, epoch)
            if own or own is None:
                parts = None if own is None else tuple((layer, piece) for layer in own)
                first = piece.contains(0)
                yield ChangeStep(epoch, times.get(epoch), parts, layer_ranges(earlier, piece), layer_ranges(later, piece), first)
        before = epoch


def own_layers(layers: Iterable[LayerInfo], before: Epoch, epoch: Epoch) -> tuple[LayerInfo, ...] | None:
    """The fewest layers with just the updates of the epochs (before, epoch]; None where some are only in layers with others."""
    known = list(layers)
    chosen = cover([layer for layer in known if layer.lower > before and not layer.versions], epoch)
    updates = [layer for layer in known_updates(known) if layer.upper > before + 1 and layer.begin <= epoch]
    return chosen if all(is_covered(layer, chosen) for layer in updates) else None


def batches(view: ViewRecord, change: ChangeStep, open: Open) -> Iterator[pa.RecordBatch]:
    """The rows of a step, each with `_epoch`, `_time` and `_diff`; a row that replaces another comes after it."""
    if change.own is not None and view.kind == "diffs":
        found = _of_diffs(view, open(change.own))
    elif change.own is not None and view.spec is not None and not view.spec.whole:
        found = _of_upserts(view, open(change.own), open(change.before))
    else:
        found = _of_states(view, change, open)
    for batch, weights in found:
        if batch.num_rows:
            yield _stamped(view, batch, change, weights)


Weighed = tuple[pa.RecordBatch, np.ndarray]


def _of_diffs(view: ViewRecord, own: list[Layer]) -> Iterator[Weighed]:
    for block in merge_diffs(own):
        counts = block.column(COUNT)
        ones = block.set_column(block.schema.get_field_index(COUNT), COUNT, pa.array(np.ones(block.num_rows, np.int64)))
        yield repeated(view, ones), counts.to_numpy()


def _of_upserts(view: ViewRecord, own: list[Layer], before: list[Layer]) -> Iterator[Weighed]:
    assert view.spec is not None
    for block in merge_upserts(own, drop_tombstones=False):
        after = from_batch(block, len(view.spec.keys), view.spec.best)
        old, _ = state_of(view.spec, before, after.hashes, after.keys)
        was, now = old.n != 0, after.n != 0
        rows_before, rows_after = of_groups(view, old), of_groups(view, after)
        same = was & now & (rows_equal(rows_before.columns, rows_after.columns) if len(view.schema) else True)
        gone, come = np.flatnonzero(was & ~same), np.flatnonzero(now & ~same)
        yield rows_before.take(pa.array(gone)), np.full(len(gone), -1, np.int64)
        yield rows_after.take(pa.array(come)), np.ones(len(come), np.int64)


def _of_states(view: ViewRecord, change: ChangeStep, open: Open) -> Iterator[Weighed]:
    """By comparing all rows before with all rows after."""
    counts: dict[bytes, int] = {}
    held: dict[bytes, pa.RecordBatch] = {}
    whole = view.spec is not None and view.spec.whole and change.first
    for parts, sign in ((change.before, -1), (change.after, 1)):
        for batch in rows(view, open(parts), owns_whole=whole and (sign > 0 or bool(change.before))):
            for number, mark in enumerate(canonical_bytes(batch.columns, batch.num_rows).to_pylist()):
                counts[mark] = counts.get(mark, 0) + sign
                if mark not in held:
                    held[mark] = batch.slice(number, 1)
    for wanted in (-1, 1):
        chosen = [mark for mark, count in counts.items() if count * wanted > 0]
        if chosen:
            table = pa.Table.from_batches([held[mark] for mark in chosen], view.schema).combine_chunks()
            yield table.to_batches()[0], np.array([counts[mark] for mark in chosen], np.int64)


def check_clear(name: str, view: ViewRecord) -> None:
    """`Invalid` where a column of the view is called like what is said of a change."""
    for column in view.schema.names:
        if column.lower() in (EPOCH, TIME, DIFF):
            words = f'view "{name}" has a column "{column}", and so have its changes'
            raise Invalid(words, hint="Give the column of the view another name: changes add _epoch, _time and _diff.")


def changes_schema(view: pa.Schema) -> pa.Schema:
    """The view's columns, and what is said of each row."""
    return pa.schema([*view, (EPOCH, pa.int64()), (TIME, pa.timestamp("us", "UTC")), (DIFF, pa.int64())])


def _stamped(view: ViewRecord, batch: pa.RecordBatch, change: ChangeStep, weights: np.ndarray) -> pa.RecordBatch:
    time = None if change.time is None else round(change.time * 1e6)
    said = [
        pa.array(np.full(batch.num_rows, change.epoch, np.int64)),
        pa.array([time] * batch.num_rows, pa.int64()).cast(pa.timestamp("us", "UTC")),
        pa.array(weights),
    ]
    return pa.RecordBatch.from_arrays([*batch.columns, *said], schema=changes_schema(view.schema))
