"""The past in few files: whatever is merged, folded, thinned and given up, every kept epoch reads as it was."""

from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from nosync.duties.merge_worker import carry_out
from nosync.duties.merging import due_folds, due_merges
from nosync.journal.entries import Computed, GivenUp, Merged, Opened, Thinned
from nosync.journal.image import Image
from nosync.model.compaction import DEFAULT, Ages, Compaction
from nosync.model.hash_range import ALL_HASHES
from nosync.model.identifiers import Epoch
from nosync.model.layers import LayerInfo
from nosync.model.retention import Kept
from nosync.state.cover import cover, is_complete, start_of
from nosync.state.folding import LEAVES, Chain, chain_of, needed, plan_fold
from nosync.state.layer import open_layer, verify, write_layer
from nosync.state.merge import scan
from nosync.state.versions import open_as_of

TRACE = "v"
PART = (TRACE, ALL_HASHES)
KEYS = 30
HASHES = np.sort(np.random.default_rng(7).integers(0, 2**64, KEYS, dtype=np.uint64))
HASHES[3] = HASHES[4]  # two keys, one hash
State = dict[int, int]


class History:
    """One range of one trace, its files, and its state as of every epoch."""

    knobs = DEFAULT

    def __init__(self, home: Path, kind: str, seed: int) -> None:
        self.home, self.kind, self.random = home, kind, np.random.default_rng(seed)
        self.image, self.states, self.number = Image(), [dict[int, int]()], 0
        self.most = 0

    def apply(self, entry: Any) -> None:
        self.number += 1
        self.image.apply(self.number, entry)

    def epoch(self, at_once: int = 1) -> None:
        """Some keys change, perhaps none; several epochs may come at once, as after a failure."""
        epoch, state = self.image.epoch + at_once, dict(self.states[-1])
        changed = self.random.choice(KEYS, int(self.random.integers(0, 6)), replace=False)
        rows: dict[int, int] = {}
        for key in sorted(map(int, changed)):
            before, after = state.get(key, 0), int(self.random.integers(0, 5))
            if before != after:
                rows[key] = after if self.kind == "upserts" else after - before
                state[key] = after
        self.states += [self.states[-1]] * (at_once - 1) + [state]
        self.apply(Opened(epoch, float(epoch), {}))
        layers = (self.write(rows, epoch - at_once + 1, epoch + 1),) if rows else ()
        self.apply(Computed(epoch, layers, {}, {}))

    def write(self, rows: State, lower: int, upper: int) -> LayerInfo:
        keys = sorted(rows, key=lambda key: (int(HASHES[key]), key))
        columns = {"_hash": pa.array(HASHES[keys], pa.uint64())}
        values = pa.array([rows[key] for key in keys], pa.int64())
        if self.kind == "upserts":
            columns |= {"k0": pa.array(keys, pa.int64()), "n": pa.array([int(rows[key] > 0) for key in keys], pa.int64()), "sum0.0": values}
        else:
            columns |= {"_row": pa.array(keys, pa.uint64()), "c0": pa.array(keys, pa.int64()), "_count": values}
        path = f"layers/v/0-f/{lower:012d}-{upper}-1.aa-{self.number:x}.arrow"
        facts: dict[str, Any] = {"flow": "f", "trace": TRACE, "range": ALL_HASHES, "lower": lower, "upper": upper, "kind": self.kind}
        return write_layer(self.home, path, [pa.record_batch(columns)], run="1.aa", **facts)

    def orders(self, last: int) -> list[dict[str, Any]]:
        parts = [PART] if TRACE in self.image.traces else []
        return [*chain(*due_merges(self.image, knobs=self.knobs)[:1]), *due_folds(self.image, Epoch(last), parts, self.knobs)]

    def work(self, last: int) -> None:
        """Merges and folds some of what is due; gives up what nobody needs."""
        for order in self.orders(last):
            if self.random.random() < 0.8:
                self.apply(Merged(LayerInfo.from_json(carry_out(str(self.home), "f", "1.aa", order))))
        if self.random.random() < 0.5:
            self.give_up(last)

    def give_up(self, last: int) -> None:
        layers = self.image.traces.get(TRACE, {}).get(ALL_HASHES, [])
        stay = needed(layers, self.image.kept, Epoch(last)) | {layer.path for layer in self.image.newest_layers()}
        gone = tuple(layer.path for layer in layers if layer.path not in stay)
        self.apply(GivenUp(gone))
        for path in gone:
            (self.home / path).unlink()
        self.most = max(self.most, len(layers) - len(gone))

    def thin(self, last: int) -> None:
        """Keeps every epoch from some on, and some of those before."""
        before = self.image.kept
        since = int(self.random.integers(before.since, max(before.since, last) + 1))
        older = [epoch for epoch in range(1, since) if epoch in before and self.random.random() < 0.7]
        after = before.of(Kept(Epoch(since), tuple(older)))
        new = tuple(epoch for epoch in after.among if epoch >= before.since)
        self.apply(Thinned(after.since, new, tuple(epoch for epoch in before.among if epoch not in after)))

    def read(self, at: int) -> State | None:
        layers = self.image.traces.get(TRACE, {}).get(ALL_HASHES, [])
        chosen = self.image.covers(TRACE, at).get(ALL_HASHES, ())
        if not is_complete(chosen, layers, at):
            return None
        found: State = {}
        for block in scan([open_as_of(self.home, layer) for layer in chosen], self.kind) if chosen else ():
            keys, values = ("k0", "sum0.0") if self.kind == "upserts" else ("c0", "_count")
            found |= dict(zip(block.column(keys).to_pylist(), block.column(values).to_pylist(), strict=True))
        return found

    def check(self, spans: list[tuple[int, int]]) -> None:
        for at in range(1, self.image.epoch + 1):
            if at in self.image.kept:
                found = self.read(at)
                if found is None:
                    assert any(first <= at < last for first, last in spans), f"epoch {at} cannot be read"
                else:
                    assert found == {key: value for key, value in self.states[at].items() if value}, f"epoch {at}"


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kind", ["upserts", "diffs"])
def test_every_kept_epoch_reads_as_it_was(tmp_path: Path, kind: str, seed: int) -> None:
    history, last = History(tmp_path, kind, seed), 0
    spans: list[tuple[int, int]] = []
    thins, spanning = seed % 4 != 0, seed % 3 == 0
    for _ in range(60):
        at_once = int(history.random.integers(2, 5)) if spanning and history.random.random() < 0.05 else 1
        if at_once > 1:
            spans.append((history.image.epoch + 1, history.image.epoch + at_once))
        history.epoch(at_once)
        last = int(history.random.integers(last, history.image.epoch + 1))
        if thins and history.random.random() < 0.1:
            history.thin(last)
        history.work(last)
    history.check(spans)
    while orders := [*chain(*due_merges(history.image)), *due_folds(history.image, history.image.epoch, [PART])]:
        for order in orders[:1]:
            history.apply(Merged(LayerInfo.from_json(carry_out(str(tmp_path), "f", "1.aa", order))))
    history.give_up(history.image.epoch)
    history.check(spans)
    assert len(history.image.layers()) <= 25


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["upserts", "diffs"])
def test_whatever_the_knobs_say_every_kept_epoch_reads_as_it_was(tmp_path: Path, kind: str, seed: int) -> None:
    history = History(tmp_path, kind, seed)
    for epoch in range(1, 41):
        if epoch % 10 == 1:  # they may change at any time
            size, age = (int(history.random.integers(500, 20_000)), None) if history.random.random() < 0.5 else (None, 1.0 + epoch % 7)
            history.knobs = Compaction(size, age, float(history.random.choice([0.01, 0.33, 0.66])))
        history.epoch()
        if epoch % 8 == 0:
            history.thin(epoch)
        history.work(epoch)
    history.check([])


