"""A trace that is rescaled again and again reads as if it never had been, whatever is merged meanwhile."""

import random
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from nosync.duties.compacting import Compactor
from nosync.duties.merge_worker import fold, merge
from nosync.duties.merging import due_folds, due_merges
from nosync.journal.entries import Computed, Declared, GivenUp, Merged, Rescaled, Thinned
from nosync.journal.image import Image
from nosync.journal.image_text import from_text, to_text
from nosync.journal.names import layer_path
from nosync.model.columns import COUNT, HASH, ROW
from nosync.model.hash_range import HashRange
from nosync.model.identifiers import Epoch, TraceName
from nosync.model.layers import Covers, Kind, LayerInfo
from nosync.model.shards import shard_ranges
from nosync.state import folding
from nosync.state.cover import LayerRange, cover, covers_of, layer_ranges, pieces, with_layers
from nosync.state.layer import Layer, open_layer, write_layer
from nosync.state.merge import scan
from nosync.state.partial_layer import cut_to, opened
from nosync.state.search import lookup
from nosync.state.spine import levels, merges_of
from nosync.state.versions import open_as_of

KEYS = 60


class Trace:
    """One trace of a flow, its layers on the disk, and beside it what it should hold after each epoch."""

    def __init__(self, home: Path, kind: Kind, seed: int) -> None:
        self.home, self.kind, self.chance = home, kind, random.Random(seed)
        self.image, self.number = Image(), 0
        self.apply(Declared("f", 2, {}, {}, {}))
        self.hashes = sorted(self.chance.sample([*range(0, 1 << 64, 1 << 58), (1 << 64) - 1], KEYS))
        self.states: list[dict[int, int]] = [{}]

    def apply(self, entry: Any) -> None:
        self.number += 1
        self.image.apply(self.number, entry)
        assert set(self.image.newest.get("t", {})) == set(dict.fromkeys(self.image.newest.get("t", {})))

    def epoch(self) -> None:
        epoch, state = len(self.states), dict(self.states[-1])
        changes = {key: self.chance.choice((0, self.chance.randrange(1, 9))) for key in self.chance.sample(self.hashes, 12)}
        layers = []
        for held in shard_ranges(self.image.declared.shards):  # type: ignore[union-attr]
            mine = {key: new for key, new in sorted(changes.items()) if held.contains(key) and new != state.get(key, 0)}
            if mine:
                layers.append(self.write(held, epoch, mine, state))
        state = {key: value for key, value in (state | changes).items() if value}
        self.states.append(state)
        self.apply(Computed(epoch, tuple(layers), {}, {}))

    def write(self, held: HashRange, epoch: int, mine: dict[int, int], state: dict[int, int]) -> LayerInfo:
        hashes = pa.array(list(mine), pa.uint64())
        if self.kind == "upserts":
            columns = {HASH: hashes, "k0": hashes, "n": pa.array(list(mine.values()), pa.int64())}
        else:
            diffs = [new - state.get(key, 0) for key, new in mine.items()]
            columns = {HASH: hashes, ROW: hashes, "c0": hashes, COUNT: pa.array(diffs, pa.int64())}
        batch = pa.RecordBatch.from_pydict(columns)
        path, facts = layer_path("t", held, epoch, epoch + 1, "1.ab"), {"flow": "f", "trace": "t", "kind": self.kind, "run": "1.ab"}
        bloom = self.kind == "upserts"
        return write_layer(self.home, path, [batch], range=held, lower=epoch, upper=epoch + 1, with_bloom=bloom, **facts)  # type: ignore[arg-type]

    def merge(self) -> None:
        for order in chain(*due_merges(self.image)[:1]):
            self.apply(Merged(merge(str(self.home), "f", "1.ab", order)))

    def fold(self) -> None:
        parts = [(TraceName("t"), held) for held in pieces(self.image.traces.get("t", {}))]
        for order in islice(due_folds(self.image, self.image.epoch, parts), self.chance.choice((1, 4))):
            self.apply(Merged(fold(str(self.home), "f", "1.ab", order)))

    def thin(self) -> None:
        kept, newest = self.image.kept, self.image.epoch
        since = max(kept.since, newest - self.chance.choice((0, 2, 6)))
        older = [epoch for epoch in range(1, since) if epoch in kept and self.chance.random() < 0.5]
        gone = tuple(epoch for epoch in kept.among if epoch not in older)
        self.apply(Thinned(since, tuple(epoch for epoch in older if epoch >= kept.since), gone))

    def give_up(self) -> None:
        unused: Any = None
        work = Compactor(unused, unused, None, None, None, lambda newest: newest, lambda: None, lambda layer: True)
        gone, parts = work._without_use(self.image)
        before = self.image.newest.get("t", {})
        self.apply(GivenUp(tuple(gone), {path: [str(part) for part in held] for path, held in parts.items()}))
        assert {held: [one.path for one in found] for held, found in before.items()} == {
            held: [one.path for one in found] for held, found in self.image.newest.get("t", {}).items()
        }
        for path in gone:
            (self.home / path).unlink()

    def read(self, at: int, held: HashRange) -> list[Layer]:
        return opened(layer_ranges(self.image.covers("t", at), held), lambda info: open_as_of(self.home, info))

    def check(self, at: int) -> None:
        for held in shard_ranges(self.chance.choice((1, 2, 3, 8))):
            layers = self.read(at, held)
            column = "n" if self.kind == "upserts" else COUNT
            found = {row[HASH]: row[column] for block in scan(layers, self.kind) for row in block.to_pylist()}
            assert found == {key: value for key, value in self.states[at].items() if held.contains(key)}
            if self.kind == "upserts":
                needles = [key for key in self.hashes if held.contains(key)]
                answer = lookup(layers, np.array(needles, np.uint64), [pa.array(needles, pa.uint64())])
                assert answer.additive("n").tolist() == [self.states[at].get(key, 0) for key in needles]


