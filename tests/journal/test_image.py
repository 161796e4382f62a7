"""The image is what a fold over all entries says, and stays it: as a copy, as text, and with its past forgotten."""

import json
import random
from dataclasses import replace
from typing import Any

import pytest

from nosync.journal.entries import (
    Computed,
    Declared,
    Entry,
    Keeping,
    Merged,
    Opened,
    Pinned,
    Reached,
    Released,
    Releasing,
    Rescaled,
    Restored,
    RolledBack,
    Skipped,
    Started,
    Swept,
    TakenOver,
    Thinned,
    Trimmed,
    Unpinned,
)
from nosync.journal.image import RECENT, Begun, Image, fold
from nosync.journal.image_text import from_text, to_text
from nosync.model.layers import LayerInfo
from nosync.model.retention import Kept
from nosync.model.shards import shard_ranges
from nosync.state.cover import cover

HALVES = shard_ranges(2)


def layer(trace: str, shard: int, lower: int, upper: int, mark: int = 0) -> LayerInfo:
    path = f"layers/{trace}/{shard}/{lower}-{upper}-{mark}"
    return LayerInfo(trace, HALVES[shard], lower, upper, "upserts", path, 1, 10 + mark, "x")


def compute(epoch: int, *traces: str, **facts: Any) -> list[Entry]:
    layers = tuple(layer(trace, shard, epoch, epoch + 1) for trace in traces or ("a", "b") for shard in (0, 1))
    return [Opened(epoch, 0.0, {"s": {}}), Computed(epoch, layers, facts.get("rows", {}), facts.get("rejected", {}), facts.get("seen", {}))]


def epochs(count: int) -> list[Entry]:
    return [entry for epoch in range(1, count + 1) for entry in compute(epoch)]


