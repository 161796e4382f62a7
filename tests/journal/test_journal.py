"""The journal: an entry counts once its line is whole; a torn end never happened; damage before it is told; one writer at a time."""

from pathlib import Path

import pytest

from nosync.journal.entries import Computed, Declared, Merged, Opened, Started, from_json, to_json
from nosync.journal.image import fold
from nosync.journal.journal import Journal, read
from nosync.model.errors import Conflict, Corrupt, Invalid
from nosync.model.layers import LayerInfo


def layer(lower: int, upper: int, shard: int = 0) -> LayerInfo:
    return LayerInfo("v/aggregate", shard, lower, upper, "upserts", f"layers/{lower}-{upper}-{shard}", 3, 100, "abc")


DECLARED = Declared("shop", 2, {"spark.sql.ansi.enabled": "true"}, {"v/aggregate": "f1"}, {"v": {}})
ENTRIES = [
    DECLARED,
    Started("run1", 7, "host", 1.5),
    Opened(1, 2.0, {"s": {"files": [["ä", 1, 2]]}}),
    Computed(1, (layer(1, 2),), {"s": 10}, {}),
    Opened(2, 3.0, {"s": {"files": []}, "t": {"number": 1}}),
    Computed(2, (layer(2, 3), layer(2, 3, shard=1)), {"s": 5, "t": 1}, {"s": 2}),
    Merged(layer(1, 3)),
]


def written(home: Path) -> bytes:
    journal = Journal(home)
    for entry in ENTRIES:
        journal.append(entry)
    journal.close()
    return (home / "journal").read_bytes()


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: type(entry).__name__)
def test_an_entry_comes_back_as_it_was(entry: object) -> None:
    assert from_json(to_json(entry)) == entry  # type: ignore[arg-type]


def test_what_was_appended_is_read_again(tmp_path: Path) -> None:
    written(tmp_path)
    assert read(tmp_path) == fold(ENTRIES)


def test_a_torn_end_never_happened_wherever_it_is_torn(tmp_path: Path) -> None:
    content = written(tmp_path)
    ends = [i + 1 for i, byte in enumerate(content) if byte == 10]
    for length in range(len(content)):
        (tmp_path / "journal").write_bytes(content[:length])
        whole = sum(end <= length for end in ends)
        assert read(tmp_path) == fold(ENTRIES[:whole])


def test_writing_goes_on_after_a_torn_end(tmp_path: Path) -> None:
    content = written(tmp_path)
    (tmp_path / "journal").write_bytes(content[:-5])
    journal = Journal(tmp_path)
    journal.append(ENTRIES[-1])
    journal.close()
    assert (tmp_path / "journal").read_bytes() == content


def test_a_damaged_line_before_the_end_is_named(tmp_path: Path) -> None:
    content = bytearray(written(tmp_path))
    content[content.index(b"\n") + 30] ^= 1
    (tmp_path / "journal").write_bytes(bytes(content))
    with pytest.raises(Corrupt, match="line 2 of the journal"):
        read(tmp_path)


def test_one_writer_at_a_time_while_anybody_reads(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.append(DECLARED)
    with pytest.raises(Conflict, match="is in use by process"):
        Journal(tmp_path)
    assert read(tmp_path).declared == DECLARED
    journal.close()
    Journal(tmp_path).close()


def test_a_folder_without_a_journal_is_no_home(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="is not the home of a flow"):
        read(tmp_path)


def test_the_image_sums_rows_and_places_layers() -> None:
    image = fold(ENTRIES)
    assert (image.epoch, image.rows, image.rejected) == (2, {"s": 15, "t": 1}, {"s": 2})
    assert image.covers("v/aggregate", 2) == {0: (layer(1, 3),), 1: (layer(2, 3, shard=1),)}
    assert image.covers("v/aggregate", 1) == {0: (layer(1, 2),)}
    assert image.slices("s") == [{"files": [["ä", 1, 2]]}, {"files": []}]


def test_an_opened_epoch_that_was_not_computed_comes_next() -> None:
    assert fold(ENTRIES).unfinished() is None
    assert fold(ENTRIES[:5]).unfinished() == ENTRIES[4]
