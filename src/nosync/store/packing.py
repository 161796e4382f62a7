"""How layers travel: zstd over blocks of 4 MiB, whose bytes are first sorted by their place within words of eight where that helps.

Columns of numbers and hashes hold their noise in a few bytes of each word. With the first bytes of all words together, then the second
ones, and so on, compressing takes a third of the time and gives a quarter less than over the words as they are. Text is better left alone:
a sample of each block decides.

    block    "nsp1", one byte 0 (as it is) or 1 (by place), the length of the content and of what follows as uint32, little endian;
             a zstd frame of level 1

Pure. An object is its blocks, one after the other; an empty file is one block without content.
"""

import struct
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

BLOCK = 4 << 20
SAMPLE = 16 << 10
WORD = 8
HEAD = struct.Struct("<4sBII")
MAGIC = b"nsp1"


def packed(content: bytes) -> bytes:
    """One block, of at most `BLOCK` bytes of content."""
    codec, middle = pa.Codec("zstd", 1), len(content) // 2 // WORD * WORD
    sample = content[middle : middle + SAMPLE]
    by_place = len(codec.compress(_sorted(sample), asbytes=True)) < len(codec.compress(sample, asbytes=True))
    frame = bytes(codec.compress(_sorted(content) if by_place else content, asbytes=True))
    return HEAD.pack(MAGIC, by_place, len(content), len(frame)) + frame


def unpacked(parts: Iterable[bytes]) -> Iterator[bytes]:
    """The content of an object that comes in parts, block by block. `OSError` where it is damaged."""
    codec, rest = pa.Codec("zstd"), b""
    for part in parts:
        rest += part
        while (found := _block(rest)) is not None:
            by_place, length, frame, rest = found
            content = bytes(codec.decompress(frame, length, asbytes=True))
            yield _restored(content) if by_place else content
    if rest:
        raise OSError("it ends within a block")


def _block(content: bytes) -> tuple[bool, int, bytes, bytes] | None:
    """The first block and what comes after it; None where it is not whole yet."""
    if len(content) < HEAD.size:
        return None
    magic, by_place, length, size = HEAD.unpack_from(content)
    if magic != MAGIC or by_place > 1 or length > BLOCK or size > 2 * BLOCK:
        raise OSError("no block begins where one should")
    end = HEAD.size + size
    return None if len(content) < end else (bool(by_place), length, content[HEAD.size : end], content[end:])


def _sorted(content: bytes) -> bytes:
    words = len(content) // WORD * WORD
    return np.frombuffer(content, np.uint8, words).reshape(-1, WORD).T.tobytes() + content[words:]


def _restored(content: bytes) -> bytes:
    words = len(content) // WORD * WORD
    return np.frombuffer(content, np.uint8, words).reshape(WORD, -1).T.tobytes() + content[words:]
