"""The journal: one history, whole up to its first gap; the newest run owns it; rolled up, it says the same."""

from pathlib import Path

import pytest

from nosync.journal.chain import read_chain
from nosync.journal.entries import (
    Computed,
    Declared,
    Entry,
    GivenUp,
    Keeping,
    Merged,
    Opened,
    Pinned,
    Reached,
    Released,
    Releasing,
    Restored,
    RolledBack,
    Skipped,
    Started,
    Swept,
    Thinned,
    Trimmed,
    Unpinned,
    from_json,
    to_json,
)
from nosync.journal.image import Image, fold
from nosync.journal.journal import Journal
from nosync.journal.names import record_name
from nosync.journal.past import TieredReader, openings, whole_image
from nosync.journal.record import FIRST, decode, encode
from nosync.journal.rolling import Roller
from nosync.model.errors import Corrupt, Fenced, Invalid
from nosync.model.layers import LayerInfo
from nosync.model.run import Runner
from nosync.model.shards import shard_ranges
from nosync.store.disk import LocalDisk
from nosync.store.objects import open_remote

HALVES = shard_ranges(2)


def layer(lower: int, upper: int, shard: int = 0, name: str = "") -> LayerInfo:
    path = f"layers/v/{HALVES[shard]}/{lower}-{upper}-1.0-0{name}.arrow"
    return LayerInfo("v/aggregate", HALVES[shard], lower, upper, "upserts", path, 3, 100, "abc")


DECLARED = Declared("shop", 2, {"spark.sql.ansi.enabled": "true"}, {"v/aggregate": "f1"}, {"v": {}}, {"out": {}})
ENTRIES: list[Entry] = [
    DECLARED,
    Started("1.run", 7, "host", "boot", 1.5),
    Opened(1, 2.0, {"s": {"files": [["ä", 1, 2]]}}, {"input/s/1": "abc"}),
    Computed(1, (layer(1, 2),), {"s": 10}, {}),
    Opened(2, 3.0, {"s": {"files": []}, "t": {"number": 1}}),
    Computed(2, (layer(2, 3), layer(2, 3, shard=1)), {"s": 5, "t": 1}, {"s": 2}),
    Merged(layer(1, 3)),
    Reached("site", 4),
    Releasing("out", 2),
    Released("out", 2),
    Trimmed("s", 1),
    Swept(1, 2),
    Skipped("files", {"a": 1, "b": 0}, 4.5),
    Keeping("2 epochs"),
    Pinned("before", 1),
    Thinned(2, (1,)),
    Unpinned("before"),
    GivenUp((layer(2, 3, shard=1).path,)),
    Restored((layer(1, 3).path,), (layer(1, 3, name="again"),)),
    RolledBack(2),
]


def runner(number: int) -> Runner:
    return Runner(number, "host", "boot", 0.0, f"{number:08x}")


def journal_in(home: Path, number: int = 1, remote: Path | None = None) -> Journal:
    return Journal(LocalDisk(home), open_remote(remote.as_uri()) if remote else None, runner(number))


def written(home: Path) -> Journal:
    journal = journal_in(home)
    for entry in ENTRIES:
        journal.append(entry)
    return journal


def image_in(home: Path) -> Image:
    return read_chain(LocalDisk(home)).image()


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: type(entry).__name__)
def test_an_entry_comes_back_as_it_was(entry: Entry) -> None:
    assert from_json(to_json(entry)) == entry


def test_records_come_back_as_they_were_one_or_several_in_an_object() -> None:
    first = encode(1, "1.a", FIRST, ENTRIES[:3])
    second = encode(2, "1.a", first.digest, ENTRIES[3:])
    assert list(decode(first.content + second.content, 1, FIRST)) == [first, second]
    assert list(decode(second.content, 2, "another")) == []


def test_a_torn_record_never_happened_wherever_it_is_torn() -> None:
    first = encode(1, "1.a", FIRST, ENTRIES[:3])
    content = first.content + encode(2, "1.a", first.digest, ENTRIES[3:]).content
    for length in range(len(content)):
        assert list(decode(content[:length], 1, FIRST)) == ([first] if length >= len(first.content) else [])


