"""What was taken is summed up, whatever was rolled up, rolled back, torn or lost; and the summary reads little."""

import json
import random
from pathlib import Path

import pytest
import xxhash

from nosync.journal.chain import read_chain
from nosync.journal.entries import Computed, Opened, RolledBack
from nosync.journal.journal import Journal
from nosync.journal.names import SEGMENTS, TAKEN, numbers_in
from nosync.journal.past import TieredReader
from nosync.journal.rolling import Roller
from nosync.journal.taken import (
    Marks,
    Taken,
    TakenSummary,
    digests,
    from_bytes,
    gathered,
    joined,
    next_tile,
    taken_files,
    taken_from,
    tiles,
    to_bytes,
)
from nosync.model.run import this_process
from nosync.store.disk import LocalDisk
from nosync.store.objects import open_remote

MARKS_OF = {"files": lambda slice: slice["names"]}


class Counting(LocalDisk):
    """Counts what is read."""

    reads = 0
    content = 0

    def read(self, name: str) -> bytes | None:
        content = super().read(name)
        self.reads += 1
        self.content += len(content or b"")
        return content


def take(journal: Journal, epoch: int) -> None:
    slices = {"files": {"names": [f"{epoch}.parquet", f"{epoch}.again"]}} | ({"rare": {"upper": epoch}} if epoch % 100 == 7 else {})
    journal.append(Opened(epoch, 0.0, slices), Computed(epoch, (), {}, {}))


def grown(home: Path, epochs: int, every: int, remote: Path | None = None) -> Journal:
    disk, there = LocalDisk(home, fsync=lambda descriptor: None), open_remote(remote.as_uri()) if remote else None
    journal = Journal(disk, there, this_process(0.0))
    roller = Roller(journal, disk, there, every, MARKS_OF)
    for epoch in range(1, epochs + 1):
        take(journal, epoch)
        journal.ship()
        while journal.number - journal.base >= every or roller.candidate:
            roller.step(journal.number)
    return journal


def summed_up(disk: LocalDisk, *others: object) -> dict[str, Taken]:
    chain = read_chain(disk)
    return taken_from(["files", "rare"], TieredReader(disk, *others), chain.base, chain.records, MARKS_OF)  # type: ignore[arg-type]


def test_after_thousands_of_epochs_a_few_files_are_read(tmp_path: Path) -> None:
    grown(tmp_path, 3000, 16)
    disk = Counting(tmp_path)
    chain = read_chain(disk)
    before = disk.reads, disk.content
    taken = taken_from(["files", "rare"], TieredReader(disk), chain.base, chain.records, MARKS_OF)
    names = [f"{epoch}.{ending}" for epoch in range(1, 3001) for ending in ("parquet", "again")]
    assert taken["files"].marks.among([*names, "3001.parquet", "", "1"]) == set(names)
    assert (len(taken["files"].marks), taken["files"].latest, taken["rare"].latest) == (6000, {"names": names[-2:]}, {"upper": 2907})
    assert disk.reads - before[0] <= 12
    assert disk.content - before[1] < 16 * 6000 + 12 * 400
    assert len(disk.sizes("journal/openings")) > 150  # which nobody had to read
    assert [slice["upper"] for slice in taken["rare"]] == list(range(7, 3001, 100))  # who asks for all gets all


