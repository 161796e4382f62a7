"""A source as a run uses it: what it can do, found out once, when it becomes part of a flow.

This is the only place that asks whether a source has an ability. All others use the value made here, and so may what wraps a source
(the input log, a source of changes): it replaces some of the functions.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from nosync.model.errors import HANDLED, NosyncError, user_code
from nosync.model.source import (
    Addressed,
    Announcing,
    Closing,
    Continuing,
    Counted,
    DirectlyReadable,
    Fetching,
    InFolder,
    Joinable,
    Keyed,
    Lagging,
    Limited,
    Marked,
    Ordered,
    Position,
    ReadOnce,
    Rejecting,
    Reopenable,
    Shaped,
    Shaping,
    Slice,
    Source,
    Tabular,
    Taken,
    Trimmable,
    Weighed,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

Given = ParamSpec("Given")
Found = TypeVar("Found")
Read = Callable[["SparkSession", Slice], "DataFrame"]
AGAIN = 'Correct the cause and start the flow on the same home: no epoch is lost. For "not now", a source raises ns.Unavailable.'


def _unknown(slice: Slice) -> int | None:
    return None


def _weightless(slice: Slice) -> int:
    return 0


def _no_files(slice: Slice) -> dict[str, str]:
    return {}


def _as_it_is(slice: Slice, unreadable: Mapping[str, str]) -> Slice:
    return slice


def _nowhere() -> str:
    return ""


def _unmeasured() -> dict[str, int]:
    return {}


def _nothing_held() -> None:
    return None


def _no_keys() -> tuple[str, ...]:
    return ()


def _never(address: str) -> bool:
    return False


def _nothing_to_do(slice: Slice) -> None:
    return None


@dataclass(frozen=True, slots=True)
class BoundSource:
    """What every source does, then what some do. None stands for an ability that it has not.

    `files` are those of the home that a slice cannot be read without, with the fingerprints of their contents. Of a source that is
    `read_once` nothing is recorded: an input log stands before it, whose slices can be read again. `shaped` does without
    planning what `read` does, `shaped_events` what `events` does.
    """

    append_only: bool
    start: Callable[[Path, Taken], None]
    available: Callable[[], Slice | None]
    read: Read
    rows: Callable[[Slice], int | None] = _unknown
    weight: Callable[[Slice], int] = _weightless
    files: Callable[[Slice], dict[str, str]] = _no_files
    acknowledge: Callable[[Slice], None] = _nothing_to_do
    reopen: Callable[[Slice, Mapping[str, str]], Slice] = _as_it_is
    folder: Callable[[], str] = _nowhere
    fetches_into: Callable[[], str] = _nowhere
    close: Callable[[], None] = _nothing_held
    lag: Callable[[], dict[str, int]] = _unmeasured
    keys: Callable[[], Sequence[str]] = _no_keys
    would_read: Callable[[str], bool] = _never
    read_once: bool = False
    allow: Callable[[int | None], None] | None = None
    trim: Callable[[Slice], None] | None = None
    marks: Callable[[Slice], Iterable[str]] | None = None
    table: Callable[[Slice], "pa.Table | None"] | None = None
    rejecting: Rejecting | None = None
    direct: Callable[[Slice], Sequence[str]] | None = None
    together: Callable[[Sequence[Slice]], Slice] | None = None
    events: Read | None = None
    shaped: Shaped | None = None
    shaped_events: Shaped | None = None
    continue_from: Callable[[Position], Slice] | None = None
    on_arrival: Callable[[Callable[[], None]], None] | None = None

    def guarded(self, name: str) -> "BoundSource":
        """The same source, whose errors say whose they are. What `read` and its like raise is explained by the epoch that calls them."""
        trim, marks, allow, on_arrival = self.trim, self.marks, self.allow, self.on_arrival
        return replace(
            self,
            start=_guarded(name, "start", self.start),
            available=_guarded(name, "available", self.available),
            acknowledge=_guarded(name, "acknowledge", self.acknowledge),
            reopen=_guarded(name, "reopen", self.reopen),
            close=_guarded(name, "close", self.close),
            lag=_guarded(name, "lag", self.lag),
            allow=None if allow is None else _guarded(name, "allow", allow),
            on_arrival=None if on_arrival is None else _guarded(name, "on_arrival", on_arrival),
            trim=None if trim is None else _guarded(name, "trim", trim, HANDLED),
            marks=None if marks is None else _guarded(name, "marks", lambda slice: list(marks(slice)), HANDLED),
        )


def _guarded(
    source: str, method: str, function: Callable[Given, Found], passed: tuple[type[NosyncError], ...] = (NosyncError,)
) -> Callable[Given, Found]:
    def call(*given: Given.args, **named: Given.kwargs) -> Found:
        with user_code(f'source "{source}" failed in {method}', hint=AGAIN, passed=passed):
            return function(*given, **named)

    return call


def bound(source: Source) -> BoundSource:
    """What the source can do. It has been declared."""
    return BoundSource(
        append_only=source.append_only,
        start=source.start,
        available=source.available,
        read=source.read,
        rows=source.rows if isinstance(source, Counted) else _unknown,
        weight=source.weight if isinstance(source, Weighed) else _weightless,
        acknowledge=source.acknowledge if isinstance(source, ReadOnce) else _nothing_to_do,
        reopen=source.reopen if isinstance(source, Reopenable) else _as_it_is,
        folder=source.folder if isinstance(source, InFolder) else _nowhere,
        fetches_into=source.fetches_into if isinstance(source, Fetching) else _nowhere,
        close=source.close if isinstance(source, Closing) else _nothing_held,
        lag=source.lag if isinstance(source, Lagging) else _unmeasured,
        keys=source.keys if isinstance(source, Keyed) else _no_keys,
        would_read=source.would_read if isinstance(source, Addressed) else _never,
        read_once=isinstance(source, ReadOnce),
        allow=source.allow if isinstance(source, Limited) else None,
        trim=source.trim if isinstance(source, Trimmable) else None,
        marks=source.marks if isinstance(source, Marked) else None,
        table=source.table if isinstance(source, Tabular) else None,
        rejecting=source if isinstance(source, Rejecting) else None,
        direct=source.direct if isinstance(source, DirectlyReadable) else None,
        together=source.together if isinstance(source, Joinable) else None,
        events=source.events if isinstance(source, Ordered) else None,
        shaped=source.shaped() if isinstance(source, Shaping) else None,
        shaped_events=source.shaped_events() if isinstance(source, Shaping) else None,
        on_arrival=source.on_arrival if isinstance(source, Announcing) else None,
        continue_from=source.continue_from if isinstance(source, Continuing) else None,
    )