def test_a_changed_byte_is_noticed_wherever_it_is() -> None:
    content = encode(1, "1.a", FIRST, ENTRIES).content
    for position in range(len(content)):
        changed = bytearray(content)
        changed[position] ^= 1
        assert list(decode(bytes(changed), 1, FIRST)) == []


def test_what_was_appended_is_read_again(tmp_path: Path) -> None:
    assert written(tmp_path).image == image_in(tmp_path)


def test_a_missing_record_ends_the_history_and_the_next_run_goes_on_from_there(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "journal/records/0000000000000005").unlink()
    assert image_in(tmp_path).number == 4
    journal_in(tmp_path, 2).append(DECLARED)
    assert (image_in(tmp_path).number, image_in(tmp_path).epoch) == (6, 0)


def test_the_newest_run_fences_the_others_and_is_named(tmp_path: Path) -> None:
    first = written(tmp_path)
    second = journal_in(tmp_path, 2)
    with pytest.raises(Fenced, match="process 2 on host took this flow over"):
        first.append(DECLARED)
    with pytest.raises(Fenced):
        first.append(DECLARED)
    second.append(DECLARED)
    assert image_in(tmp_path).number == second.number


def test_a_run_with_only_the_remote_in_common_is_fenced_too(tmp_path: Path) -> None:
    first = journal_in(tmp_path / "one", 1, tmp_path / "remote")
    second = journal_in(tmp_path / "two", 2, tmp_path / "remote")
    first.append(DECLARED)
    with pytest.raises(Fenced, match="process 2"):
        first.look()
    second.append(DECLARED)
    second.ship()
    assert read_chain(open_remote((tmp_path / "remote").as_uri())).image() == second.image


def test_a_lost_home_is_written_anew_from_the_remote(tmp_path: Path) -> None:
    first = journal_in(tmp_path / "one", 1, tmp_path / "remote")
    for entry in ENTRIES:
        first.append(entry)
    first.ship()
    again = journal_in(tmp_path / "two", 2, tmp_path / "remote")
    assert again.image.covers("v/aggregate", 2) == first.image.covers("v/aggregate", 2)
    assert image_in(tmp_path / "two") == again.image


def test_a_home_that_was_left_behind_goes_on_from_the_remote(tmp_path: Path) -> None:
    """What both had is rolled up there: no record joins them any more. The home's own last record never arrived."""
    first = journal_in(tmp_path / "one", 1, tmp_path / "remote")
    first.append(DECLARED)
    first.ship()
    first.append(Opened(1, 0.0, {"s": {}}))
    second = journal_in(tmp_path / "two", 2, tmp_path / "remote")
    roller = Roller(second, second.disk, second.remote, 4)
    for epoch in range(1, 9):
        second.append(Opened(epoch, 0.0, {"s": {"number": epoch}}))
        second.append(Computed(epoch, (layer(epoch, epoch + 1),), {"s": 1}, {}))
        second.ship()
        roller.step(second.number)
    assert second.base > 3
    back = journal_in(tmp_path / "one", 3, tmp_path / "remote")
    assert (back.image.epoch, back.image.newest) == (8, second.image.newest)
    assert image_in(tmp_path / "one") == back.image


def test_a_remote_with_a_record_that_joins_nothing_is_refused(tmp_path: Path) -> None:
    first = journal_in(tmp_path / "one", 1, tmp_path / "remote")
    open_remote((tmp_path / "remote").as_uri()).create(record_name(first.number + 1), b"of nobody")
    with pytest.raises(Corrupt, match="does not continue its history"):
        journal_in(tmp_path / "two", 2, tmp_path / "remote")


def test_the_remote_of_another_flow_is_refused(tmp_path: Path) -> None:
    journal_in(tmp_path / "one", 1, tmp_path / "remote")
    journal_in(tmp_path / "two", 2).append(Opened(1, 0.0, {}))
    with pytest.raises(Invalid, match="different histories"):
        journal_in(tmp_path / "two", 3, tmp_path / "remote")