@pytest.mark.parametrize("seed", range(12))
def test_every_epoch_reads_the_same_whatever_was_rescaled_and_merged(tmp_path: Path, seed: int) -> None:
    trace = Trace(tmp_path, "upserts" if seed % 2 else "diffs", seed)
    for _ in range(14):
        if trace.chance.random() < 0.4:
            trace.apply(Rescaled(len(trace.states), trace.chance.choice((1, 2, 3, 5, 8)), 0.0))
        trace.epoch()
        for _ in range(trace.chance.choice((0, 0, 1, 4))):
            trace.merge()
        trace.check(len(trace.states) - 1)
    for epoch in range(1, len(trace.states)):
        trace.check(epoch)
    assert from_text(to_text(trace.image)).newest == trace.image.newest
    trace.image.forget_past(keep_from=9)
    trace.image = from_text(to_text(trace.image))
    for epoch in range(8, len(trace.states)):
        trace.check(epoch)


@pytest.mark.parametrize("seed", range(6))
def test_kept_epochs_read_the_same_in_few_files_whatever_was_rescaled(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folding, "LEAVES", 3)
    trace = Trace(tmp_path, "upserts" if seed % 2 else "diffs", seed)
    duties = (trace.merge, trace.fold, trace.thin, trace.give_up)
    for _ in range(16):
        if trace.chance.random() < 0.3:
            trace.apply(Rescaled(len(trace.states), trace.chance.choice((1, 2, 3, 5)), 0.0))
        trace.epoch()
        for _ in range(4):
            trace.chance.choice(duties)()
        for epoch in [epoch for epoch in range(1, len(trace.states)) if epoch in trace.image.kept]:
            trace.check(epoch)
    trace.apply(Thinned(trace.image.epoch, (), trace.image.kept.among))
    while due_merges(trace.image):
        trace.merge()
    trace.give_up()
    trace.check(trace.image.epoch)
    assert max(map(len, pieces(trace.image.traces["t"]).values())) <= 12


def test_merging_to_the_end_leaves_layers_of_todays_shards_alone(tmp_path: Path) -> None:
    trace = Trace(tmp_path, "upserts", 1)
    for shards in (2, 8, 3):
        trace.apply(Rescaled(len(trace.states), shards, 0.0))
        for _ in range(6):
            trace.epoch()
    while due_merges(trace.image):
        trace.merge()
    trace.check(len(trace.states) - 1)
    newest = trace.image.newest["t"]
    assert {held for held, layers in newest.items() if len(layers) < 4} == set(newest)
    assert sorted(newest) == list(shard_ranges(3))


