"""What people see of a run: on a terminal a live table of the latest epochs, elsewhere a line an epoch; and a summary at the end.

Epochs go to stdout, one a line or as JSON; all else goes to stderr, so that what is piped is epochs alone.
"""

import logging
import shlex
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import click
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from nosync.cli.output import print_json, visible
from nosync.model.status import Status
from nosync.model.text import counted
from nosync.observe.news import numbered

ROWS = 12  # epochs in the live table
PARTS = ("open", "compute", "seal")
SILENT_SECONDS = 10.0  # after which a step says that it goes on


@dataclass
class Tally:
    """What was done so far."""

    clock: Callable[[], float] = time.monotonic
    epochs: int = 0
    rows: int = 0
    rejected: int = 0
    rejecting: dict[str, None] = field(default_factory=dict)  # names of sources, as they came
    first: int = 0
    last: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.begun_at = self.clock()

    def add(self, progress: dict[str, Any]) -> None:
        self.epochs += 1
        self.rows += progress["numInputRows"]
        self.rejected += progress["rejectedRows"]
        self.rejecting |= {one["description"]: None for one in progress.get("sources", ()) if one["rejectedRows"]}
        self.first = self.first or progress["epoch"]
        self.last = progress

    def summary(self, status: Status, again: list[str], home: str) -> list[str]:
        """The last lines: what was done, what is safe, and how to go on."""
        seconds = self.clock() - self.begun_at
        done = f"{counted(self.epochs, 'epoch')}, {counted(self.rows, 'row')} in {seconds:.1f} s" if self.epochs else "nothing new"
        shown = ", ".join(shlex.join(["nosync", "show", home, f"{name}.rejected"]) for name in self.rejecting)
        rejected = f", {self.rejected:,} rejected ({shown})" if self.rejected else ""
        safe = ", ".join(f"{failure} {epoch:,}" for failure, epoch in status.safe.items())
        lines = [f"{status.flow}: {done}{rejected}; {status.phase} at epoch {status.epoch:,}, safe after loss of: {safe}"]
        lines += [f"{trouble.duty} failed {trouble.count} times, the last: {trouble.message}" for trouble in status.troubles]
        return [*lines, f"to go on: {shlex.join(again)}"]


class Display(Protocol):
    """Where a run is shown."""

    def say(self, words: str) -> None:
        """A step on the way."""

    def epoch(self, progress: dict[str, Any]) -> None: ...

    def look(self, status: Status) -> None:
        """Called again and again."""

    def close(self) -> None: ...


class Quiet:
    """Nothing but errors."""

    def say(self, words: str) -> None: ...
    def epoch(self, progress: dict[str, Any]) -> None: ...
    def look(self, status: Status) -> None: ...
    def close(self) -> None: ...


