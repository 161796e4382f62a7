"""Shipping adapts: singly while it keeps up, collapsed when it is behind, shortened when it is idle; what it says is there is there."""

import itertools
from dataclasses import replace
from pathlib import Path

import pytest

from nosync.journal.entries import Computed, Merged, Opened, Restored
from nosync.journal.journal import Journal
from nosync.model.errors import Fenced, Unavailable
from nosync.model.hash_range import ALL_HASHES
from nosync.model.layers import LayerInfo
from nosync.model.policy import PATIENCE_SECONDS
from nosync.model.run import this_process
from nosync.store.disk import LocalDisk
from nosync.store.objects import Objects, open_remote
from nosync.tiers.choosing import collapsing, spans
from nosync.tiers.layer_shipper import REST_SECONDS, LayerShipper
from nosync.tiers.record_shipper import RecordShipper


@pytest.fixture
def remote(tmp_path: Path) -> Objects:
    return open_remote((tmp_path / "remote").as_uri())


@pytest.fixture
def journal(tmp_path: Path, remote: Objects) -> Journal:
    return Journal(LocalDisk(tmp_path / "home"), remote, this_process(0.0))


def layer(journal: Journal, lower: int, upper: int, size: int = 100) -> LayerInfo:
    path = f"layers/v/0-f/{lower}-{upper}-1.0-0.arrow"
    journal.disk.replace(path, b"x" * size)
    return LayerInfo("v", ALL_HASHES, lower, upper, "upserts", path, 1, size, "abc")


def compute(journal: Journal, *epochs: int) -> None:
    for epoch in epochs:
        journal.append(Opened(epoch, 0.0, {}))
        journal.append(Computed(epoch, (layer(journal, epoch, epoch + 1),), {}, {}))


def merge(journal: Journal, lower: int, upper: int, size: int = 100) -> None:
    journal.append(Merged(layer(journal, lower, upper, size)))


def shipped(remote: Objects) -> list[str]:
    return sorted(name.rpartition("/")[2].partition("-1.0")[0] for name in remote.sizes("layers"))


def unreadable(journal: Journal, shipper: LayerShipper) -> set[tuple[int, int]]:
    return spans(journal.image.traces["v"][ALL_HASHES], shipper.uploaded)


def test_a_layer_that_arrives_after_another_run_took_over_does_not_count(tmp_path: Path, journal: Journal, remote: Objects) -> None:
    records, shipper = RecordShipper(journal), LayerShipper(journal, journal.disk, remote, patience=0.0)
    compute(journal, 1)
    records.step()
    Journal(LocalDisk(tmp_path / "other"), remote, this_process(0.0))  # which does not find the layer, and would compute it again
    with pytest.raises(Fenced):
        shipper.step()
    assert shipped(remote) == ["1-2"] and shipper.standing(records).epoch == 0


def test_what_arrived_counts_as_soon_as_one_could_look(journal: Journal, remote: Objects, monkeypatch: pytest.MonkeyPatch) -> None:
    records, shipper = RecordShipper(journal), LayerShipper(journal, journal.disk, remote, patience=0.0)
    compute(journal, 1)
    records.step()
    with monkeypatch.context() as cut:
        cut.setattr(journal, "look_at", lambda store: (_ for _ in ()).throw(Unavailable("not now")))
        with pytest.raises(Unavailable):
            shipper.step()
    assert shipper.standing(records).epoch == 0
    shipper.step()
    assert shipper.standing(records).epoch == 1


def test_while_it_keeps_up_every_epoch_travels_alone(journal: Journal, remote: Objects) -> None:
    shipper = LayerShipper(journal, journal.disk, remote, patience=0.0)
    compute(journal, 1)
    while shipper.step():
        pass
    compute(journal, 2)
    merge(journal, 1, 3)
    while shipper.step():
        pass
    assert shipped(remote) == ["1-2", "2-3"]


def test_when_it_is_behind_the_merged_layer_travels_instead(journal: Journal, remote: Objects) -> None:
    shipper = LayerShipper(journal, journal.disk, remote, patience=0.0)
    compute(journal, *range(1, 9))
    merge(journal, 1, 9)
    while shipper.step():
        pass
    assert shipped(remote) == ["1-9"]


