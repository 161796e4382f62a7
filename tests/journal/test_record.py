"""Records as bytes: whole ones come back, of everything else nothing does."""

import json

import pytest

from nosync.journal.entries import Computed, Opened, Reached, RolledBack
from nosync.journal.record import FIRST, decode, encode, openings_text, pack, pack_openings, unpack
from nosync.model.hash_range import ALL_HASHES
from nosync.model.layers import LayerInfo

LAYER = LayerInfo("v", ALL_HASHES, 1, 2, "diffs", "layers/v/0-f/1-2.arrow", 1, 1, "")
ENTRIES = [[], [Opened(1, 0.0, {})], [Opened(1, 0.0, {}), Opened(2, 0.0, {"s": {"ä": 1}})]]


@pytest.mark.parametrize("entries", ENTRIES, ids=len)
def test_a_record_that_is_cut_off_anywhere_is_none(entries: list[Opened]) -> None:
    record = encode(1, "1.a", FIRST, entries)
    assert list(decode(record.content, 1, FIRST)) == [record]
    for length in range(len(record.content)):
        assert not list(decode(record.content[:length], 1, FIRST))


def test_what_follows_a_whole_record_does_not_touch_it() -> None:
    one = encode(1, "1.a", FIRST, ENTRIES[1])
    two = encode(2, "1.a", one.digest, ENTRIES[2])
    assert list(decode(one.content + two.content, 1, FIRST)) == [one, two]
    assert list(decode(one.content + two.content[:-1], 1, FIRST)) == [one]
    assert list(decode(one.content + b"\n", 1, FIRST)) == [one]


def test_a_record_of_another_number_or_of_another_chain_is_none() -> None:
    record = encode(5, "1.a", "0123", ENTRIES[1])
    assert list(decode(record.content, 5, None)) == [record]
    assert not list(decode(record.content, 4, None))
    assert not list(decode(record.content, 5, "4567"))


@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"nosync\n", b"nosync 1 1\n", b"nosync 1 1 1.a -\n", b"nosync 1 1 1.a - one 0123\n", b"nosync 1 1 1.a - 1 01 23\n{}\n"]
    + [b"nosync 1 1 1.a - 99999999999999999999 0123\n{}\n"],
)
def test_a_line_that_is_no_header_begins_no_record(content: bytes) -> None:
    assert not list(decode(content, 1, FIRST))


def test_a_flipped_bit_anywhere_makes_a_record_none() -> None:
    content = encode(1, "1.a", FIRST, ENTRIES[1]).content
    for position in range(len(content)):
        damaged = content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :]
        assert not list(decode(damaged, 1, FIRST))


def test_of_openings_alone_nothing_else_is_packed() -> None:
    computed = Computed(1, (LAYER,), {"s": 3}, {}, {"s": 5})
    content = unpack(pack_openings(openings_text([Reached("site", 1), Opened(1, 0.0, {}), computed, RolledBack(0)])))
    assert content is not None
    lines = [json.loads(line) for line in content.split(b"\n")]
    assert [line["entry"] for line in lines] == ["opened", "computed", "rolledback"]
    assert (lines[1]["layers"], lines[1]["rows"], lines[1]["seen"]) == ([], {"s": 3}, {"s": 5})


def test_what_was_packed_comes_back_and_what_is_cut_off_is_nothing() -> None:
    one = encode(1, "1.a", FIRST, ENTRIES[2])
    for packed in (pack([one]), pack_openings(openings_text(one.entries))):
        assert unpack(packed)
        assert all(unpack(packed[:length]) is None for length in range(len(packed)))
    assert unpack(pack([one])) == one.content
    assert all(unpack(pack([one])[:-1] + tail) is None for tail in (b"", b"x"))
    assert unpack(b"") is unpack(b"not packed") is None