def layer(held: HashRange, lower: int, upper: int) -> LayerInfo:
    return LayerInfo("t", held, lower, upper, "diffs", f"{held} {lower}-{upper}", 1, 1, "")


def test_pieces_are_cut_only_where_ranges_overlap() -> None:
    halves, quarters = shard_ranges(2), shard_ranges(4)
    lower, upper, fine = layer(halves[0], 1, 2), layer(halves[1], 1, 2), layer(quarters[0], 2, 3)
    assert pieces({halves[0]: [lower], halves[1]: [upper], quarters[3]: []}) == {halves[0]: [lower], halves[1]: [upper]}
    cut = pieces({halves[0]: [lower], halves[1]: [upper], quarters[0]: [fine]})
    assert cut == {quarters[0]: [fine, lower], quarters[1]: [lower], halves[1]: [upper]}
    assert covers_of({halves[0]: [lower], quarters[0]: [fine]}, 2) == {quarters[0]: (fine, lower), quarters[1]: (lower,)}
    assert cover(cut[quarters[0]], 1) == (lower,)


def test_no_merged_layer_goes_beyond_the_epochs_that_changed_its_hashes() -> None:
    whole, (low, high) = HashRange(0, 1 << 64), shard_ranges(2)
    first, second, third = layer(low, 1, 2), layer(whole, 2, 3), layer(high, 3, 4)
    covers = {low: (second, first), high: (third, second)}
    assert merges_of(levels(covers, whole)) == [(low, [(second, low), (first, low)]), (high, [(third, high), (second, high)])]
    last = layer(whole, 4, 5)
    covers = {low: (last, second, first), high: (last, third, layer(high, 1, 2))}
    assert [held for held, _ in merges_of(levels(covers, whole))] == [whole]


def test_a_part_of_a_layer_is_a_layer_of_its_own_hashes(tmp_path: Path) -> None:
    hashes = pa.array(range(0, 1 << 64, 1 << 60), pa.uint64())
    batch = pa.RecordBatch.from_pydict({HASH: hashes, "k0": hashes, "n": pa.array([1] * 16, pa.int64())})
    whole = HashRange(0, 1 << 64)
    blocks = [batch.slice(0, 4), batch.slice(4, 4), batch.slice(8, 8)]
    info = write_layer(tmp_path, "layers/t/0-f/a", blocks, flow="f", trace="t", range=whole, lower=1, upper=2, kind="upserts", run="1.ab")
    opened_layer = open_layer(tmp_path, info)
    part = HashRange(3 << 60, (9 << 60) + 1)
    found = cut_to(opened_layer, part)
    assert [value >> 60 for block in found.blocks for value in block.column(0).to_pylist()] == [3, 4, 5, 6, 7, 8, 9]
    assert (found.rows, found.info.range, found.info.path) == (7, part, info.path)
    assert cut_to(opened_layer, whole) is opened_layer
    assert cut_to(opened_layer, HashRange(1, 2)).rows == 0
    assert replace(found.info, range=whole, rows=16, bytes=info.bytes) == info


@pytest.mark.parametrize("seed", range(8))
def test_covers_that_are_added_to_are_those_put_together_anew(seed: int) -> None:
    chance, shards = random.Random(seed), 1
    written: dict[HashRange, list[LayerInfo]] = {}
    known: Covers = {}
    for epoch in range(1, 40):
        if chance.random() < 0.3:
            shards = chance.choice([1, 2, 3, 5, 8, 64])
        changed = [layer(held, epoch, epoch + 1) for held in shard_ranges(shards) if chance.random() < 0.7]
        known = with_layers(known, changed)
        for one in changed:
            written.setdefault(one.range, []).append(one)
        for shard in shard_ranges(shards):
            assert _read(layer_ranges(known, shard)) == _read(layer_ranges(covers_of(written, Epoch(epoch)), shard))


def _read(found: Iterable[LayerRange]) -> list[tuple[str, HashRange]]:
    """Of each layer what is read of it; epochs newest first."""
    return sorted((one.path, part) for one, part in found)