@pytest.mark.parametrize("seed", range(10))
def test_whatever_is_rolled_back_torn_or_lost_exactly_what_is_left_was_taken(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    disk = LocalDisk(tmp_path, fsync=lambda descriptor: None)
    journal = Journal(disk, None, this_process(0.0))
    roller = Roller(journal, disk, None, chance.choice((3, 10)), MARKS_OF)
    for _ in range(120):
        if chance.random() < 0.04:
            journal.append(RolledBack(max(0, journal.image.epoch - chance.choice((0, 1, 5, 40)))))
        take(journal, journal.image.epoch + 1)
        roller.step(journal.number)
        known = sorted(disk.sizes(TAKEN))
        if known and chance.random() < 0.03:
            disk.delete(chance.choice(known))
        elif known and chance.random() < 0.03:
            disk.replace(chance.choice(known), b"torn")
        taken = summed_up(disk)
        left = [name for slice in taken["files"] for name in slice["names"]]
        assert taken["files"].latest == {"names": left[-2:]}
        assert taken["files"].marks.among([f"{epoch}.again" for epoch in range(200)]) == set(left[1::2]), f"seed {seed}"
        assert taken["rare"].latest == (list(taken["rare"]) or [None])[-1]


def test_a_remote_that_is_new_to_a_long_history_is_enough_to_go_on(tmp_path: Path) -> None:
    grown(tmp_path / "home", 50, 8)
    again = Journal(LocalDisk(tmp_path / "home"), open_remote((tmp_path / "remote").as_uri()), this_process(1.0))
    assert again.base > 0
    elsewhere = Journal(LocalDisk(tmp_path / "elsewhere"), again.remote, this_process(2.0))
    reader = TieredReader(elsewhere.disk, again.remote)
    taken = taken_from(["files"], reader, elsewhere.base, elsewhere.after(elsewhere.base), MARKS_OF)["files"]
    assert len(taken.marks) == 100


def test_tiles_are_as_few_as_possible_and_have_no_gap() -> None:
    names = [f"journal/taken/{first:016d}-{last:016d}" for first, last in ((1, 8), (9, 12), (1, 12), (13, 14), (13, 13))]
    assert tiles(names, 14) == [names[3], names[2]]
    assert tiles(names, 13) == [names[4], names[2]]
    assert tiles(names, 15) is None and tiles(names, 0) == []


def test_what_was_rolled_back_was_not_taken() -> None:
    opened = [Opened(epoch, 0.0, {"files": {"names": [str(epoch)]}}) for epoch in (1, 2, 3)]
    found, floor = gathered([*opened, RolledBack(2), RolledBack(1), Opened(2, 0.0, {"files": {"names": ["again"]}})], MARKS_OF)
    assert (found.highest, found.latest, floor) == (2, {"files": {"names": ["again"]}}, 1)
    assert Marks([found.marks["files"]]).among(["1", "2", "3", "again"]) == {"1", "again"}
    assert gathered(opened[:1], MARKS_OF)[1] is None and gathered([], MARKS_OF)[0] == TakenSummary()


def test_neighbours_know_what_both_took() -> None:
    older, newer = (
        gathered([Opened(epoch, 0.0, {source: {"names": [str(epoch)]}})], {source: MARKS_OF["files"]})[0]
        for epoch, source in ((7, "a"), (3, "b"))
    )
    found = joined(older, newer)
    assert found.highest == 7 and found.latest == {"a": {"names": ["7"]}, "b": {"names": ["3"]}}
    assert {name: Marks([marks]).among(["7", "3"]) for name, marks in found.marks.items()} == {"a": {"7"}, "b": {"3"}}


def test_nothing_is_among_no_marks_and_no_texts_are_among_any() -> None:
    assert Marks().among(["a"]) == set() == Marks([digests(["a"])]).among([])


@pytest.mark.parametrize(
    ("latest", "counts", "marks"),
    [({"s": "no slice"}, {}, b""), ({}, {"s": 2}, b"m" * 16), ({}, {"s": 0}, b""), ({}, {"s": "1"}, b"m" * 16), ({}, ["s"], b"m" * 16)],
)
def test_a_summary_that_is_whole_and_says_what_none_says_is_not_believed(latest: object, counts: object, marks: bytes) -> None:
    def content(facts: bytes) -> bytes:
        body = facts + b"\n" + marks
        return xxhash.xxh3_64_hexdigest(body).encode() + b"\n" + body

    assert from_bytes(content(json.dumps({"highest": 1, "latest": latest, "counts": counts}).encode())) is None
    assert from_bytes(content(b"no json")) is None
    assert from_bytes(to_bytes(TakenSummary())) == TakenSummary()


def test_tiles_alone_are_read_where_they_are_whole_and_records_where_one_is_not(tmp_path: Path) -> None:
    journal = grown(tmp_path, 12, 4)
    reader = TieredReader(journal.disk)
    found = taken_files(reader, journal.base)
    assert found and all(name.startswith(TAKEN) for name in found)
    journal.disk.replace(min(found), b"torn")
    assert all(name.startswith(SEGMENTS) for name in taken_files(reader, journal.base))


def test_after_a_roll_back_one_tile_is_made_of_everything(tmp_path: Path) -> None:
    journal = grown(tmp_path, 12, 4)
    reader, first = TieredReader(journal.disk), journal.number
    journal.append(RolledBack(2))
    take(journal, 3)
    name, content, inside = next_tile(reader, journal.after(journal.base), MARKS_OF)
    assert numbers_in(name) == (1, journal.number) and journal.number > first
    tile = from_bytes(content)
    assert tile is not None and tile.highest == 3 and len(tile.marks["files"]) == 6
    assert sorted(inside) == sorted(tiles(journal.disk.sizes(TAKEN), journal.base) or [])
