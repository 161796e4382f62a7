"""Ranges of hashes: which part of a trace a layer holds.

Hashes are unsigned, of 64 bits. As text, in names of files and in the journal, a range is its first and its last hash in hex, without the
zeros at the end of the first and the f's at the end of the last: "0-f" is everything, "8-f" the upper half.
"""

from collections.abc import Iterable
from typing import NamedTuple

DIGITS = 16


class HashRange(NamedTuple):
    """The hashes [lower, upper)."""

    lower: int
    upper: int

    @property
    def width(self) -> int:
        return self.upper - self.lower

    def contains(self, hash: int) -> bool:
        return self.lower <= hash < self.upper

    def overlaps(self, other: "HashRange") -> bool:
        """Whether some hash is in both."""
        return self.lower < other.upper and other.lower < self.upper

    def within(self, other: "HashRange") -> bool:
        """Whether the other has all of these hashes."""
        return other.lower <= self.lower and self.upper <= other.upper

    def both(self, other: "HashRange") -> "HashRange":
        """The hashes that are in both, of ranges that overlap."""
        return HashRange(max(self.lower, other.lower), min(self.upper, other.upper))

    def without(self, other: "HashRange") -> list["HashRange"]:
        """What is left of it without the other's hashes: at most a part before and a part behind them."""
        parts = (HashRange(self.lower, min(self.upper, other.lower)), HashRange(max(self.lower, other.upper), self.upper))
        return [part for part in parts if part.lower < part.upper]

    def __str__(self) -> str:
        first, last = f"{self.lower:0{DIGITS}x}", f"{self.upper - 1:0{DIGITS}x}"
        return f"{first.rstrip('0') or '0'}-{last.rstrip('f') or 'f'}"

    @staticmethod
    def parse(text: str) -> "HashRange":
        """`ValueError` for what is not the text of a range."""
        first, _, last = text.partition("-")
        found = HashRange(int(first.ljust(DIGITS, "0"), 16), int(last.ljust(DIGITS, "f"), 16) + 1)
        if not found.lower < found.upper <= 1 << 64 or str(found) != text:
            raise ValueError(f"{text!r} is no range of hashes")
        return found


ALL_HASHES = HashRange(0, 1 << 64)


def remainder(whole: HashRange, taken: Iterable[HashRange]) -> list[HashRange]:
    """The parts of a range that are in none of those taken."""
    left = [whole]
    for one in taken:
        left = [rest for part in left for rest in part.without(one)]
    return left


def joined(ranges: Iterable[HashRange]) -> list[HashRange]:
    """The same hashes in as few ranges as can be, ascending."""
    found: list[HashRange] = []
    for one in sorted(ranges):
        if found and one.lower <= found[-1].upper:
            one = HashRange(found[-1].lower, max(found.pop().upper, one.upper))
        found.append(one)
    return found