def test_a_smaller_dirty_ratio_keeps_fewer_rows(tmp_path: Path) -> None:
    """Of a log that keeps its newest state alone."""
    rows = {0.01: 0, 0.66: 0}  # summed over epochs
    for ratio in rows:
        history = History(tmp_path / str(ratio), "upserts", 5)
        history.knobs = Compaction(None, 1.0, ratio)
        for epoch in range(1, 31):
            history.epoch()
            history.apply(Thinned(Epoch(epoch), (), ()))
            while orders := history.orders(epoch):
                for order in orders:
                    history.apply(Merged(LayerInfo.from_json(carry_out(str(history.home), "f", "1.aa", order))))
                history.give_up(epoch)
            history.give_up(epoch)
            rows[ratio] += sum(layer.rows for layer in history.image.layers())
        history.check([])
    assert rows[0.01] < rows[0.66]


def test_leaf_layers_are_folded_once_their_segment_is_closed() -> None:
    leaves = tuple(LayerInfo(TRACE, ALL_HASHES, epoch, epoch + 1, "upserts", f"{epoch}", 9, 100, "") for epoch in range(1, LEAVES + 1))
    some, ages = Chain(None, (), leaves[:3], (), Epoch(1)), Ages({1: 10.0, 2: 11.0, 3: 12.0}, Epoch(3))
    assert plan_fold(some, Kept()) is None and plan_fold(Chain(None, (), leaves, (), Epoch(1)), Kept()) is not None
    for knobs, folds in ((Compaction(300), True), (Compaction(301), False), (Compaction(None, 2.0), True), (Compaction(None, 2.1), False)):
        assert (plan_fold(some, Kept(), knobs, ages) is not None) == folds, knobs
    assert plan_fold(Chain(None, (), leaves, (), Epoch(1)), Kept(), Compaction(1 << 30), ages) is None