def test_what_was_merged_meanwhile_travels_alone_though_it_begins_with_epochs_that_are_there(journal: Journal, remote: Objects) -> None:
    records, shipper = RecordShipper(journal), LayerShipper(journal, journal.disk, remote, patience=0.0)
    compute(journal, 1, 2, 3)
    while shipper.step():
        pass
    compute(journal, 4, 5, 6, 7)
    merge(journal, 3, 8, size=350)
    while shipper.step() or records.step():
        pass
    assert shipped(remote) == ["1-2", "2-3", "3-4", "3-8"]
    assert shipper.standing(records).epoch == 7
    assert unreadable(journal, shipper) == {(4, 8)}  # 3 can be read there, 4 to 6 cannot
    assert not shipper.spans


def test_a_start_that_has_forgotten_what_a_merged_layer_stands_for_claims_none_of_its_epochs(journal: Journal, remote: Objects) -> None:
    compute(journal, 1, 2, 3, 4)
    merge(journal, 1, 5)
    while (shipper := LayerShipper(journal, journal.disk, remote, patience=0.0)).waiting["v", ALL_HASHES]:
        shipper.step()
    compute(journal, 5)
    journal.image.forget_past(journal.image.epoch)
    assert unreadable(journal, LayerShipper(journal, journal.disk, remote, patience=0.0)) == {(1, 5)}


def test_a_merged_layer_that_is_larger_than_what_waits_does_not_travel(journal: Journal, remote: Objects) -> None:
    shipper = LayerShipper(journal, journal.disk, remote, patience=0.0)
    compute(journal, 1)
    while shipper.step():
        pass
    compute(journal, 2, 3, 4, 5)
    merge(journal, 1, 6, size=401)
    while shipper.step():
        pass
    assert "1-6" not in shipped(remote)


def test_a_layer_that_overlaps_a_part_of_what_is_there_does_not_travel() -> None:
    def at(lower: int, upper: int) -> LayerInfo:
        return LayerInfo("v", ALL_HASHES, lower, upper, "upserts", f"{lower}-{upper}", 1, 100, "abc")

    there, crossing, waiting = at(1, 6), at(4, 10), [at(epoch, epoch + 1) for epoch in (6, 7, 8, 9)]
    assert collapsing(waiting, [there, crossing, *waiting], {there.path}) == waiting[0]
    assert collapsing(waiting, [there, crossing, *waiting], set()) == crossing


def test_while_epochs_follow_each_other_layers_wait_to_be_merged_but_not_for_ever(journal: Journal, remote: Objects) -> None:
    now = 100.0
    shipper = LayerShipper(journal, journal.disk, remote, clock=lambda: now)
    for epoch in range(1, 5):
        compute(journal, epoch)
        assert not shipper.step()
        now += REST_SECONDS / 2
    merge(journal, 1, 4, size=250)
    now += PATIENCE_SECONDS - 2 * REST_SECONDS
    compute(journal, 5)
    assert shipper.step() and not shipper.step()
    assert shipped(remote) == ["1-4"]


def test_when_the_stream_rests_nothing_waits(journal: Journal, remote: Objects) -> None:
    now = 100.0
    shipper = LayerShipper(journal, journal.disk, remote, clock=lambda: now)
    compute(journal, 1)
    assert not shipper.step()
    now += 2 * REST_SECONDS
    assert shipper.step() and shipped(remote) == ["1-2"]


def test_idle_it_ships_what_shortens_a_recovery(journal: Journal, remote: Objects) -> None:
    clock = itertools.count(100.0)
    shipper = LayerShipper(journal, journal.disk, remote, most_layers=2, clock=lambda: next(clock))
    for epoch in range(1, 5):
        compute(journal, epoch)
        while shipper.step():
            pass
    assert shipped(remote) == ["1-2", "2-3", "3-4", "4-5"]
    merge(journal, 1, 5)
    while shipper.step():
        pass
    assert "1-5" in shipped(remote)


def test_an_epoch_is_safe_once_its_layers_and_the_records_that_name_them_are_there(journal: Journal, remote: Objects) -> None:
    records, layers = RecordShipper(journal), LayerShipper(journal, journal.disk, remote, patience=0.0)
    compute(journal, 1, 2)
    assert layers.standing(records).epoch == 0
    layers.step()
    assert layers.standing(records).epoch == 0
    records.step()
    assert layers.standing(records).epoch == 1
    layers.step()
    assert layers.standing(records).epoch == 2
    assert (layers.standing(records).behind, layers.standing(records).objects) == (0, 3)


