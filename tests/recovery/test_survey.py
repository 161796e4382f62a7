"""What is readable where: files that a restart of the host may have torn are not taken at their word."""

import pytest

from nosync.journal.chain import Chain
from nosync.journal.entries import Computed, Entry, Merged, Opened, Restored, Started, TakenOver
from nosync.journal.image import Image, fold
from nosync.journal.record import FIRST, Record, encode
from nosync.model.hash_range import ALL_HASHES
from nosync.model.layers import LayerInfo
from nosync.model.store import fingerprint
from nosync.recovery.survey import doubtful, intact, survey
from tests.simulation.places import Cache, Host
from tests.simulation.world import World


def layer(epoch: int, size: int = 3) -> LayerInfo:
    return LayerInfo("v", ALL_HASHES, epoch, epoch + 1, "diffs", f"layers/v/0-f/{epoch}", 1, size, "")


def chain_of(*entries: Entry) -> Chain:
    records: list[Record] = []
    for number, entry in enumerate(entries, start=1):
        records.append(encode(number, "1.a", records[-1].digest if records else FIRST, [entry]))
    return Chain(records=records)


def started(boot: str) -> Started:
    return Started("1.a", 1, "host", boot, 0.0)


def test_files_are_in_doubt_that_were_written_before_the_restart_and_not_known_to_be_synced() -> None:
    chain = chain_of(
        started("before"), Computed(1, (layer(1),), {}, {}), Opened(2, 0.0, {}, {"input/2": "mark"}), Computed(2, (layer(2),), {}, {}),
        Merged(layer(3)), Restored((), (layer(4),)), TakenOver(4, (layer(5),), {}, False, {}),
        started("now"), Computed(6, (layer(6),), {}, {}), Opened(7, 0.0, {}, {"input/7": "mark"}),
    )  # fmt: skip
    assert doubtful(chain, 2, "now") == {"input/2", *(layer(epoch).path for epoch in (2, 3, 4, 5))}
    assert layer(1).path in doubtful(chain, 1, "now")
    assert doubtful(chain, 7, "now") == doubtful(chain, 7, "now") == frozenset()


@pytest.fixture
def disk() -> Cache:
    return Host(World(0), "boot").disk


def image() -> Image:
    """Two epochs that were computed and one that was not, with input of ours."""
    marks = {epoch: {f"input/s/{epoch}": fingerprint(b"row")} for epoch in (1, 2, 3)}
    computed = [(Opened(epoch, 0.0, {"s": {}}, marks[epoch]), Computed(epoch, (layer(epoch),), {}, {})) for epoch in (1, 2)]
    return fold([*(entry for both in computed for entry in both), Opened(3, 0.0, {"s": {}}, marks[3])])


def fill(disk: Cache) -> None:
    for epoch in (1, 2):
        disk.replace(layer(epoch).path, b"abc")
    for epoch in (1, 2, 3):
        disk.replace(f"input/s/{epoch}", b"row")


NEEDED = ["input/s/3", "input/s/2"]


def test_a_home_is_intact_when_each_file_is_there_at_its_length_and_none_of_them_is_in_doubt(disk: Cache) -> None:
    fill(disk)
    known, nobody = image(), frozenset[str]()
    assert intact(known, disk, nobody, NEEDED)
    assert intact(known, disk, frozenset(["elsewhere"]), NEEDED)
    assert not intact(known, disk, frozenset([layer(1).path]), NEEDED)
    assert not intact(known, disk, frozenset(["input/s/3"]), NEEDED)
    disk.replace(layer(2).path, b"longer")
    assert not intact(known, disk, nobody, NEEDED)
    disk.replace(layer(2).path, b"abc")
    disk.delete("input/s/2")
    assert not intact(known, disk, nobody, NEEDED)


def test_input_counts_when_its_bytes_are_what_they_were(disk: Cache) -> None:
    fill(disk)
    disk.replace("input/s/2", b"torn")
    disk.delete("input/s/3")
    reads = disk.world.seen["home.read", "ok", "none"]
    found = survey(image(), disk, None, frozenset(), lambda layer: True)
    assert found.home == {layer(1).path, layer(2).path, "input/s/1"}
    assert disk.world.seen["home.read", "ok", "none"] == reads + 2  # what is not listed is not asked for


def test_input_that_goes_while_it_is_looked_at_is_not_there(disk: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(disk)
    monkeypatch.setattr(disk, "read", lambda name: None)
    assert survey(image(), disk, None, frozenset(), lambda layer: True).home == {layer(1).path, layer(2).path}


def test_only_layers_in_doubt_are_read(disk: Cache) -> None:
    fill(disk)
    read: list[str] = []
    found = survey(image(), disk, None, frozenset([layer(1).path]), lambda layer: bool(read.append(layer.path)))
    assert read == [layer(1).path] and layer(1).path not in found.home and layer(2).path in found.home
