"""Each epoch as a span of OpenTelemetry, its parts as spans below it: `flow.listen(ns.tracing())`. Needs the extra `tracing`.

Spans go to whatever exporter the program has set up; without one, nowhere.
"""

from datetime import datetime
from typing import Any

from nosync.model.arguments import checked
from nosync.model.errors import Invalid
from nosync.model.events import Event
from nosync.model.extras import needed

PARTS = ("open", "compute", "seal")


@checked()
def tracing(tracer: Any = None) -> "Tracing":
    """A listener for `flow.listen` that makes a span of each epoch. `tracer`: that of the program, else OpenTelemetry's for "nosync".

    >>> flow.listen(ns.tracing())
    """
    if tracer is None:
        tracer = _opentelemetry().get_tracer("nosync")
    try:
        tracer.start_span  # noqa: B018 (looked for, not called)
    except AttributeError:
        hint = 'Pass opentelemetry.trace.get_tracer("name"), or nothing.'
        raise Invalid(f"ns.tracing: tracer={tracer!r} has no start_span()", hint=hint) from None
    return Tracing(tracer)


def _opentelemetry() -> Any:
    return needed("opentelemetry.trace", "tracing", "ns.tracing")


class Tracing:
    """See `tracing`."""

    def __init__(self, tracer: Any) -> None:
        self._tracer = tracer

    def __repr__(self) -> str:
        return "ns.tracing()"

    def onProgress(self, event: Event) -> None:  # noqa: N802 (a listener's name)
        """The epoch that has just been computed."""
        progress = event.progress
        assert progress is not None
        begun = round(datetime.fromisoformat(progress["timestamp"]).timestamp() * 1e9)
        millis = progress["durationMs"]
        facts = {"nosync.flow": event.flow, "nosync.epoch": event.epoch, "nosync.run": event.run}
        facts |= {"nosync.rows": progress["numInputRows"], "nosync.rejected": progress["rejectedRows"]}
        span = self._tracer.start_span(f"{event.flow} epoch", start_time=begun, attributes=facts)
        within = _opentelemetry().set_span_in_context(span)
        at = begun
        for part in (part for part in PARTS if part in millis):
            end = at + int(millis[part] * 1e6)
            self._tracer.start_span(part, context=within, start_time=at).end(end_time=end)
            at = end
        span.end(end_time=begun + int(millis["triggerExecution"] * 1e6))
