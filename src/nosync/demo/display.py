"""Draws the demo: a picture that changes in place on a terminal, a line an epoch elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from types import TracebackType
from typing import Any

from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from nosync.demo.watching import Excerpted, Snapshot

WIDEST = 48


class Display:
    """Shows one state of the run after the other; use it as a context manager, so that the terminal is left in order."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None
        self._reported = 0
        self._notes: list[str] = []

    def __enter__(self) -> Display:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._live:
            self._live.stop()

    def show(self, pace: Snapshot, excerpts: Sequence[Excerpted]) -> None:
        """The newest state; without a terminal only when the stream has reported a new epoch."""
        if self._live:
            notes = [Text(f"  {note}") for note in self._notes]
            self._live.update(Group(headline(pace), *notes, side_by_side(excerpts)), refresh=True)
        elif pace.last_epoch > self._reported:
            self._console.print(line(pace, excerpts), markup=False, highlight=False)
            self._reported = pace.last_epoch

    def note(self, text: str) -> None:
        """Something that happened; stays in sight."""
        self._notes.append(text)
        if not self._live:
            self._console.print(f"-- {text}", markup=False, highlight=False)


def headline(pace: Snapshot) -> Panel:
    """Epoch, totals and speed."""
    facts = (
        ("epoch", f"{pace.epoch}"),
        ("events so far", f"{pace.rows:,}"),
        ("set aside as malformed", f"{pace.rejected:,}"),
        ("last epoch", f"{pace.last_rows:,} rows in {pace.last_ms:,.0f} ms"),
        ("safe against loss of", ", ".join(f"{kind} {epoch}" for kind, epoch in pace.safe.items()) or "nothing yet"),
    )
    text = Text("   ").join(Text.assemble((f"{name} ", "dim"), (value, "bold")) for name, value in facts)
    return Panel(text, title="a live auction", title_align="left")


def line(pace: Snapshot, excerpts: Sequence[Excerpted]) -> str:
    """The same in one line: the top row of the first excerpt stands for all."""
    last = f"epoch {pace.last_epoch:>4}  {pace.last_rows:>6,} rows  {pace.last_ms:>6,.0f} ms"
    text = f"{last}  {pace.rows:>9,} events so far  {pace.rejected} malformed"
    if excerpts and excerpts[0].rows:
        first = excerpts[0]
        text += "  hottest: " + ", ".join(f"{name} {cell(value)}" for name, value in zip(first.columns, first.rows[0]))
    return text


def table(shown: Excerpted) -> RenderableType:
    """An excerpt with its title; numbers flush right."""
    if not shown.rows:
        return Text(f"{shown.title}: nothing yet", style="dim")
    drawn = Table(title=shown.title, title_justify="left", title_style="bold", min_width=44)
    for index, name in enumerate(shown.columns):
        numeric = not isinstance(shown.rows[0][index], str | datetime)
        drawn.add_column(name, justify="right" if numeric else "left")
    for row in shown.rows:
        drawn.add_row(*(cell(value) for value in row))
    return drawn


def side_by_side(excerpts: Sequence[Excerpted]) -> RenderableType:
    """As many next to each other as there is room for."""
    return Columns([table(each) for each in excerpts], padding=(0, 4))


def cell(value: Any) -> str:
    """A value as people read it."""
    if isinstance(value, datetime):
        return f"{value:%H:%M}"
    text = f"{value:,}" if isinstance(value, int) else str(value)
    return text if len(text) <= WIDEST else f"{text[: WIDEST // 2 - 1]}…{text[-WIDEST // 2 :]}"