class Lines:
    """A line an epoch on stdout, or JSON; steps on stderr."""

    def __init__(self, as_json: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._as_json, self._clock = as_json, clock
        self._begun_at, self._again = clock(), SILENT_SECONDS

    def say(self, words: str) -> None:
        click.echo(visible(words), err=True)

    def epoch(self, progress: dict[str, Any]) -> None:
        self._begun_at, self._again = self._clock(), SILENT_SECONDS
        if self._as_json:
            print_json(progress)
        else:
            click.echo(line_of(progress))

    def look(self, status: Status) -> None:
        """A step that takes long says so, ever more rarely."""
        seconds = self._clock() - self._begun_at
        if status.phase != "running" or status.message.startswith("Waiting"):
            self._begun_at, self._again = self._clock(), SILENT_SECONDS
        elif seconds >= self._again:
            self._again *= 2
            self.say(f"{under_way(status)} ({seconds:.0f} s)")

    def close(self) -> None: ...


class LiveTable:
    """The latest epochs, and what is going on now."""

    def __init__(self, screen: Console) -> None:
        self._screen = screen
        self._latest: deque[dict[str, Any]] = deque(maxlen=ROWS)
        self._spinner = Spinner("dots")
        self._now = "Starting"
        self._standing = ""
        self._live: Live | None = None
        self._begun_at = time.monotonic()

    def say(self, words: str) -> None:
        self._screen.print(Text(visible(words), style="dim"))

    def epoch(self, progress: dict[str, Any]) -> None:
        self._latest.append(progress)

    def look(self, status: Status) -> None:
        self._standing = standing(status)
        self._now = under_way(status)
        if self._live is None and status.phase in ("running", "stopping"):
            self._live = Live(get_renderable=self._render, console=self._screen, refresh_per_second=8, transient=True)
            self._live.start()

    def close(self) -> None:
        """The table stays, without what was going on."""
        if self._live is not None:
            self._live.stop()
            self._live = None
        if self._latest:
            self._screen.print(table_of(list(self._latest)))

    def _render(self) -> RenderableType:
        seconds = time.monotonic() - self._begun_at
        self._spinner.update(text=Text(f"{visible(self._now)} ({seconds:.0f} s)", style="dim"))
        parts: list[RenderableType] = [table_of(list(self._latest)), Text(visible(self._standing))] if self._latest else []
        return Group(*parts, self._spinner)


class Saying(logging.Handler):
    """Records of the library's loggers as steps. `views`: how many the flow on the home had."""

    def __init__(self, say: Callable[[str], None], views: int = 0) -> None:
        super().__init__(logging.INFO)
        self._say, self._views = say, views

    def emit(self, record: logging.LogRecord) -> None:
        flow, words = record.name.partition(".")[2], numbered(record, self._views)
        self._say(f"{flow}: {words}" if flow else words)


def under_way(status: Status) -> str:
    """What a run does now."""
    return status.message if status.message != "Processing" else f"Computing epoch {status.epoch + 1:,}"


def line_of(progress: dict[str, Any]) -> str:
    """One epoch in one line."""
    millis = progress["durationMs"]
    parts = ", ".join(f"{name} {millis[name]:,.0f}" for name in PARTS if name in millis)
    words = [f"epoch {progress['epoch']:>6}", f"{progress['numInputRows']:>10,} rows", f"{millis['triggerExecution']:>7,.0f} ms ({parts})"]
    words += [f"{progress[name]:,} {name.removesuffix('Rows')}" for name in ("rejectedRows", "lateRows") if progress.get(name)]
    safe = ", ".join(f"{failure} {epoch:,}" for failure, epoch in progress.get("safe", {}).items())
    words += [f"safe: {safe}"] if safe else []
    words += [f"{sink['description']}: {_lag(progress['epoch'] - sink['epoch'])}" for sink in progress.get("sinks", ())]
    return "  ".join(words)


def table_of(latest: list[dict[str, Any]]) -> Table:
    """The latest epochs: rows, and milliseconds by part."""
    rejects = any(progress.get("rejectedRows") or progress.get("lateRows") for progress in latest)
    table = Table(box=None, header_style="bold", pad_edge=False)
    heads = ["epoch", "rows", *(["rejected", "late"] if rejects else []), "ms", *PARTS]
    for head in heads:
        table.add_column(head, justify="right")
    for progress in latest:
        millis = progress["durationMs"]
        cells = [f"{progress['epoch']:,}", f"{progress['numInputRows']:,}"]
        cells += [f"{progress['rejectedRows']:,}", f"{progress.get('lateRows', 0):,}"] if rejects else []
        cells += [f"{millis['triggerExecution']:,.0f}", *(f"{millis.get(name, 0):,.0f}" for name in PARTS)]
        table.add_row(*cells)
    return table


def standing(status: Status) -> str:
    """What is safe now, and what sinks have: each by how many epochs it is behind."""
    safe = ", ".join(f"{failure} {epoch:,}" for failure, epoch in status.safe.items())
    sinks = "".join(f"; {name} {_lag(status.epoch - epoch)}" for name, epoch in status.sinks.items())
    return f"safe after loss of: {safe}{sinks}"


def _lag(epochs: int) -> str:
    return "has all" if epochs <= 0 else f"{epochs:,} behind"
