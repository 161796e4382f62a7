"""When epochs start."""

from dataclasses import dataclass
from typing import Any

from nosync.model.duration import seconds
from nosync.model.errors import Invalid


@dataclass(frozen=True)
class Trigger:
    """As soon as there is input (`seconds` 0), at most every so often, or until all that is there now is done."""

    seconds: float = 0.0
    once: bool = False


def trigger_of(given: dict[str, Any] | str | None) -> Trigger:
    """Reads `trigger=` as `DataStreamWriter.trigger` takes it: {"processingTime": "1 second"} or {"availableNow": True}; or "1 second"."""
    if not given:
        return Trigger()
    if isinstance(given, str):
        given = {"processingTime": given}
    if given == {"availableNow": True}:
        return Trigger(once=True)
    if not isinstance(given, dict) or [*given] != ["processingTime"]:
        raise Invalid(f"trigger {given} is not understood", hint='Pass {"processingTime": "1 second"} or {"availableNow": True}.')
    return Trigger(seconds(given["processingTime"], "a time between epochs"))
