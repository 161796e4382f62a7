"""What a check finds on either tier: each file is there and whole, damaged, or missing; nothing is read that need not be."""

from collections.abc import Callable
from pathlib import Path

import pytest

from nosync.journal.entries import Computed, Opened, Trimmed
from nosync.journal.names import INPUT, OPENINGS, ROLLUPS, SEGMENTS
from nosync.journal.rolling import Roller
from nosync.model.layers import LayerInfo
from nosync.model.store import fingerprint
from nosync.recovery import check as checking
from nosync.recovery.check import Findings, check
from nosync.store.disk import LocalDisk
from nosync.store.objects import Objects

from .test_fsck import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def boot_of(place: Place) -> str:
    started = place.journal.image.started
    assert started is not None
    return started.boot


def found(place: Place, quick: bool = False, boot: str = "") -> Findings:
    return check(place.home, place.objects, boot or boot_of(place), quick)


def test_each_file_is_whole_damaged_or_missing(place: Place) -> None:
    for epoch in (1, 2, 3):
        place.objects.delete(f"input/s/{epoch}")
    gone, hurt = place.layers[1, 2, 3], place.layers[1, 4, 5]
    place.file(1, 2, 3).unlink()
    place.damage(1, 4, 5)
    place.disk.delete("input/s/2")
    place.disk.replace("input/s/3", b"other")
    home, remote = (found(place).holdings[tier] for tier in ("home", "remote"))
    assert home.missing == (gone.path, "input/s/2") and home.damaged == (hurt.path, "input/s/3")
    left = [layer for layer in place.layers.values() if layer not in (gone, hurt)]
    assert (home.layers, home.bytes, home.inputs) == (9, sum(layer.bytes for layer in left), 3)
    assert home.whole == {*(layer.path for layer in left), *(f"input/s/{epoch}" for epoch in (1, 4, 5))}
    assert (remote.layers, remote.inputs, remote.damaged) == (11, 2, ()) and remote.missing == tuple(f"input/s/{e}" for e in (1, 2, 3))


def test_a_quick_check_goes_by_sizes_but_for_what_a_restart_may_have_torn(place: Place) -> None:
    place.damage(1, 5, 6)
    path = place.layers[1, 5, 6].path
    assert found(place, quick=True).holdings["home"].damaged == ()
    assert found(place, quick=True, boot="another").holdings["home"].damaged == (path,)
    place.file(1, 5, 6).write_bytes(b"short")
    assert found(place, quick=True).holdings["home"].damaged == (path,)


def test_a_quick_check_fetches_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.objects.replace("input/s/5", b"other")

    def no(*_: object) -> bool:
        raise AssertionError("it was fetched")

    assert found(place).holdings["remote"].damaged == ("input/s/5",)
    monkeypatch.setattr(Objects, "download", no)
    remote = found(place, quick=True).holdings["remote"]
    assert remote.layers == 11 and remote.inputs == 5 and remote.damaged == ()


def test_an_object_that_cannot_be_unpacked_is_damaged(place: Place) -> None:
    path = place.layers[1, 5, 6].path
    place.objects._bucket.put(path + ".packed", iter([b"no block"]), large=False)
    assert found(place).holdings["remote"].damaged == (path,)


def test_fetched_layers_lie_about_one_at_a_time(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    most: list[int] = []
    whole = checking.is_whole

    def counted(root: Path, layer: LayerInfo) -> bool:
        if root != place.home:
            most.append(len([path for path in root.rglob("*") if path.is_file()]))
        return whole(root, layer)

    monkeypatch.setattr(checking, "is_whole", counted)
    found(place)
    assert most == [1] * 11


def rolled(place: Place) -> None:
    roller = Roller(place.journal, place.disk, place.objects, every=5)
    while roller.step(place.journal.number):
        pass


@pytest.mark.parametrize("folder", [ROLLUPS, SEGMENTS])
def test_files_of_the_past_are_named_where_they_are_torn(place: Place, folder: str) -> None:
    rolled(place)
    assert found(place).records["home"].damaged == ()
    [name] = place.disk.sizes(folder)
    place.disk.replace(name, b"torn")
    records = found(place).records["home"]
    assert records.damaged == (name,) and records.rollups + records.segments == 1


def test_what_is_left_of_records_that_were_given_up_is_named_where_it_is_torn(place: Place) -> None:
    rolled(place)
    [segment], [name] = place.disk.sizes(SEGMENTS), place.disk.sizes(OPENINGS)
    place.disk.delete(segment)
    assert found(place).records["home"].damaged == ()
    place.disk.replace(name, b"torn")
    assert found(place).records["home"].damaged == (name,)


def vanishing(folder: str) -> Callable[[LocalDisk, str], bytes | None]:
    read = LocalDisk.read
    return lambda disk, name: None if name.startswith(folder) else read(disk, name)


@pytest.mark.parametrize("folder", [INPUT, ROLLUPS])
def test_what_goes_while_it_is_looked_at_is_not_whole(place: Place, monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    rolled(place)
    monkeypatch.setattr(LocalDisk, "read", vanishing(folder))
    findings = found(place)
    damaged = findings.records["home"].damaged if folder == ROLLUPS else findings.holdings["home"].damaged
    assert {*damaged} == {*place.disk.sizes(folder)}


def test_input_of_one_source_is_missed_although_that_of_another_was_trimmed(place: Place) -> None:
    files = {f"input/{source}/6": fingerprint(b"row") for source in ("s", "t")}
    place.journal.append(Opened(6, 0.0, {"s": {}, "t": {}}, files), Computed(6, (), {}, {}), Trimmed("s", 6))
    assert found(place).holdings["home"].missing == ("input/t/6",)
