"""Which layer goes next, when, and what is known of it afterwards: what lies on either side of each bound."""

from pathlib import Path

import pytest

from nosync.journal.entries import Computed, Opened, Restored
from nosync.journal.journal import Journal
from nosync.journal.rolling import Roller
from nosync.model.errors import Conflict, Fenced
from nosync.model.hash_range import ALL_HASHES
from nosync.model.layers import LayerInfo
from nosync.model.run import this_process
from nosync.model.store import Disk
from nosync.store.disk import LocalDisk
from nosync.store.objects import Objects, open_remote
from nosync.tiers import layer_shipper, record_shipper
from nosync.tiers.choosing import collapsing
from nosync.tiers.layer_shipper import REST_SECONDS, LayerShipper
from nosync.tiers.record_shipper import RecordShipper

from .test_shippers import compute, layer, merge, shipped


@pytest.fixture
def remote(tmp_path: Path) -> Objects:
    return open_remote((tmp_path / "remote").as_uri())


@pytest.fixture
def journal(tmp_path: Path, remote: Objects) -> Journal:
    return Journal(LocalDisk(tmp_path / "home"), remote, this_process(0.0))


class Noted:
    """A meter that remembers, and an uploader that packs to half the size."""

    def __init__(self, remote: Objects | None = None) -> None:
        self.remote, self.transfers, self.sent = remote, list[tuple[int, int]](), list[str]()

    def transfer(self, requests: int, size: int, seconds: float) -> None:
        self.transfers.append((requests, size))

    def upload(self, name: str, disk: Disk) -> int:
        assert self.remote is not None
        self.sent.append(name)
        return self.remote.upload(name, disk) // 2


def at(lower: int, upper: int, size: int = 100) -> LayerInfo:
    return LayerInfo("v", ALL_HASHES, lower, upper, "upserts", f"{lower}-{upper}", 1, size, "abc")


# Records