class Model:
    """The same, kept the plain way."""

    def __init__(self, seed: int) -> None:
        self.chance, self.image, self.mark = random.Random(seed), Image(), 0
        self.layers: list[LayerInfo] = []
        self.computed: dict[int, Computed] = {}
        self.possible = [self.computes] * 8 + [self.merges] * 4 + [self.restores, self.rolls_back]

    def next(self) -> None:
        entry = self.chance.choice(self.possible)()
        if entry is not None:
            self.image.apply(self.image.number + 1, entry)

    def made(self, trace: str, shard: int, lower: int, upper: int) -> LayerInfo:
        self.mark += 1
        self.layers.append(layer(trace, shard, lower, upper, self.mark))
        return self.layers[-1]

    def computes(self) -> Entry:
        epoch = self.image.epoch + 1
        self.image.apply(self.image.number + 1, Opened(epoch, 0.0, {"s": {}}))
        layers = [self.made(trace, shard, epoch, epoch + 1) for trace in "ab" for shard in (0, 1) if self.chance.random() < 0.6]
        counts = {"s": self.chance.randrange(9)}
        self.computed[epoch] = Computed(epoch, tuple(layers), counts, {name: count // 2 for name, count in counts.items()})
        return self.computed[epoch]

    def merges(self) -> Entry | None:
        found = self.image.covers(self.chance.choice("ab"), self.image.epoch).get(HALVES[0], ())
        if len(found) < 2:
            return None
        start = self.chance.randrange(len(found) - 1)
        inputs = found[start : start + self.chance.choice((2, 3))]
        return Merged(self.made(inputs[0].trace, 0, inputs[-1].lower, inputs[0].upper))

    def restores(self) -> Entry:
        lost = self.chance.sample(self.layers, min(len(self.layers), 2))
        self.layers = [one for one in self.layers if one not in lost]
        again = [self.made(one.trace, 0 if one.range == HALVES[0] else 1, one.lower, one.upper) for one in lost]
        known = self.chance.sample(self.layers, min(len(self.layers), 1))
        return Restored(tuple(one.path for one in lost), (*known, *again))

    def rolls_back(self) -> Entry:
        epoch = self.chance.randrange(max(0, self.image.epoch - 3), self.image.epoch + 1)
        self.layers = [one for one in self.layers if one.upper <= epoch + 1]
        self.computed = {number: entry for number, entry in self.computed.items() if number <= epoch}
        return RolledBack(epoch)

    def cover(self, trace: str, shard: int, at: int) -> tuple[LayerInfo, ...]:
        return cover([one for one in self.layers if (one.trace, one.range) == (trace, HALVES[shard])], at)

    def covers(self, at: int) -> dict[str, Any]:
        found = {trace: {HALVES[shard]: self.cover(trace, shard, at) for shard in (0, 1)} for trace in "ab"}
        return {trace: {held: layers for held, layers in parts.items() if layers} for trace, parts in found.items()}


def seen_in(image: Image, at: int) -> dict[str, Any]:
    return {trace: image.covers(trace, at) for trace in "ab"}


@pytest.mark.parametrize("seed", range(40))
def test_the_image_is_what_the_plain_way_gives(seed: int) -> None:
    model = Model(seed)
    for _ in range(40):
        model.next()
        image, total = model.image, [entry.rows.get("s", 0) for entry in model.computed.values()]
        assert sorted(one.path for one in image.layers()) == sorted(one.path for one in model.layers)
        assert {trace: covers for trace, covers in image.newest.items() if covers} == {
            t: c for t, c in model.covers(image.epoch).items() if c
        }
        assert image.kept_layers == len(model.layers)
        assert {trace: size for trace, size in image.kept_bytes.items() if size} == sizes_of(model.layers)
        assert (image.rows.get("s", 0), image.rejected.get("s", 0)) == (sum(total), sum(count // 2 for count in total))
        assert image.computed.keys() == image.computed_in.keys() == model.computed.keys() and image.opened == {**image.opened}
        assert image.unfinished() is None and image.last_opened == image.epoch
    for at in range(image.epoch + 1):
        assert seen_in(image, at) == model.covers(at)


def changes_in(model: Model, image: Image, at: int) -> list[tuple[str, int, int]]:
    """By trace, range of hashes and epoch, the changes that covers hold; each as often as it is held."""
    found = [(trace, held, one) for trace in "ab" for held, layers in image.covers(trace, at).items() for one in layers]
    changed = {(one.trace, one.range, one.lower) for one in model.layers if one.upper == one.lower + 1}
    held = [
        (trace, held.lower, epoch) for trace, held, one in found for epoch in range(one.lower, one.upper) if (trace, held, epoch) in changed
    ]
    return sorted(held)


def sizes_of(layers: list[LayerInfo]) -> dict[str, int]:
    found: dict[str, int] = {}
    for one in layers:
        found[one.trace] = found.get(one.trace, 0) + one.bytes
    return found


@pytest.mark.parametrize("seed", range(20))
def test_what_is_forgotten_changes_no_answer_from_there_on(seed: int) -> None:
    model = Model(seed)
    model.possible.remove(model.restores)
    for _ in range(30):
        model.next()
    image, keep_from = model.image.copy(), model.chance.randrange(1, model.image.epoch + 2)
    image.forget_past(keep_from)
    for known in (image.opened, image.opened_in, image.computed, image.computed_in):
        assert {*known} == {*range(keep_from, image.epoch + 1)}
    for at in range(image.epoch + 1):
        assert changes_in(model, image, at) == changes_in(model, model.image, at)
    assert sorted(one.path for one in image.layers()) == sorted(one.path for one in model.layers)


def everything() -> Image:
    """An image with something in every field."""
    return fold(
        [
            Declared("shop", 2, {}, {}, {}, feeders={"a": [], "b": []}),
            Started("1.a", 1, "host", "boot", 0.0, "s3://there"),
            *epochs(3),
            *compute(4, rows={"s": 5}, rejected={"s": 2}, seen={"s": 44}),
            Merged(layer("a", 0, 1, 3)),
            TakenOver(4, (), {"b": 3}, True, {"new": 4}, [(2, {"s": 22})]),
            Reached("site", 2),
            Releasing("out", 4),
            Released("out", 3),
            Trimmed("s", 2, 1),
            Skipped("s", {"f": 3}, 0.0),
            Swept(7, 2),
            Keeping("2 epochs"),
            Pinned("before", 1),
            Thinned(2, (1,)),
            Keeping("all for 1d"),
            Pinned("report", 3),
            Pinned("dropped", 2),
            Unpinned("dropped"),
            Rescaled(5, 4, 0.0),
            Opened(5, 0.0, {"s": {"upper": 9}}),
        ]
    )


def test_a_roll_up_says_the_whole_image() -> None:
    image = everything()
    empty = [name for name, value in vars(image).items() if not value]
    assert not empty and from_text(json.loads(json.dumps(to_text(image), default=str))) == image
    assert from_text(json.loads(json.dumps(to_text(Image()), default=str))) == Image()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("declared", "started"),
        ("started", "declared"),
        ("kept", "started"),
        ("epoch", "7"),
        ("swept", ["a", 2]),
        ("reached", {"site": "2"}),
    ],
)
def test_a_roll_up_that_says_something_else_is_refused(name: str, value: Any) -> None:
    text = json.loads(json.dumps(to_text(everything()), default=str))
    text[name] = text[value] if isinstance(value, str) and value in text else value
    with pytest.raises((ValueError, TypeError)):
        from_text(text)


def test_a_copy_goes_its_own_way() -> None:
    image, before = everything(), everything()
    other = image.copy()
    for entry in (
        Computed(5, (layer("a", 0, 5, 6), layer("c", 1, 5, 6)), {"s": 1}, {"s": 1}),
        Released("out", 4),
        Trimmed("s", 4),
        RolledBack(2),
    ):
        other.apply(other.number + 1, entry)
    assert image == before != other


# One entry at a time


def test_another_remote_has_reached_nothing_yet() -> None:
    image = fold([Started("1.a", 1, "host", "boot", 0.0, "s3://one"), *epochs(2), Reached("site", 2)])
    image.apply(9, Started("2.b", 1, "host", "boot", 0.0, "s3://one"))
    assert image.reached == {"site": 2} and image.history == "1.a"
    image.apply(10, Started("3.c", 1, "host", "boot", 0.0, "s3://other"))
    assert image.reached == {}


@pytest.mark.parametrize(
    ("entry", "reached"),
    [
        (Restored((), ()), 4), (Restored((), (layer("a", 0, 3, 4), layer("a", 0, 4, 5))), 2), (RolledBack(3), 3), (RolledBack(4), 4),
        (TakenOver(4, (layer("b", 0, 2, 3, 1), layer("b", 0, 3, 5, 1)), {}, False, {}), 1), (TakenOver(4, (), {}, True, {}), 4),
    ],
)  # fmt: skip
def test_what_was_made_anew_is_on_no_tier_until_a_run_says_so(entry: Entry, reached: int) -> None:
    assert fold([*epochs(4), Reached("site", 4), entry]).reached == {"site": reached}


def test_a_tier_that_is_behind_what_was_made_anew_stays_where_it_is() -> None:
    assert fold([*epochs(4), Reached("site", 1), Restored((), (layer("a", 0, 3, 4),))]).reached == {"site": 1}


def test_what_a_run_takes_over_says_where_it_begins_and_what_was_seen() -> None:
    image = everything()
    assert image.begun == {"b": Begun(4 - 1, 12, True)} and image.released == {"new": 4, "out": 3}
    assert image.seen == {4: {"s": 44}, 2: {"s": 22}} and image.seen_before(5) == {"s": 44} and image.seen_before(4) == {}
    image.apply(30, TakenOver(4, (), {}, True, {}, [(4, {"s": 50, "t": 1})]))
    assert image.seen_before(5) == {"s": 50, "t": 1}


def test_what_was_rebuilt_for_a_changed_program_is_there() -> None:
    made = (layer("c", 0, 1, 4), layer("c", 1, 1, 4))
    image = fold([*epochs(3), TakenOver(3, made, {"c": 3}, False, {})])
    assert image.covers("c", 3) == {HALVES[0]: made[:1], HALVES[1]: made[1:]} and image.kept_bytes["c"] == 20


def test_an_epoch_that_was_opened_comes_next() -> None:
    image = everything()
    assert (unfinished := image.unfinished()) is not None and unfinished.epoch == 5 and image.last_opened == 5


def test_what_is_rolled_back_is_as_if_it_had_never_been() -> None:
    image = everything()
    image.apply(40, RolledBack(3))
    assert (image.epoch, image.last_opened, image.rows, image.rejected) == (3, 3, {"s": 0}, {"s": 0})
    assert {*image.opened} == {*image.opened_in} == {*image.computed} == {*image.computed_in} == {1, 2, 3} and image.seen == {2: {"s": 22}}
    assert max(one.upper for one in image.layers()) == 4
    image.apply(41, RolledBack(3))
    assert image.epoch == 3


def test_an_epoch_that_is_opened_but_not_computed_can_be_rolled_back_alone() -> None:
    image = everything()
    image.apply(40, RolledBack(4))
    assert (image.epoch, image.last_opened) == (4, 4) and image.rows == {"s": 5}


def test_traces_that_a_program_does_not_name_are_dropped_with_all_that_is_known_of_them() -> None:
    image = everything()
    image.apply(50, Declared("shop", 2, {}, {}, {}))
    assert {*image.traces} == {"a", "b"} and image.begun == {}
    image = everything()
    image.apply(50, Declared("shop", 2, {}, {}, {}, feeders={"b": [], "c": []}))
    assert {*image.traces} == {*image.newest} == {*image.kept_bytes} == {"b"} == {*image.begun}
    assert image.kept_layers == len(image.layers()) == 8


def test_a_part_of_the_traces_is_as_if_nothing_else_were_there() -> None:
    image = everything()
    assert image.only(["a", "b", "c"]) is image
    other = image.only(["a"])
    assert {*other.traces} == {*other.newest} == {*other.kept_bytes} == {"a"} and other.kept_layers == 9
    assert image == everything()


def test_event_times_are_known_for_new_epochs_and_for_the_ends_of_layers() -> None:
    last = 2 * RECENT
    image = fold([entry for epoch in range(1, last + 1) for entry in compute(epoch, "a", seen={"s": epoch})])
    image.apply(99, Merged(layer("a", 0, 1, 6)))
    for shard in (0, 1):
        image.newest["a"][HALVES[shard]] = (layer("a", shard, 6, last + 1), layer("a", shard, 1, 6))
    image.forget_past(last + 1)
    assert sorted(image.seen) == [5, *range(last - RECENT + 1, last + 1)]


def test_epochs_without_event_times_are_not_listed() -> None:
    assert fold(epochs(3)).seen == {}


def test_a_layer_that_is_already_there_is_not_added_again() -> None:
    image = fold(epochs(2))
    again = layer("a", 0, 1, 2)
    image.apply(9, Restored((), (again, replace(again, path="another"))))
    assert [one.path for one in image.traces["a"][HALVES[0]]] == [again.path, layer("a", 0, 2, 3).path, "another"]
    assert image.kept_layers == 9 and image.kept_bytes == {"a": 50, "b": 40}


def test_of_what_is_lost_nothing_is_covered() -> None:
    image = fold(epochs(1))
    image.apply(9, Restored(tuple(one.path for one in image.layers() if one.trace == "a"), ()))
    assert image.newest == {"a": {}, "b": image.newest["b"]} and image.covers("a", 1) == {} and image.kept_bytes["a"] == 0
    assert image.kept == Kept()
