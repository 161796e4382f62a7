"""What `at=` may say: an epoch, a time, or the newest epoch that is safe. Pure."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from nosync.model.errors import Invalid
from nosync.model.identifiers import Epoch

At = int | str | datetime | None

AGO = re.compile(r"\s*(?:(\d+(?:\.\d+)?)|an?)\s*(second|minute|hour|day|week)s?\s+ago\s*", re.IGNORECASE)
SECONDS = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0, "week": 604800.0}
HINT = 'Pass the number of an epoch, a datetime, "2026-05-01 21:05", "1 hour ago" or "safe".'


@dataclass(frozen=True, slots=True)
class Moment:
    """A time, in seconds since 1970, as somebody said it."""

    time: float
    said: str


def moment_of(at: At, now: float) -> Epoch | Moment | Literal["safe"] | None:
    """What was meant; None for the newest epoch. Times without a zone are of this machine's."""
    if at is None:
        return None
    if at == "safe":
        return "safe"
    if isinstance(at, datetime):
        return Moment(at.timestamp(), at.isoformat(sep=" "))
    if isinstance(at, bool) or not isinstance(at, int | str):
        raise Invalid(f"at={at!r} is no epoch and no time", hint=HINT)
    if isinstance(at, int) or at.strip().isdigit():
        return Epoch(int(at))
    if ago := AGO.fullmatch(at):
        return Moment(now - float(ago[1] or 1) * SECONDS[ago[2].lower()], at)
    try:
        return Moment(datetime.fromisoformat(at).timestamp(), at)
    except ValueError:
        raise Invalid(f'at="{at}" is no epoch and no time', hint=HINT) from None
