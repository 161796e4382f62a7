"""A Bloom filter for each block of a layer: says of most hashes that are not in it that they are not, without a search.

    column   _bloom uint8, as long as the block: its bytes, little-endian, are 64-bit words (what is left over is 0)
    word     of a hash: ((hash - first) >> shift) * words // (((last - first) >> shift) + 1), `shift` so that 32 bits remain
    bits     of a hash within its word: the lowest four groups of 6 bits

Eight bits a key, four of which are set, all in one word: one place in memory a question. Words ascend with the hashes, so that sorted
needles ask from the front to the back. About 3 in 100 hashes that are not there pass. A hash that is there always does.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

LEAST_ROWS = 4096  # below, a search is as quick
BITS = 4
Words = npt.NDArray[np.uint64]
Hashes = npt.NDArray[np.uint64]


def bloom_of(hashes: Hashes) -> pa.Array:
    """The filter of a block's hashes, which ascend, as a column."""
    content = np.zeros(len(hashes), dtype=np.uint8)
    words = words_of(content)
    if not len(words):
        return pa.array(content)
    places = places_of(hashes, len(words), hashes[0], hashes[-1])
    starts = np.flatnonzero(np.concatenate(([True], places[1:] != places[:-1])))
    words[places[starts]] = np.bitwise_or.reduceat(masks_of(hashes), starts)
    return pa.array(content)


def words_of(content: npt.NDArray[np.uint8]) -> Words:
    """The words in a column's bytes, without a copy."""
    words: Words = content[: len(content) // 8 * 8].view("<u8")
    return words


def masks_of(hashes: Hashes) -> Words:
    """The bits that a hash sets in its word, whichever word that is."""
    one, low = np.uint64(1), np.uint64(63)
    masks: Words = np.left_shift(one, hashes & low)
    for number in range(1, BITS):
        masks |= np.left_shift(one, (hashes >> np.uint64(6 * number)) & low)
    return masks


def places_of(hashes: Hashes, words: int, first: np.uint64, last: np.uint64) -> npt.NDArray[np.int64]:
    """The words of hashes between the first and the last of a block."""
    span = int(last) - int(first)
    shift = max(span.bit_length() - 32, 0)
    scaled = ((hashes - first) >> np.uint64(shift)) * np.uint64(words) // np.uint64((span >> shift) + 1)
    return scaled.view(np.int64)


def passes(words: Words, hashes: Hashes, masks: Words, first: np.uint64, last: np.uint64) -> npt.NDArray[np.bool_]:
    """Which hashes may be in the block: all that are, and few others. Hashes lie between its first and its last."""
    if not len(words):
        return np.ones(len(hashes), dtype=np.bool_)
    found: npt.NDArray[np.bool_] = (words[places_of(hashes, len(words), first, last)] & masks) == masks
    return found
