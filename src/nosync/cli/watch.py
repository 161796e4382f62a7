"""`nosync watch HOME VIEW`: a view as it changes, without Spark and without disturbing the run that changes it."""

import time
from collections.abc import Iterator
from pathlib import Path

import click
import pyarrow as pa
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from nosync.cli.output import cell, console, visible, words_of
from nosync.cli.show import views_in
from nosync.cli.table import differences, distinct_names
from nosync.history.home import Home
from nosync.history.home import open as open_home


@click.command(short_help="Follow a view as it changes.")
@click.argument("home", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("view", shell_complete=views_in)
@click.option("--every", type=click.FloatRange(min=0.05), default=1.0, show_default=True, metavar="SECONDS", help="How often to look.")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="At most so many rows on a terminal.")
@click.option("--once", is_flag=True, help="Look once, then end.")
def watch(home: Path, view: str, every: float, limit: int, once: bool) -> None:
    """Follow VIEW in HOME: on a terminal its rows, marked + where they came and - where they went; else a line for each. Ctrl-C ends it.

    \b
    nosync watch state/shop spend
    nosync watch state/shop spend --every 0.2
    nosync watch state/shop spend | grep ann
    """
    screen = console()
    looks = _looks(home, view, every, once)
    try:
        if screen.is_terminal:
            _live(screen, looks, view, limit)
        else:
            _lines(looks)
    except KeyboardInterrupt:
        raise SystemExit(0) from None


def _looks(home: Path, view: str, every: float, once: bool) -> Iterator[tuple[Home, pa.Table | None, pa.Table]]:
    """Each time the view has moved on: the home, the rows before and now."""
    before: pa.Table | None = None
    epoch = -1
    while True:
        opened = open_home(home)
        if opened.epoch != epoch:
            now = distinct_names(opened.view(view))
            epoch = opened.epoch
            yield opened, before, now
            before = now
        if once:
            return
        time.sleep(every)


def _lines(looks: Iterator[tuple[Home, pa.Table | None, pa.Table]]) -> None:
    for opened, before, now in looks:
        for sign, row in differences(before, now):
            words = "  ".join(f"{name}={words_of(value)}" for name, value in zip(now.column_names, row))
            click.echo(visible(f"{sign} epoch {opened.epoch}  {words}"))


def _live(screen: Console, looks: Iterator[tuple[Home, pa.Table | None, pa.Table]], view: str, limit: int) -> None:
    with Live(console=screen, auto_refresh=False) as live:
        for opened, before, now in looks:
            title = f"{view} as of epoch {opened.epoch}: {now.num_rows:,} rows; {opened.status.message}"
            live.update(Group(Text(visible(title), style="bold"), marked(before, now, limit)), refresh=True)


def marked(before: pa.Table | None, now: pa.Table, limit: int) -> Table:
    """What changed comes first, then the other rows."""
    changed = list(differences(before, now)) if before is not None else []
    came = [repr(row) for sign, row in changed if sign == "+"]
    rest = []
    for row in zip(*(column.to_pylist() for column in now.columns)):
        if repr(row) in came:
            came.remove(repr(row))
        else:
            rest.append((" ", row))
        if len(rest) >= limit:
            break
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("", *now.column_names):
        table.add_column(Text(visible(name)))
    styles = {"+": "green", "-": "red", " ": ""}
    for sign, row in [*changed, *rest][:limit]:
        table.add_row(Text(sign, style=styles[sign]), *(_styled(cell(value), styles[sign]) for value in row))
    return table


def _styled(text: Text, style: str) -> Text:
    text.stylize(style)
    return text
