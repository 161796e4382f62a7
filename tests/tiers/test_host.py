"""The tier that survives a restart of the host claims only what was synced."""

import os
from pathlib import Path

import pytest

from nosync.journal.chain import Chain, Rollup, read_chain
from nosync.journal.entries import Computed, Merged, Opened
from nosync.journal.journal import Journal
from nosync.model.errors import Unavailable
from nosync.model.hash_range import ALL_HASHES
from nosync.model.layers import LayerInfo
from nosync.model.run import this_process
from nosync.store.disk import LocalDisk
from nosync.tiers.host import MOST_MERGED, HostTier, synced_number


class Disk(LocalDisk):
    """Notes what was synced; `broken` names cannot be."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, fsync=self.noted)
        self.broken = ""
        self.synced: set[str] = set()

    def noted(self, descriptor: int) -> None:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        if self.broken and (self.broken in path or "/." in path):  # it, or a copy of it
            raise OSError(5, "Input/output error")
        self.synced.add(path)


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


@pytest.fixture
def journal(disk: Disk) -> Journal:
    return Journal(disk, None, this_process(0.0))


def layer(journal: Journal, lower: int, upper: int) -> LayerInfo:
    path = f"layers/v/0-f/{lower}-{upper}-1.0-0.arrow"
    journal.disk.replace(path, b"rows")
    return LayerInfo("v", ALL_HASHES, lower, upper, "diffs", path, 1, 4, "")


def compute(journal: Journal, epoch: int) -> None:
    journal.append(Opened(epoch, 0.0, {}))
    journal.append(Computed(epoch, (layer(journal, epoch, epoch + 1),), {}, {}))


def test_a_merged_layer_whose_fsync_failed_is_synced_before_anything_is_claimed(journal: Journal, disk: Disk) -> None:
    tier = HostTier(journal, disk)
    compute(journal, 1)
    compute(journal, 2)
    journal.append(Merged(layer(journal, 1, 3)))
    disk.broken = "/1-3-"
    tier.step()
    for _ in range(3):
        with pytest.raises(Unavailable):
            tier.step()
    compute(journal, 3)
    disk.broken = ""
    tier.step()
    assert synced_number(disk, read_chain(disk)) == 0
    assert tier.synced == 0
    tier.step()
    assert any("/1-3-" in path for path in disk.synced)
    assert synced_number(disk, read_chain(disk)) == tier.synced == journal.number


def test_merged_layers_are_synced_although_the_stream_never_rests(journal: Journal, disk: Disk) -> None:
    tier = HostTier(journal, disk)
    for epoch in range(1, 4 * MOST_MERGED):
        compute(journal, epoch)
        journal.append(Merged(layer(journal, 1, epoch + 1)))
        assert tier.step()
    assert len(tier.merged) <= MOST_MERGED


def test_what_was_rolled_up_is_synced_whatever_the_home_says(journal: Journal, disk: Disk) -> None:
    compute(journal, 1)
    HostTier(journal, disk).step()
    again = Journal(disk, None, this_process(0.0))
    assert HostTier(again, disk).number == journal.number
    again.base = again.number
    disk.delete("synced")
    assert HostTier(again, disk).number == again.base


def test_a_tier_of_records_alone_syncs_and_counts_no_layers(journal: Journal, disk: Disk) -> None:
    records, whole = HostTier(journal, disk, layers=False), HostTier(journal, disk)
    compute(journal, 1)
    content = sum(len(record.content) for record in journal.after(0))
    assert (records.standing().behind, whole.standing().behind) == (content, content + 4)
    disk.synced.clear()
    assert records.step()
    assert not any(path.endswith(".arrow") for path in disk.synced)
    assert (records.epoch, records.bytes, records.standing().behind) == (1, content, 0)
    assert whole.step()
    assert any(path.endswith(".arrow") for path in disk.synced)
    assert (whole.epoch, whole.bytes) == (1, content + 4)


def test_nothing_is_claimed_while_merged_layers_are_left(journal: Journal, disk: Disk) -> None:
    tier = HostTier(journal, disk)
    for epoch in range(1, MOST_MERGED + 2):
        compute(journal, epoch)
        journal.append(Merged(layer(journal, 1, epoch + 1)))
    assert tier.step()
    assert (len(tier.merged), tier.synced, synced_number(disk, read_chain(disk))) == (1, 0, 0)
    assert tier.step()
    assert tier.synced == synced_number(disk, read_chain(disk)) == journal.number


def test_a_tier_of_records_alone_does_not_wait_for_merged_layers(journal: Journal, disk: Disk) -> None:
    tier = HostTier(journal, disk, layers=False)
    compute(journal, 1)
    journal.append(Merged(layer(journal, 1, 2)))
    assert tier.step()
    assert tier.synced == journal.number
    assert (synced_number(disk, read_chain(disk), layers=False), synced_number(disk, read_chain(disk))) == (journal.number, 0)


def test_a_claim_counts_only_for_the_chain_it_was_made_of(journal: Journal, disk: Disk) -> None:
    compute(journal, 1)
    chain = read_chain(disk)
    two, three = (chain.digest_at(number) for number in (2, 3))
    for text, known in [
        (f"3 {three}", 3),
        (f"2 {two}", 2),
        (f"0000000000000003 {three}", 3),
        (f"00000000000000003 {three}", 0),
        (f"3 {two}", 0),
        (f"4 {three}", 0),
        ("three", 0),
        ("", 0),
        ("9" * 5000, 0),
    ]:
        disk.replace("synced", text.encode())
        assert synced_number(disk, chain) == known, text
    rolled = Chain(Rollup(3, three, "", chain.image()))
    for text, known in [(f"3 {three}", 3), (f"2 {two}", 0)]:
        disk.replace("synced", text.encode())
        assert synced_number(disk, rolled) == known, text


@pytest.mark.parametrize(("layers", "epoch"), [(True, 1), (False, 2)])
def test_an_epoch_is_safe_with_its_layers_or_where_records_alone_are_synced_with_its_opening(
    journal: Journal, disk: Disk, layers: bool, epoch: int
) -> None:
    compute(journal, 1)
    journal.append(Opened(2, 0.0, {}))
    HostTier(journal, disk, layers).step()
    journal.append(Computed(2, (), {}, {}))
    assert HostTier(Journal(disk, None, this_process(0.0)), disk, layers).epoch == epoch