def test_a_record_that_somebody_else_has_written_ends_the_run(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    records = RecordShipper(journal)

    def taken() -> int:
        raise Conflict("the name is taken")

    monkeypatch.setattr(journal, "ship", taken)
    with pytest.raises(Fenced):
        records.step()
    assert journal.fenced is not None


def test_objects_of_records_are_counted_until_they_are_rolled_up(journal: Journal, remote: Objects) -> None:
    meter = Noted()
    records = RecordShipper(journal, meter)  # type: ignore[arg-type]
    first = journal.number
    compute(journal, 1)
    assert records.step() and not records.step()
    second = journal.number
    compute(journal, 2)
    assert records.step()
    assert records.firsts[-2:] == [first + 1, second + 1] and records.objects == 2
    assert [requests for requests, _ in meter.transfers] == [record_shipper.REQUESTS_A_RECORD] * 2
    assert sum(size for _, size in meter.transfers) == records.bytes > 0
    roller = Roller(journal, journal.disk, remote, 3)
    while roller.step(journal.number):
        pass
    records.firsts = [1, journal.base, journal.base + 1]
    assert records.to_read() == 1 and records.firsts == [journal.base + 1]


# Layers


def test_a_run_that_was_overtaken_begins_to_ship_nothing(tmp_path: Path, journal: Journal, remote: Objects) -> None:
    Journal(LocalDisk(tmp_path / "other"), remote, this_process(0.0))
    with pytest.raises(Fenced):
        LayerShipper(journal, journal.disk, remote)


def test_layers_go_by_the_uploader_and_what_travels_is_measured(journal: Journal, remote: Objects) -> None:
    noted = Noted(remote)
    shipper = LayerShipper(journal, journal.disk, remote, patience=0.0, uploader=noted, meter=noted)  # type: ignore[arg-type]
    compute(journal, 1, 2)
    assert shipper.to_fetch() == (0, 0)
    while shipper.step():
        pass
    assert len(noted.sent) == shipper.objects == 2 and shipper.came == {} and shipper.behind == 0
    assert noted.transfers == [(layer_shipper.REQUESTS_A_LAYER, shipper.bytes // 2)] * 2
    assert shipper.to_fetch() == (2, shipper.bytes) and shipper.plain_bytes == 200


def test_before_anything_was_sent_layers_are_taken_at_their_size(journal: Journal, remote: Objects) -> None:
    compute(journal, 1)
    remote.upload(journal.image.layers()[0].path, journal.disk)
    assert LayerShipper(journal, journal.disk, remote).to_fetch() == (1, 100)


def test_the_oldest_layer_goes_first_whichever_trace_it_is_of(journal: Journal, remote: Objects) -> None:
    shipper = LayerShipper(journal, journal.disk, remote, patience=0.0)
    for epoch, trace in ((1, "w"), (2, "v"), (3, "w")):
        made = layer(journal, epoch, epoch + 1)
        found = LayerInfo(trace, ALL_HASHES, epoch, epoch + 1, "upserts", made.path, 1, 100, "abc")
        journal.append(Opened(epoch, 0.0, {}), Computed(epoch, (found,), {}, {}))
    for epoch in (1, 2, 3):
        assert shipper.step() and len(shipped(remote)) == epoch and shipped(remote)[-1] == f"{epoch}-{epoch + 1}"


def test_what_was_lost_waits_no_more(journal: Journal, remote: Objects) -> None:
    shipper = LayerShipper(journal, journal.disk, remote, patience=0.0)
    compute(journal, 1, 2)
    first, second = journal.image.layers()
    shipper.step()
    journal.append(Restored((second.path,), ()))
    journal.disk.delete(second.path)
    while shipper.step():
        pass
    assert shipped(remote) == ["1-2"] and shipper.behind == 0 and first.path in shipper.uploaded


@pytest.mark.parametrize(("since", "goes"), [(REST_SECONDS * 0.99, False), (REST_SECONDS, True)])
def test_a_stream_rests_once_it_was_silent_for_so_long(journal: Journal, remote: Objects, since: float, goes: bool) -> None:
    now = 0.0
    shipper = LayerShipper(journal, journal.disk, remote, patience=60.0, clock=lambda: now)
    compute(journal, 1)
    assert not shipper.step()
    now = since
    assert shipper.step() == goes


@pytest.mark.parametrize(("waited", "goes"), [(0.9, False), (1.0, True)])
def test_a_layer_waits_no_longer_than_one_is_patient(journal: Journal, remote: Objects, waited: float, goes: bool) -> None:
    now = 0.0
    shipper = LayerShipper(journal, journal.disk, remote, patience=1.0, clock=lambda: now)
    compute(journal, 1)
    assert not shipper.step()
    now = waited
    compute(journal, 2)
    assert shipper.step() == goes


@pytest.mark.parametrize(("most", "goes"), [(201, False), (200, True)])
def test_a_layer_waits_only_while_few_bytes_do(
    journal: Journal, remote: Objects, monkeypatch: pytest.MonkeyPatch, most: int, goes: bool
) -> None:
    monkeypatch.setattr(layer_shipper, "PATIENT_BYTES", most)
    shipper = LayerShipper(journal, journal.disk, remote, patience=60.0, clock=lambda: 0.0)
    compute(journal, 1, 2)
    assert shipper.step() == goes


def shortened(journal: Journal, remote: Objects, most: int) -> LayerShipper:
    """Epochs 1 to 6, each there alone."""
    now = iter(range(100, 10_000))
    shipper = LayerShipper(journal, journal.disk, remote, most_layers=most, patience=0.0, clock=lambda: next(now))
    for epoch in range(1, 7):
        compute(journal, epoch)
        while shipper.step():
            pass
    return shipper


def test_the_merged_layer_that_stands_for_most_goes_first_until_a_recovery_fetches_few(journal: Journal, remote: Objects) -> None:
    shipper = shortened(journal, remote, 3)
    merge(journal, 1, 3)
    merge(journal, 1, 5)
    merge(journal, 5, 6)
    merge(journal, 5, 7)
    assert shipper.step() and "1-5" in shipped(remote) and "1-3" not in shipped(remote)
    assert shipper.to_fetch()[0] == 3 and not shipper.step()  # as many as it may


def test_while_a_recovery_fetches_more_than_it_may_it_is_shortened_further(journal: Journal, remote: Objects) -> None:
    shipper = shortened(journal, remote, 2)
    merge(journal, 1, 5)
    merge(journal, 5, 7)
    while shipper.step():
        pass
    assert {"1-5", "5-7"} <= {*shipped(remote)} and shipper.to_fetch()[0] == 2


def test_nothing_is_looked_through_again_until_there_is_news(journal: Journal, remote: Objects, monkeypatch: pytest.MonkeyPatch) -> None:
    shipper = shortened(journal, remote, 2)
    assert not shipper.step()
    looked: list[int] = []
    traces = shipper._traces
    monkeypatch.setattr(shipper, "_traces", lambda: looked.append(1) or traces())
    assert not shipper.step() and not looked
    merge(journal, 1, 3)
    assert shipper.step() and looked


def test_what_the_journal_has_forgotten_is_forgotten_here(journal: Journal, remote: Objects) -> None:
    shipper = shortened(journal, remote, 2)
    merge(journal, 1, 7)
    while shipper.step():
        pass
    journal.image.forget_past(7)
    compute(journal, 7)
    while shipper.step():
        pass
    assert shipper.uploaded == {one.path for one in journal.image.layers()}


def test_a_layer_that_stands_for_others_than_the_oldest_does_not_go_in_its_place() -> None:
    waiting = [at(epoch, epoch + 1) for epoch in (1, 2, 3)]
    assert collapsing(waiting, [*waiting, at(2, 4)], set()) == waiting[0]
    assert collapsing(waiting, [*waiting, merged := at(1, 3, 200)], set()) == merged
    assert collapsing(waiting, [*waiting, at(1, 3, 201)], set()) == waiting[0]


def test_only_layers_that_share_a_part_of_their_epochs_cross() -> None:
    waiting = [at(epoch, epoch + 1) for epoch in (4, 5, 6)]
    merged = at(4, 7)
    for beside in (at(1, 4), at(7, 9), at(1, 9), at(5, 6), at(4, 7)):
        assert collapsing(waiting, [*waiting, merged, beside], {beside.path}).lower == 4
        assert collapsing(waiting, [*waiting, merged, beside], {beside.path}) != waiting[0]
    for across in (at(1, 5), at(6, 9)):
        assert collapsing(waiting, [*waiting, merged, across], {across.path}) == waiting[0]


def test_what_is_wanted_for_the_past_goes_once_when_nothing_else_waits(journal: Journal, remote: Objects) -> None:
    shipper = LayerShipper(journal, journal.disk, remote, patience=0.0)
    compute(journal, 1, 2, 3, 4)
    while shipper.step():
        pass
    merge(journal, 1, 5)
    assert not shipper.step()
    merged = next(one for one in journal.image.layers() if one.upper - one.lower > 1)
    shipper.wanted = {merged.path: merged}
    compute(journal, 5)
    assert shipper.step() and shipped(remote)[-1] == "5-6" and "1-5" not in shipped(remote)
    assert shipper.step() and "1-5" in shipped(remote)
    assert not shipper.step()


@pytest.mark.parametrize(("epochs", "goes"), [(8, False), (9, True)])
def test_while_the_stream_is_busy_only_much_is_shortened(journal: Journal, remote: Objects, epochs: int, goes: bool) -> None:
    shipper = LayerShipper(journal, journal.disk, remote, most_layers=2, patience=0.0, clock=lambda: 0.0)
    compute(journal, *range(1, epochs + 1))
    while shipper.step():
        pass
    merge(journal, 1, 5)
    assert len(shipper.uploaded) == epochs == layer_shipper.MUCH_LONGER * 2 + goes
    assert shipper.step() == goes


def test_no_epoch_within_a_layer_that_went_alone_counts_until_all_others_are_past_it(journal: Journal, remote: Objects) -> None:
    records, shipper = RecordShipper(journal), LayerShipper(journal, journal.disk, remote, patience=0.0)
    for epoch in (1, 2, 3, 4):
        made = layer(journal, epoch, epoch + 1)
        path = made.path.replace("layers/v", "layers/w")
        journal.disk.replace(path, b"w" * 100)
        other = LayerInfo("w", ALL_HASHES, epoch, epoch + 1, "upserts", path, 1, 100, "abc")
        journal.append(Opened(epoch, 0.0, {}), Computed(epoch, (made, other), {}, {}))
    merge(journal, 1, 5)
    records.step()
    seen = []
    while shipper.step():
        seen.append(shipper.standing(records).epoch)
    assert seen == [0, 0, 0, 0, 4] and shipper.spans == set()


def test_an_epoch_that_changed_nothing_counts_too(journal: Journal, remote: Objects) -> None:
    records, shipper = RecordShipper(journal), LayerShipper(journal, journal.disk, remote, patience=0.0)
    journal.append(Opened(1, 0.0, {}), Computed(1, (), {}, {}))
    assert not shipper.step() and shipper.standing(records).epoch == 0
    records.step()
    assert shipper.standing(records).epoch == 1


def test_a_merged_layer_counts_once_its_own_record_is_there(journal: Journal, remote: Objects) -> None:
    records, shipper = RecordShipper(journal), LayerShipper(journal, journal.disk, remote, patience=0.0)
    compute(journal, 1, 2, 3, 4)
    records.step()
    merge(journal, 1, 5)
    assert shipper.step() and shipped(remote) == ["1-5"]
    assert shipper.standing(records).epoch == 0
    records.step()
    assert shipper.standing(records).epoch == 4
