"""What a recovery does on the way: it touches what it must, says what it is at, and records no more than has changed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from nosync.journal.chain import read_chain
from nosync.journal.entries import Computed, Entry, Merged, Opened, Restored, Trimmed
from nosync.journal.journal import Journal
from nosync.journal.names import SEGMENTS
from nosync.journal.rolling import Roller
from nosync.model.engine import CoversOf, Outcome, Targets
from nosync.model.errors import Corrupt, Fenced, Unavailable
from nosync.model.layers import LayerInfo
from nosync.model.run import Runner
from nosync.model.shards import shard_ranges
from nosync.model.store import fingerprint
from nosync.recovery.plan import Recompute, Shape
from nosync.recovery.restore import Recovered, check_recoverable, recover
from nosync.runtime.epochs import Epochs
from tests.simulation.places import Away, Cache, Host, Link
from tests.simulation.program import DictEngine, shape_of
from tests.simulation.sources import Lasting, LastingReader
from tests.simulation.world import World

SHAPE = shape_of(dice=False)
HALVES = shard_ranges(2)
RELEASED = replace(SHAPE, sinks={})  # nobody waits for outputs


@dataclass
class Grown:
    """A flow of some epochs in one home, with a remote that has everything."""

    events: Sequence[int] = (1, 3, 5)
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.world, self.source = World(0), Lasting()
        host = Host(self.world, "boot")
        self.disk: Cache = host.disk
        self.remote = Link(self.world, Away(), host)
        self.journal = Journal(self.disk, self.remote, Runner(1, "host", "boot", 0.0, "00000001"))
        self.engine = DictEngine(self.world, self.disk, self.source, self.journal.run, dice=False)
        epochs = Epochs(self.journal, {"lasting": LastingReader(self.world, self.source, 0)}, self.engine, lambda: 0.0)
        for event in self.events:
            self.source.events.append(event)
            epochs.step()
        self.ship()

    def ship(self) -> None:
        self.journal.ship()
        for layer in self.journal.image.layers():
            self.remote.upload(layer.path, self.disk)

    def layers(self, trace: str = "totals", shard: int = 1) -> list[LayerInfo]:
        """Of one part, oldest first: of a lone odd event each epoch, all is in the second shard."""
        return sorted(self.journal.image.traces[trace][HALVES[shard]], key=lambda layer: (layer.upper - layer.lower, layer.lower))

    def merge(self, first: int, last: int) -> LayerInfo:
        merged = self.engine.merge([layer for layer in self.layers()[::-1] if first <= layer.lower and layer.upper <= last + 1])
        self.journal.append(Merged(merged))
        return merged

    def lose(self, *gone: LayerInfo | str) -> None:
        for one in gone:
            path = one if isinstance(one, str) else one.path
            self.disk.files.pop(path, None)
            self.remote.away.files.pop(path, None)

    def recover(self, shape: Shape = SHAPE, doubted: frozenset[str] = frozenset()) -> Recovered:
        return recover(
            self.journal, self.disk, self.remote, self.engine, shape, self.engine.verify, doubted, lambda at: self.said.append(at.what)
        )

    def entries_after(self, number: int) -> list[Entry]:
        return [entry for record in self.journal.after(number) for entry in record.entries]

    def listings(self) -> int:
        return self.world.seen["home.sizes", "ok", "none"]

    def totals(self, epoch: int) -> dict[int, int]:
        return self.engine.state("totals", lambda name: self.journal.image.covers(name, epoch))


@pytest.fixture
def grown() -> Grown:
    return Grown()


def test_where_all_is_there_nothing_is_listed(grown: Grown) -> None:
    before, number = grown.listings(), grown.journal.number
    chain = read_chain(grown.disk)
    listed = grown.listings() - before
    assert grown.recover().layers == len(grown.journal.image.newest_layers())
    check_recoverable(chain, grown.disk, grown.remote, SHAPE, grown.engine.verify, frozenset())
    assert grown.listings() == before + listed and grown.journal.number == number and grown.said == ["looking at what is there"]


def test_input_of_epochs_to_come_must_be_there_and_that_of_others_need_not(grown: Grown) -> None:
    for epoch in (4, 5):
        grown.disk.replace(f"input/s/{epoch}", b"row")
        grown.journal.append(Opened(epoch, 0.0, {"s": {}}, {f"input/s/{epoch}": fingerprint(b"row")}))
        if epoch == 4:
            grown.journal.append(Computed(4, (), {}, {}))
    before = grown.listings()
    grown.lose("input/s/4")
    grown.recover()
    assert grown.listings() == before
    grown.lose("input/s/5")
    assert grown.recover().rolled_back == 1 and grown.journal.image.last_opened == 4


def test_what_has_only_to_be_fetched_needs_nothing_of_the_past_and_leaves_no_record(grown: Grown) -> None:
    roller = Roller(grown.journal, grown.disk, grown.remote, 3)
    while roller.step(grown.journal.number):
        pass
    for name in grown.disk.sizes(SEGMENTS) | grown.remote.sizes(SEGMENTS):
        grown.lose(name)
    number, [first, second, _] = grown.journal.number, grown.layers()
    for layer in (first, second):
        del grown.disk.files[layer.path]
    done = grown.recover()
    assert (done.fetched, done.fetched_bytes, done.jobs) == (2, first.bytes + second.bytes, 0)
    assert grown.journal.number == number
    steps = [said for said in grown.said if said.startswith("fetching")]
    assert steps[0] == "fetching file 1 of 2 from the remote" and steps[-1] == "fetching file 2 of 2 from the remote"
    assert all(grown.disk.files[layer.path].name_synced for layer in (first, second))


def test_who_watches_may_give_up_before_the_first_file_comes(grown: Grown) -> None:
    del grown.disk.files[grown.layers()[0].path]

    def impatient(at: Any) -> None:
        if at.what.startswith("fetching"):
            raise Unavailable("enough")

    with pytest.raises(Unavailable):
        recover(grown.journal, grown.disk, grown.remote, grown.engine, SHAPE, grown.engine.verify, frozenset(), impatient)
    assert grown.world.seen["remote.download", "ok", "none"] == 0


def test_each_job_is_announced_and_counted(grown: Grown) -> None:
    grown.lose(grown.layers()[1], grown.layers()[2])
    done = grown.recover()
    assert grown.said == ["looking at what is there", "recomputing epochs 2 to 3 of totals"]
    assert (done.jobs, done.recomputed_epochs, done.missing_from, done.fetched) == (1, 2, 2, 0)


def test_what_vanished_between_looking_and_fetching_ends_the_recovery(grown: Grown, monkeypatch: pytest.MonkeyPatch) -> None:
    [first, *_] = grown.layers()
    del grown.disk.files[first.path]

    def gone(names: Sequence[str], disk: Cache) -> Iterator[tuple[str, bool]]:
        return ((name, False) for name in names)

    monkeypatch.setattr(grown.remote, "download_all", gone)
    with pytest.raises(Corrupt, match="vanished from the remote"):
        grown.recover()


def test_what_comes_damaged_from_the_remote_is_removed_here_and_there_and_recomputed(grown: Grown) -> None:
    [first, *_] = grown.layers()
    del grown.disk.files[first.path]
    grown.remote.away.files[first.path] = bytes(first.bytes)
    with pytest.raises(Corrupt, match="is damaged and was removed there"):
        grown.recover()
    assert first.path not in grown.disk.files and first.path not in grown.remote.away.files
    assert grown.recover().recomputed == 1 and grown.totals(3) == {1: 6, 3: 3}


def test_what_comes_damaged_does_not_stay_here_when_the_remote_cannot_be_reached(grown: Grown, monkeypatch: pytest.MonkeyPatch) -> None:
    [first, *_] = grown.layers()
    del grown.disk.files[first.path]
    grown.remote.away.files[first.path] = bytes(first.bytes)

    def cut(name: str) -> None:
        raise Unavailable("the link is cut")

    monkeypatch.setattr(grown.remote, "delete", cut)
    with pytest.raises(Unavailable):
        grown.recover()
    assert first.path not in grown.disk.files


@pytest.mark.parametrize(
    ("unrepeatable", "said"), [((), "their input was trimmed\n"), (("totals",), "a function that is not deterministic")]
)
def test_what_cannot_be_put_together_is_explained(grown: Grown, unrepeatable: tuple[str, ...], said: str) -> None:
    grown.journal.append(Trimmed("lasting", 3))
    grown.lose(grown.layers()[0])
    shape, chain = replace(SHAPE, unrepeatable=frozenset(unrepeatable)), read_chain(grown.disk)
    with pytest.raises(Corrupt, match=said):
        check_recoverable(chain, grown.disk, grown.remote, shape, grown.engine.verify, frozenset())
    with pytest.raises(Corrupt, match=said):
        grown.recover(shape)


# What is recorded


def test_what_is_computed_again_is_recorded_without_opening_anything_anew(grown: Grown) -> None:
    grown.journal.append(Opened(4, 0.0, {}))
    [*_, newest] = grown.layers()
    grown.lose(newest)
    number = grown.journal.number
    assert grown.recover().rolled_back == 0
    [restored] = grown.entries_after(number)
    assert isinstance(restored, Restored) and restored.lost == (newest.path,)


def test_state_at_the_first_epoch_of_a_layer_that_goes_on_is_recorded_although_nothing_else_was_lost(grown: Grown) -> None:
    grown.merge(2, 3)
    inside = tuple(layer.path for layer in grown.layers()[1:3])
    grown.journal.append(Restored(inside, ()))  # from here on the merged layer alone stands for epochs 2 and 3
    assert [(layer.lower, layer.upper) for layer in grown.layers()] == [(1, 2), (2, 4)]
    [*_, output] = grown.layers("out", 0)
    grown.lose(output)
    done = grown.recover(replace(RELEASED, unrepeatable=frozenset(["out"])), frozenset([output.path]))
    assert (done.epoch, done.recomputed) == (2, 1) and grown.totals(2) == {1: 1, 3: 3}


def test_after_a_roll_up_too_a_plan_reads_what_was_merged_instead_of_what_is_lost(grown: Grown) -> None:
    merged = grown.merge(1, 3)
    roller = Roller(grown.journal, grown.disk, None, 3)
    while roller.step(grown.journal.number):
        pass
    grown.lose(merged)
    assert grown.recover().recomputed == 0
    assert [(layer.lower, layer.upper) for layer in grown.layers()] == [(1, 2), (2, 3), (3, 4)] and grown.totals(3) == {1: 6, 3: 3}


def test_what_came_to_nothing_is_read_by_no_job_after_it_and_goes_from_the_record(grown: Grown, monkeypatch: pytest.MonkeyPatch) -> None:
    grown.lose(*grown.layers("out", 0)[1:])
    compute, seen = grown.engine.compute, dict[int, list[int]]()

    def forgetful(openings: Sequence[Opened], covers: CoversOf, targets: Targets, *rest: Any) -> Outcome:
        seen[openings[0].epoch] = sorted(layer.lower for layer in covers("totals")[HALVES[1]])
        outcome = compute(openings, covers, targets, *rest)
        return replace(outcome, layers=()) if openings[0].epoch == 2 else outcome

    monkeypatch.setattr(grown.engine, "compute", forgetful)
    [_, second, third] = grown.layers()
    number = grown.journal.number
    grown.recover()
    assert seen == {2: [1], 3: [1]}
    [restored] = grown.entries_after(number)
    assert isinstance(restored, Restored) and second.path in restored.lost
    assert third.path not in restored.lost  # what came out again stays beside it


def test_what_was_made_again_inside_a_layer_that_stands_for_a_lost_one_is_read_as_of_its_epochs(grown: Grown) -> None:
    merged, [_, _, lost] = grown.merge(1, 3), grown.layers()[:3]
    grown.lose(lost, *grown.layers("out", 0)[:2])
    assert grown.recover().jobs == 2
    assert {merged.path, lost.path} < {layer.path for layer in grown.layers()}
    assert [grown.totals(epoch) for epoch in (1, 2, 3)] == [{1: 1}, {1: 1, 3: 3}, {1: 6, 3: 3}]


@pytest.mark.parametrize(
    ("job", "replaced"),
    [
        (Recompute(2, 2, {"v": frozenset([HALVES[0]])}), True),
        (Recompute(1, 3, {"v": frozenset([HALVES[0]])}), True),
        (Recompute(2, 2, {"v": frozenset([HALVES[1]])}), False),
        (Recompute(2, 2, {"w": frozenset([HALVES[0]])}), False),
        (Recompute(1, 1, {"v": frozenset([HALVES[0]])}), False),
        (Recompute(3, 3, {"v": frozenset([HALVES[0]])}), False),
    ],
)
def test_a_job_replaces_what_it_makes_again_and_nothing_else(job: Recompute, replaced: bool) -> None:
    assert job.replaces(LayerInfo("v", HALVES[0], 2, 3, "upserts", "2-3", 1, 1, "")) == replaced


def test_input_is_fetched_like_layers_and_counts_for_none_of_their_bytes(grown: Grown) -> None:
    grown.disk.replace("input/s/4", b"row")
    grown.journal.append(Opened(4, 0.0, {"s": {}}, {"input/s/4": fingerprint(b"row")}))
    grown.remote.upload("input/s/4", grown.disk)
    grown.journal.ship()
    del grown.disk.files["input/s/4"]
    done = grown.recover()
    assert (done.fetched, done.fetched_bytes) == (1, 0) and grown.disk.read("input/s/4") == b"row"


def test_a_recovery_that_was_overtaken_deletes_nothing_on_the_remote(grown: Grown) -> None:
    [first, *_] = grown.layers()
    del grown.disk.files[first.path]
    grown.remote.away.files[first.path] = b"{}"
    host = Host(grown.world, "another boot")
    Journal(host.disk, Link(grown.world, grown.remote.away, host), Runner(2, "host", "boot", 0.0, "00000002"))
    with pytest.raises(Fenced):
        grown.recover()
    assert first.path in grown.remote.away.files and first.path not in grown.disk.files


def test_others_may_record_while_a_recovery_in_the_middle_of_a_run_looks_around(grown: Grown, monkeypatch: pytest.MonkeyPatch) -> None:
    for epoch in (4, 5):
        grown.disk.replace(f"input/s/{epoch}", b"row")
    grown.journal.append(Opened(4, 0.0, {"s": {}}, {"input/s/4": fingerprint(b"row")}))
    plain = grown.disk.read

    def read(name: str) -> bytes | None:
        if name == "input/s/4" and 5 not in grown.journal.image.opened:
            grown.journal.append(Opened(5, 0.0, {"s": {}}, {"input/s/5": fingerprint(b"row")}))
        return plain(name)

    monkeypatch.setattr(grown.disk, "read", read)
    grown.lose(grown.layers()[2])
    done = grown.recover()
    assert done.rolled_back == 0 and grown.journal.image.last_opened == 5 and grown.totals(3) == {1: 6, 3: 3}