def grown(home: Path, epochs: int, every: int) -> Journal:
    """A journal that is rolled up every so many records."""
    journal = journal_in(home)
    roller = Roller(journal, journal.disk, None, every)
    for epoch in range(1, epochs + 1):
        journal.append(Opened(epoch, 0.0, {"s": {"number": epoch}}))
        journal.append(Computed(epoch, (layer(epoch, epoch + 1),), {"s": 1}, {}, {"s": 100 * epoch}))
        if epoch % 4 == 0:
            journal.append(Merged(layer(1, epoch + 1)))
        roller.step(journal.number)
    return journal


def test_rolled_up_a_journal_tells_the_same(tmp_path: Path) -> None:
    plain, rolled = grown(tmp_path / "plain", 60, 10**9), grown(tmp_path / "rolled", 60, 10)
    assert rolled.base > 100 and len(list((tmp_path / "rolled/journal/records").iterdir())) < 20
    reopened = image_in(tmp_path / "rolled")
    assert (reopened.epoch, reopened.newest, reopened.rows) == (60, plain.image.newest, plain.image.rows)
    assert (reopened.kept_layers, reopened.kept_bytes) == (plain.image.kept_layers, plain.image.kept_bytes)
    ends = {one.upper for one in reopened.newest_layers()}
    for epoch in {*range(50, 62), *ends}:  # those whose watermark can be asked for: new epochs, and the first that reads a layer
        assert reopened.seen_before(epoch) == plain.image.seen_before(epoch) == {"s": 100 * (epoch - 1)}


def test_any_epoch_is_known_after_rolling_up(tmp_path: Path) -> None:
    plain, rolled = grown(tmp_path / "plain", 40, 10**9), grown(tmp_path / "rolled", 40, 10)
    reader = TieredReader(rolled.disk)
    for epoch in range(1, 41):
        covered = [range(one.lower, one.upper) for one in rolled.image.covers("v/aggregate", epoch)[HALVES[0]]]
        assert sorted(number for some in covered for number in some) == list(range(1, epoch + 1))
    known = openings(reader, rolled.base, rolled.after(rolled.base))
    assert [entry.epoch for entry in known] == list(range(1, 41))
    found = whole_image(reader, rolled.image, rolled.base, rolled.after(rolled.base))
    assert (found.traces, found.opened, found.seen) == (plain.image.traces, plain.image.opened, plain.image.seen)


def test_a_long_running_image_stays_small(tmp_path: Path) -> None:
    journal = grown(tmp_path, 400, 10)
    assert len(journal.image.seen) < 40
    assert len(journal.image.opened) < 20 and len(journal.recent) < 30


def test_the_image_sums_rows_and_places_layers() -> None:
    image = fold(ENTRIES[:7])
    assert (image.epoch, image.rows, image.rejected) == (2, {"s": 15, "t": 1}, {"s": 2})
    assert image.covers("v/aggregate", 2) == {HALVES[0]: (layer(1, 3),), HALVES[1]: (layer(2, 3, shard=1),)}
    assert image.covers("v/aggregate", 1) == {HALVES[0]: (layer(1, 2),)}


def test_a_roll_back_takes_epochs_and_their_counts_away() -> None:
    image = fold([*ENTRIES[:7], RolledBack(1)])
    assert (image.epoch, image.rows, image.last_opened) == (1, {"s": 10, "t": 0}, 1)
    assert image.covers("v/aggregate", 1) == {HALVES[0]: (layer(1, 2),)}


def test_a_roll_back_takes_the_event_times_of_its_epochs_away() -> None:
    image = fold([Computed(1, (), {}, {}, {"s": 5}), Computed(2, (), {}, {}, {"s": 9}), RolledBack(1)])
    assert image.seen_before(2) == {"s": 5} and image.seen_before(3) == {}


def test_a_lost_layer_is_replaced_in_every_cover() -> None:
    image = fold([*ENTRIES[:7], Restored((layer(1, 3).path, layer(1, 2).path), (layer(1, 2, name="again"),))])
    assert image.covers("v/aggregate", 2)[HALVES[0]] == (layer(2, 3), layer(1, 2, name="again"))


def test_an_opened_epoch_that_was_not_computed_comes_next() -> None:
    assert fold(ENTRIES).unfinished() is None
    assert fold(ENTRIES[:5]).unfinished() == ENTRIES[4]
