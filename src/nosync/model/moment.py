"""What `at=` may say: an epoch, a time, or the newest epoch that is safe. Names of pins are looked up before, by who knows them. Pure."""

import re
from dataclasses import dataclass
from datetime import datetime
from numbers import Integral
from typing import Literal

from nosync.model.duration import seconds
from nosync.model.errors import Invalid
from nosync.model.identifiers import Epoch

At = int | str | datetime | None

AGO = re.compile(r"(.*\S)\s+ago\s*", re.IGNORECASE)
HINT = 'Pass the number of an epoch, a datetime, "2026-05-01 21:05", "1 hour ago", "safe" or the name of a pin; nothing for the newest.'


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
    if isinstance(at, bool) or not isinstance(at, Integral | str | datetime):
        raise Invalid(f"at={at!r} is no epoch and no time", hint=HINT)
    if isinstance(at, Integral) or (isinstance(at, str) and at.strip().isdecimal()):
        return Epoch(int(at))
    if isinstance(at, str) and (ago := AGO.fullmatch(at)):
        return Moment(now - seconds(re.sub(r"^\s*an?\b", "1", ago[1]), "a time ago"), at)
    try:
        time = at if isinstance(at, datetime) else datetime.fromisoformat(str(at))
        return Moment(time.timestamp(), str(at))
    except (ValueError, OverflowError):
        raise Invalid(f'at="{at}" is no epoch and no time', hint=HINT) from None


def is_moment(said: str) -> bool:
    """Whether this text, as `at=`, says or would say an epoch or a time: no pin can be called so."""
    try:
        return AGO.fullmatch(said) is not None or moment_of(said, 0.0) is not None
    except Invalid:
        return False
