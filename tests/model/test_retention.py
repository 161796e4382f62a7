"""What may be given up: one rule, and merger, sweeper, trimmer and readers follow it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from nosync.duties.merging import due_merges
from nosync.duties.upkeep import Upkeep
from nosync.history.record import ViewRecord
from nosync.history.view_covers import Past, covers_at
from nosync.journal.entries import Computed, Declared, Entry, Opened
from nosync.journal.image import Image, fold
from nosync.journal.image_text import from_text, to_text
from nosync.journal.journal import Journal
from nosync.journal.names import layer_path
from nosync.model.errors import NotInHistory
from nosync.model.hash_range import ALL_HASHES
from nosync.model.identifiers import Epoch
from nosync.model.layers import LayerInfo
from nosync.model.retention import EVERY_EPOCH, Hold, Kept, boundary, record_holds, recovery_holds, release_holds
from nosync.model.run import Runner
from nosync.model.safety import Standing
from nosync.store.disk import LocalDisk

EPOCHS = 40
RUN = "1.00000001"
VIEW = ViewRecord(pa.schema([("n", pa.int64())]), "v", "diffs")


@dataclass(frozen=True)
class LastEpochs:
    """Keeps the last few epochs, their state and their input, and whatever is held."""

    count: int

    def kept(self, newest: Epoch, times: Mapping[Epoch, float], now: float, holds: Sequence[Hold]) -> Kept:
        since = min([newest - self.count + 1, *(hold.first for hold in holds if hold.last is None)])
        held = {epoch for hold in holds if hold.last is not None for epoch in range(hold.first, hold.last + 1)}
        return Kept(max(1, since), tuple(sorted(epoch for epoch in held if epoch < since)))

    def boundary(self, newest: Epoch, holds: Sequence[Hold]) -> Epoch:
        return min(max(0, newest - self.count), boundary(newest, holds))


class Flow:
    """A flow of some epochs, all of them safe, under a rule that keeps the last ten."""

    def __init__(self, home: Path) -> None:
        self.journal = Journal(LocalDisk(home, fsync=lambda descriptor: None), None, Runner(1, "host", "boot", 0.0, "00000001"))
        self.disk, self.trimmed = self.journal.disk, list[int]()
        trims = {"s": lambda slice: self.trimmed.append(slice["number"])}
        self.upkeep = Upkeep(self.journal, self.disk, None, {}, None, trims, trim_batch=1, retention=LastEpochs(10))  # type: ignore[arg-type]
        self.journal.append(Declared("shop", 1, {}, {}, {}, {}, {"v": ["v"], "w": ["w"]}))
        for epoch in range(1, EPOCHS + 1):
            self.journal.append(Opened(epoch, float(epoch), {"s": {"number": epoch}}))
            made = layer("v", epoch)
            self.disk.replace(made.path, b"rows")
            self.journal.append(Computed(epoch, (made,), {}, {}))
        while any(duty() for duty in self.upkeep.duties().values()):
            pass


def layer(trace: str, epoch: int) -> LayerInfo:
    return LayerInfo(trace, ALL_HASHES, epoch, epoch + 1, "diffs", layer_path(trace, ALL_HASHES, epoch, epoch + 1, RUN), 1, 4, "")


@pytest.fixture(scope="module")
def flow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flow]:
    yield Flow(tmp_path_factory.mktemp("home"))


def test_the_rule_is_recorded_and_outlives_a_roll_up(flow: Flow) -> None:
    assert flow.journal.image.kept == Kept(EPOCHS - 9)
    assert from_text(to_text(flow.journal.image)).kept == Kept(EPOCHS - 9)


def test_a_reader_may_have_what_is_kept_and_nothing_else(flow: Flow) -> None:
    past = Past(flow.disk, None, flow.journal.base)
    assert covers_at(flow.journal.image, VIEW, "v", EPOCHS - 9, past)
    with pytest.raises(NotInHistory, match=f'epoch {EPOCHS - 10} of view "v" is not kept') as error:
        covers_at(flow.journal.image, VIEW, "v", EPOCHS - 10, past)
    assert f"Ask for epoch {EPOCHS - 9}" in error.value.hint


def test_input_is_trimmed_up_to_the_boundary_of_the_rule(flow: Flow) -> None:
    assert flow.trimmed == list(range(1, EPOCHS - 9))


def test_leftovers_are_swept_up_to_the_boundary_of_the_rule(flow: Flow) -> None:
    given_up, kept = layer("v", EPOCHS - 10).path, layer("v", EPOCHS - 9).path
    for name in (given_up, kept):
        flow.disk.replace(name, b"of an attempt that was repeated")
    flow.upkeep.look_for_orphans()
    assert flow.upkeep.sweepers[0].due == [given_up]


def test_of_equally_long_covers_that_is_merged_first_whose_inputs_may_go() -> None:
    entries: list[Entry] = []
    for epoch in range(1, 9):
        entries += [Opened(epoch, 0.0, {}), Computed(epoch, (layer("w" if epoch > 4 else "v", epoch),), {}, {})]
    recent_first = {"w": None, "v": None}
    for kept, trace in ((Kept(), "w"), (Kept(5), "v"), (Kept(9, (2,)), "w")):
        image = _ordered(fold(entries), recent_first)
        image.kept = kept
        (order,) = due_merges(image)[0]
        assert {text["trace"] for text in order["layers"]} == {trace}  # type: ignore[attr-defined]


def _ordered(image: Image, traces: dict[str, None]) -> Image:
    image.newest = {trace: image.newest[trace] for trace in traces}
    return image


def test_a_layer_stands_for_those_within_it_where_no_epoch_but_its_last_is_kept() -> None:
    kept = Kept(20, (5, 9))
    assert kept.stands_alone(1, 6) and kept.stands_alone(6, 10) and kept.stands_alone(10, 21) and kept.stands_alone(30, 31)
    assert not kept.stands_alone(1, 7) and not kept.stands_alone(5, 9) and not kept.stands_alone(10, 22) and not kept.stands_alone(20, 22)
    assert [epoch for epoch in range(1, 23) if epoch in kept] == [5, 9, 20, 21, 22]
    assert kept.near(3) == [5] and kept.near(7) == [5, 9] and kept.near(12) == [9, 20]


def test_what_was_given_up_once_does_not_come_back() -> None:
    assert Kept(20, (5, 9)).of(Kept()) == Kept().of(Kept(20, (5, 9))) == Kept(20, (5, 9))
    assert Kept(20, (5, 9)).of(Kept(8, (3, 5))) == Kept(20, (5, 9))
    assert Kept(20, (5, 9)).of(Kept(30, (9, 25))) == Kept(30, (9, 25))


def test_a_pin_keeps_its_epoch_and_an_open_hold_all_that_follow() -> None:
    rule = LastEpochs(3)
    assert rule.kept(40, {}, 0.0, []) == Kept(38)
    assert rule.kept(40, {}, 0.0, [Hold("a pin", 7, 7), Hold("a sink that is behind", 20)]) == Kept(20, (7,))
    assert rule.boundary(40, [Hold("a sink that is behind", 20)]) == 19


def test_without_a_rule_every_epoch_is_kept_and_input_goes_once_nothing_holds_it() -> None:
    assert EVERY_EPOCH.kept(40, {}, 0.0, [Hold("a pin", 7, 7)]) == Kept(1)
    assert EVERY_EPOCH.boundary(40, []) == 40
    assert EVERY_EPOCH.boundary(40, [Hold("not yet safe after loss of the site", 31), Hold('sink "out" has yet to get it', 12)]) == 11


def test_what_a_tier_or_a_sink_has_is_not_held_and_the_next_one_is() -> None:
    tier = Standing("site", 7, 5, 0, 0, 0)
    assert [hold.first for hold in (*recovery_holds([tier]), *record_holds([tier]), *release_holds({"out": 3}))] == [6, 8, 4]
    assert boundary(9, recovery_holds([tier])) == 5 and boundary(9, record_holds([tier])) == 7
    assert boundary(2, release_holds({"out": 3})) == 2


def test_only_epochs_are_kept() -> None:
    assert 5 in Kept() and "5" not in Kept()
