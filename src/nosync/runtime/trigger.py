"""When epochs start."""

import re
from dataclasses import dataclass
from typing import Any

from nosync.model.errors import Invalid

UNITS = {"millisecond": 1e-3, "second": 1.0, "minute": 60.0, "hour": 3600.0}


@dataclass(frozen=True)
class Trigger:
    """As soon as there is input (`seconds` 0), at most every so often, or until all that is there now is done."""

    seconds: float = 0.0
    once: bool = False


def trigger_of(given: dict[str, Any] | None) -> Trigger:
    """Reads `trigger=` as `DataStreamWriter.trigger` takes it: {"processingTime": "1 second"} or {"availableNow": True}."""
    if not given:
        return Trigger()
    if given == {"availableNow": True}:
        return Trigger(once=True)
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(millisecond|second|minute|hour)s?\s*", str(given.get("processingTime", "")))
    if len(given) != 1 or match is None:
        raise Invalid(f"trigger {given} is not understood", hint='Pass {"processingTime": "1 second"} or {"availableNow": True}.')
    return Trigger(float(match[1]) * UNITS[match[2]])
