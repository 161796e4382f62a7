"""What is packed comes back as it was, in whatever parts it arrives; numbers take less than zstd alone would make of them."""

import os

import numpy as np
import pyarrow as pa
import pytest

from nosync.store.packing import BLOCK, HEAD, packed, unpacked

TEXT = b"a line of words, and another one of them\n" * 5_000
NUMBERS = np.random.default_rng(1).integers(0, 1_000_000, 40_000).tobytes()


@pytest.mark.parametrize("content", [b"", b"x", b"seven b", NUMBERS, NUMBERS + b"odd", TEXT, os.urandom(BLOCK)])
@pytest.mark.parametrize("size", [1 << 30, 50_000, 7_919])
def test_blocks_come_back_however_they_are_cut(content: bytes, size: int) -> None:
    whole = packed(content) + packed(TEXT)
    parts = [whole[start : start + size] for start in range(0, len(whole), size)]
    assert list(unpacked(parts)) == [content, TEXT]


def test_numbers_go_by_place_and_text_as_it_is() -> None:
    plain = len(pa.Codec("zstd", 1).compress(NUMBERS, asbytes=True))
    assert len(packed(NUMBERS)) < 0.9 * plain
    assert [HEAD.unpack_from(packed(content))[1] for content in (NUMBERS, TEXT)] == [1, 0]


@pytest.mark.parametrize("damaged", [packed(NUMBERS)[:-1], packed(NUMBERS) + b"n", b"x" + packed(NUMBERS), packed(TEXT)[:50] + b"..."])
def test_damage_is_reported(damaged: bytes) -> None:
    with pytest.raises(OSError):
        list(unpacked([damaged + bytes(100)]))
