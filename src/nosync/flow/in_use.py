"""Which source objects are being read. An object keeps one place in its input: two runs that read from it would share its rows out.

Objects, not inputs: two objects over the same folder are each given all of it.
"""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from nosync.model.errors import Conflict, Invalid

SECOND = "Make a second object of it: each keeps its own place in its input."


class Running(Protocol):
    """A run, as far as it matters here."""

    @property
    def isActive(self) -> bool: ...  # noqa: N802 (PySpark's name)


@dataclass(eq=False)
class Use:
    """The objects of one run, from before it starts."""

    flow: str
    sources: Mapping[str, Any]
    run: Running | None = None
    starting: bool = True

    @property
    def goes_on(self) -> bool:
        return self.starting or (self.run is not None and self.run.isActive)


def check_may_start(flow: str, run: Running | None) -> None:
    """A flow has one run at a time."""
    if run is not None and run.isActive:
        raise Conflict(f'flow "{flow}" is already running', hint="Stop that run first, or declare another flow for another home.")


class InUse:
    """All uses in this process. Those that have ended are forgotten with the next one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._uses: list[Use] = []

    @contextmanager
    def by(self, flow: str, sources: Mapping[str, Any]) -> Iterator[Use]:
        """Around starting a run, which is set in what is given; `Conflict` while another one has one of the objects."""
        use = Use(flow, dict(sources))
        with self._lock:
            self._uses = [other for other in self._uses if other.goes_on]
            for other in self._uses:
                for name, source in use.sources.items():
                    if _name_of(source, other.sources) is not None:
                        words = f'source "{name}" of flow "{flow}" is being read by a run of flow "{other.flow}"'
                        raise Conflict(words, hint=f"Stop that run first, or give each its own. {SECOND}")
            self._uses.append(use)
        try:
            yield use
        finally:
            use.starting = False


def check_first_use(name: str, source: Any, others: Mapping[str, Any]) -> None:
    """One flow reads an object under one name."""
    other = _name_of(source, others)
    if other is not None:
        raise Invalid(f'source "{name}" is the same object as source "{other}"', hint=SECOND)


def _name_of(source: Any, sources: Mapping[str, Any]) -> str | None:
    return next((name for name, found in sources.items() if found is source), None)


IN_USE = InUse()