def test_a_part_is_refused_where_an_epoch_is_not_kept() -> None:
    def layer(lower: int, upper: int, versions: int = 0) -> LayerInfo:
        return LayerInfo(TRACE, ALL_HASHES, lower, upper, "diffs", f"{lower}-{upper}-{versions}", 1, 1, "", versions, leaves=7)

    layers = [layer(1, 9, 4), layer(9, 10), layer(4, 10)]
    kept = Kept(Epoch(8), (Epoch(2), Epoch(5)))
    assert [one.path for one in cover(layers, Epoch(9), kept)] == ["9-10-0", "1-9-4"]
    assert [one.end for one in cover(layers, Epoch(5), kept)] == [6]
    assert cover(layers, Epoch(6), kept) == () and cover(layers, Epoch(5)) == ()


def test_what_lies_upon_a_layer_that_was_given_up_is_not_the_bottom() -> None:
    def layer(lower: int, upper: int, bottom: bool = False) -> LayerInfo:
        return LayerInfo(TRACE, ALL_HASHES, lower, upper, "upserts", f"{lower}-{upper}", 1, 1, "", bottom=bottom)

    layers = [layer(1, 3, bottom=True), layer(2, 3), layer(3, 4)]  # of 1-2, a merged layer is left
    assert start_of(layers) == 1
    base = chain_of(layers, Kept(Epoch(2)), Epoch(3)).base
    assert base is not None and base.path == "1-3"


def test_no_versioned_layer_is_of_one_epoch_alone() -> None:
    """A file of one epoch that no record names yet passes for one of an attempt that failed, and is swept."""
    leaves = [LayerInfo(TRACE, ALL_HASHES, epoch, epoch + 1, "upserts", f"{epoch}", 9, 1, "") for epoch in range(1, LEAVES + 1)]
    step = LayerInfo(TRACE, ALL_HASHES, 1, 2, "upserts", "step", 1, 1, "", bottom=True)
    fold = plan_fold(Chain(None, (), tuple(leaves), (step,), Epoch(1)), Kept())
    assert fold is not None and (fold.lower, fold.upper) == (1, LEAVES + 1)


def test_versions_are_as_few_as_epochs_that_are_kept(tmp_path: Path) -> None:
    history = History(tmp_path, "upserts", 1)
    for _ in range(20):
        history.epoch()
    history.apply(Thinned(Epoch(20), (Epoch(4), Epoch(11)), ()))
    order = next(iter(due_folds(history.image, Epoch(20), [PART])))
    folded = LayerInfo.from_json(carry_out(str(tmp_path), "f", "1.aa", order))
    assert folded.versions == 3 and folded.rows < sum(layer.rows for layer in history.image.layers())
    assert verify(open_layer(tmp_path, folded)).rows == folded.rows
