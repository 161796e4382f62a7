"""How long a recovery from the remote would take, by what this home has measured; and what has to be shorter to hold to an aim.

A recovery reads the journal's newest objects, fetches the layers of the newest state, and computes again what is not there. No I/O, no
clock: whoever ships says what it took.

    HOME/pace   one JSON object, replaced whole: what was measured, for the next run (`Pace`). Losing it loses nothing.
"""

import json
import math
from dataclasses import asdict, dataclass, replace

from nosync.model.errors import MALFORMED

PACE = "pace"
AT_ONCE = 16  # requests under way (see `store.objects`)
SMALL = 256 << 10  # bytes up to which a transfer says more about requests than about bytes
WEIGHT = 0.2  # of what was measured last
LEAST_RECORDS, RECORDS_SHARE = 32, 0.25
OVERHEAD = 1.5  # of what was planned, for what is not: opening, verifying, a slow request


@dataclass(frozen=True, slots=True)
class Pace:
    """What was measured; guesses until then."""

    object_seconds: float = 0.05
    bytes_per_second: float = 50e6
    epoch_seconds: float = 1.0

    def to_bytes(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @staticmethod
    def from_bytes(content: bytes | None) -> "Pace":
        """Guesses for what is missing or not ours."""
        try:
            found = Pace(**json.loads(content or b"{}"))
            good = all(type(value) in (int, float) and math.isfinite(value) and value > 0 for value in asdict(found).values())
        except MALFORMED:
            good = False
        return found if good else Pace()


@dataclass(frozen=True, slots=True)
class Effort:
    """What a recovery would have to do: objects of records and of layers, bytes of layers as they travel, epochs to compute again."""

    records: int
    layers: int
    bytes: int
    epochs: int


@dataclass(frozen=True, slots=True)
class Allowance:
    """How many objects an aim leaves. `kept` is False where bytes and epochs alone take longer: then nothing here can help."""

    records: int
    layers: int
    kept: bool


@dataclass(frozen=True, slots=True)
class Estimate:
    """From the remote, if the site were lost now. `kept`: whether it can be done `within` the seconds that were asked for. `pace` is what
    it was reckoned by.
    """

    seconds: float
    within: float | None
    kept: bool
    effort: Effort
    pace: Pace


def seconds_for(effort: Effort, pace: Pace) -> float:
    return OVERHEAD * ((effort.records + effort.layers) * pace.object_seconds / AT_ONCE + _fixed(effort, pace))


def allowance(within: float, effort: Effort, pace: Pace) -> Allowance:
    """What a recovery within so many seconds leaves room for, with the bytes and epochs there are."""
    objects = int((within / OVERHEAD - _fixed(effort, pace)) / pace.object_seconds * AT_ONCE)
    records = max(LEAST_RECORDS, int(objects * RECORDS_SHARE))
    return Allowance(records, max(1, objects - records), objects >= LEAST_RECORDS + 1)


def _fixed(effort: Effort, pace: Pace) -> float:
    return effort.bytes / pace.bytes_per_second + effort.epochs * pace.epoch_seconds


class Meter:
    """Takes what was measured into the pace, the last with most weight."""

    def __init__(self, pace: Pace | None = None) -> None:
        self.pace = pace or Pace()

    def transfer(self, requests: int, size: int, seconds: float) -> None:
        """Some requests, one after the other, that moved so many bytes."""
        if seconds <= 0.0:
            return
        if size <= SMALL:
            self.pace = replace(self.pace, object_seconds=_mixed(self.pace.object_seconds, seconds / requests))
        else:
            moving = max(seconds - requests * self.pace.object_seconds, 0.1 * seconds)
            self.pace = replace(self.pace, bytes_per_second=1.0 / _mixed(1.0 / self.pace.bytes_per_second, moving / size))

    def epoch(self, seconds: float) -> None:
        """An epoch was computed."""
        self.pace = replace(self.pace, epoch_seconds=_mixed(self.pace.epoch_seconds, seconds))


def _mixed(before: float, now: float) -> float:
    return (1.0 - WEIGHT) * before + WEIGHT * now
