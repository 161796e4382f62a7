"""How values are put into words and bytes, everywhere alike. Pure."""

import json
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any


def iso_seconds(at: float) -> str:
    """A time since the epoch, in UTC."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def counted(number: int, noun: str) -> str:
    """`1,000 rows`, `1 row`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def first_line(error: BaseException) -> str:
    """What an error says first; what it is called where it says nothing."""
    return str(error).strip().partition("\n")[0] or type(error).__name__


def json_of(facts: Any) -> bytes:
    """A dataclass as one line of JSON."""
    return json.dumps(asdict(facts), separators=(",", ":")).encode()
