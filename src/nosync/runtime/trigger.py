"""When epochs start."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from nosync.model.duration import seconds
from nosync.model.errors import Invalid

Given = dict[str, Any] | str | timedelta | None
HINT = (
    'Pass "1 second" for a time between epochs, {"latency": "1 second"} for the time in which rows shall be seen, or "availableNow" to end '
    "once all that is there is done."
)


@dataclass(frozen=True)
class Trigger:
    """As soon as there is input (`seconds` 0), at most every so often, or until all that is there now is done. `latency`: as rarely as lets
    rows be seen within so many seconds.
    """

    seconds: float = 0.0
    once: bool = False
    latency: float | None = None


def pace_of(sink: str, given: Given) -> float:
    """Reads `trigger=` of a sink: a time between deliveries, in the same forms; 0 for as soon as may be."""
    try:
        found = trigger_of(given)
    except Invalid as error:
        raise Invalid(f'sink "{sink}": {error.message}', hint='Pass "10 seconds": the least time between two deliveries.') from None
    if found.once:
        hint = 'Pass it to flow.start: when such a run ends, sinks have all. A sink of its own pace takes "10 seconds".'
        raise Invalid(f'sink "{sink}": trigger="availableNow" is for a whole run', hint=hint)
    if found.latency is not None:
        words = f'sink "{sink}": trigger={given} is for a whole run'
        raise Invalid(words, hint='Pass it to flow.start. A sink of its own pace takes "10 seconds".')
    return found.seconds


def trigger_of(given: Given) -> Trigger:
    """Reads `trigger=`: "1 second" or "availableNow"; or as `DataStreamWriter.trigger` takes it, {"processingTime": "1 second"} or
    {"availableNow": True}; a timedelta is a time between epochs too. {"latency": "1 second"} is ours.
    """
    if given is None:
        return Trigger()
    if given in ("availableNow", {"availableNow": True}):
        return Trigger(once=True)
    if isinstance(given, dict):
        if [*given] == ["latency"]:
            return Trigger(latency=_latency(given["latency"]))
        if [*given] != ["processingTime"]:
            raise Invalid(f"trigger {given} is not understood", hint=HINT)
        given = given["processingTime"]
    if isinstance(given, timedelta) and given >= timedelta(0):
        return Trigger(given.total_seconds())
    if not isinstance(given, str):
        raise Invalid(f"trigger={given!r} is not understood", hint=HINT)
    try:
        return Trigger(seconds(given, "a time between epochs"))
    except Invalid as error:
        raise Invalid(error.message, hint=HINT) from None


def _latency(given: object) -> float:
    aim = seconds(str(given), "a time in which rows shall be seen")
    if not aim:
        raise Invalid(f'a latency of "{given}" cannot be', hint="Leave trigger= out: epochs then follow one another as fast as they can.")
    return aim
