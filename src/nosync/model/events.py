"""What a run tells those who listen to it: that it has started, each epoch, that there is nothing to do, that it has ended."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from nosync.model.arguments import check_takes
from nosync.model.errors import Invalid, NosyncError
from nosync.model.identifiers import Epoch
from nosync.model.progress import Progress

Kind = Literal["started", "progress", "idle", "terminated"]


@dataclass(frozen=True, slots=True)
class Event:
    """One of them. `run` is the run's id, `at` the time in seconds since 1970, `epoch` the newest computed one.

    `progress` comes with "progress", `error` with a run that failed, `facts` with "started": the home, how many views and sinks there are.
    """

    kind: Kind
    flow: str
    run: str
    at: float
    epoch: Epoch
    progress: Progress | None = None
    error: NosyncError | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def exception(self) -> NosyncError | None:
        """As PySpark calls it."""
        return self.error


class Listener(Protocol):
    """As PySpark's `StreamingQueryListener`; each method may be missing. They are called one after the other, on a thread of their own: a
    slow one holds up no epoch, and one that raises is logged and called again with the next event."""

    def onStarted(self, event: Event) -> None: ...  # noqa: N802 (PySpark's manner)
    def onProgress(self, event: Event) -> None: ...  # noqa: N802
    def onIdle(self, event: Event) -> None: ...  # noqa: N802
    def onTerminated(self, event: Event) -> None: ...  # noqa: N802


Listening = Callable[[Event], object]
METHODS: dict[Kind, str] = {"started": "onStarted", "progress": "onProgress", "idle": "onIdle", "terminated": "onTerminated"}


def listening(given: object) -> Listening:
    """One function of what a user passed: a function of events, or an object with some of the methods."""
    found = {kind: getattr(given, method, None) for kind, method in METHODS.items()}
    if any(map(callable, found.values())):
        return lambda event: method(event) if callable(method := found[event.kind]) else None
    if not callable(given) or isinstance(given, type):
        hint = "Pass a function of events, or an object with onStarted, onProgress, onIdle or onTerminated."
        raise Invalid(f"flow.listen was given a {type(given).__name__}, which cannot listen", hint=hint)
    check_takes("the function of flow.listen", given, "event")
    return given
