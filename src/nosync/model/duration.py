"""Durations as people write them: everywhere the same. Pure.

As Spark's interval strings say them ("10 seconds", "1 hour 30 minutes", "interval 2 days"), or short ("500ms", "5s", "2m").
"""

import re
from decimal import Decimal

from nosync.model.errors import Invalid

UNITS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
SHORT = {
    "us": "microsecond", "ms": "millisecond", "s": "second", "sec": "second", "secs": "second", "m": "minute", "min": "minute",
    "mins": "minute", "h": "hour", "hr": "hour", "hrs": "hour", "d": "day",
}  # fmt: skip
HINT = (
    'Write a number and a unit, for example "10 seconds", "1 hour 30 minutes" or "5s"; the units are microseconds, milliseconds, seconds, '
    "minutes, hours, days and weeks."
)
PART = re.compile(rf"\s*(\d+(?:\.\d+)?)\s*(?:({'|'.join(UNITS)})s?|({'|'.join(SHORT)}))(?![a-z])", re.IGNORECASE)


def microseconds(text: str, what: str = "a duration") -> int:
    """How many; `what` names what was asked for in the error."""
    rest = re.sub(r"^\s*interval\b", "", str(text), flags=re.IGNORECASE)
    total, position = 0, 0
    while match := PART.match(rest, position):
        unit = match[2] or SHORT[match[3].lower()]
        total, position = total + int(Decimal(match[1]) * UNITS[unit.lower()]), match.end()
    if not position or rest[position:].strip():
        raise Invalid(f'"{text}" is not {what}', hint=HINT)
    return total


def in_words(length: int) -> str:
    """So many microseconds, in the largest unit that they are whole of."""
    unit, count = next((unit, length // size) for unit, size in reversed(UNITS.items()) if length % size == 0)
    return f"{count:,} {unit}" if abs(count) == 1 else f"{count:,} {unit}s"


def seconds(text: str, what: str = "a duration") -> float:
    return microseconds(text, what) / 1e6