def test_where_a_layer_was_lost_the_one_that_stands_for_it_is_shipped(journal: Journal, remote: Objects) -> None:
    compute(journal, 1, 2, 3)
    merge(journal, 1, 4, size=1000)
    journal.disk.delete("layers/v/0-f/2-3-1.0-0.arrow")
    shipper = LayerShipper(journal, journal.disk, remote, patience=0.0)
    while shipper.step():
        pass
    assert shipped(remote) == ["1-2", "1-4"]
    assert unreadable(journal, shipper) == {(2, 4)}


def test_what_a_placed_layer_stood_for_alone_comes_too_once_another_crosses_it(journal: Journal, remote: Objects) -> None:
    """No cover has both: one that a home made of epochs 1 to 4 is there, and a recovery has made one of 3 to 6."""
    compute(journal, 1, 2, 3, 4)
    merge(journal, 1, 5)
    remote.upload("layers/v/0-f/1-5-1.0-0.arrow", journal.disk)
    journal.append(Restored(("layers/v/0-f/3-4-1.0-0.arrow", "layers/v/0-f/4-5-1.0-0.arrow"), (layer(journal, 3, 7),)))
    records, shipper = RecordShipper(journal), LayerShipper(journal, journal.disk, remote, patience=0.0)
    while shipper.step():
        assert shipper.standing(records).epoch < 6
        records.step()
    assert shipped(remote) == ["1-2", "1-5", "2-3", "3-7"]


def test_a_lost_layer_whose_stand_in_is_there_already_holds_nothing_up(journal: Journal, remote: Objects) -> None:
    """Of 1 to 3 and 3 to 5, both there, no cover has both, until 4 to 6 is there too."""
    compute(journal, 1, 2, 3, 4, 5, 6)
    old, others = layer(journal, 3, 6), (layer(journal, 1, 4), layer(journal, 4, 7))
    journal.append(Restored((), (old, *others)))
    for there in (old, others[0]):
        remote.upload(there.path, journal.disk)
    journal.disk.delete("layers/v/0-f/1-2-1.0-0.arrow")
    records, shipper = RecordShipper(journal), LayerShipper(journal, journal.disk, remote, patience=0.0)
    for _ in range(20):
        shipper.step()
        records.step()
    assert not shipper.step() and shipper.standing(records).epoch == 6


def test_a_busy_stream_whose_traces_are_merged_at_different_epochs_becomes_safe_all_the_same(journal: Journal, remote: Objects) -> None:
    records, shipper = RecordShipper(journal), LayerShipper(journal, journal.disk, remote, patience=0.0, clock=lambda: 0.0)
    for begin in range(1, 80, 4):
        compute_both(journal, range(begin, begin + 4))
        for trace, lower in (("v", begin), ("w", begin - 2)):  # a layer of one ends in the middle of one of the other
            if lower > 0:
                journal.append(Merged(made(journal, trace, lower, lower + 4)))
        records.step()
        for _ in range(3):  # layers go more slowly than they are written
            shipper.step()
    records.step()
    assert shipper.busy and shipper.standing(records).epoch > 40


def test_what_stands_for_much_of_the_past_goes_though_the_stream_never_rests(journal: Journal, remote: Objects) -> None:
    shipper = LayerShipper(journal, journal.disk, remote, patience=0.0, clock=lambda: 0.0)
    compute(journal, 1, 2, 3, 4)
    folded = replace(made(journal, "v", 1, 5), versions=4, path="layers/v/0-f/1-5-1.0-4.arrow")
    journal.disk.replace(folded.path, b"x")
    shipper.wanted = {folded.path: folded}
    for epoch in range(5, 25):  # there is always one more that waits
        compute(journal, epoch)
        shipper.step()
        if folded.path in shipper.uploaded:
            return
    pytest.fail("it has waited for a rest")


def made(journal: Journal, trace: str, lower: int, upper: int) -> LayerInfo:
    path = f"layers/{trace}/0-f/{lower}-{upper}-1.0-0.arrow"
    journal.disk.replace(path, b"x" * 100)
    return LayerInfo(trace, ALL_HASHES, lower, upper, "upserts", path, 1, 100, "abc")


def compute_both(journal: Journal, epochs: range) -> None:
    for epoch in epochs:
        journal.append(Opened(epoch, 0.0, {}))
        journal.append(Computed(epoch, tuple(made(journal, trace, epoch, epoch + 1) for trace in ("v", "w")), {}, {}))
