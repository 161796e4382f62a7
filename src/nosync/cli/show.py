"""`nosync show HOME VIEW`: the rows of a view as of an epoch, without Spark and without the running flow."""

from pathlib import Path

import click
import pyarrow as pa

from nosync.cli.output import arrow_grid, console, print_json, visible
from nosync.history.home import Home
from nosync.history.home import open as open_home
from nosync.model.errors import Invalid
from nosync.model.moment import moment_of


def _when(context: click.Context, option: click.Parameter, said: str | None) -> str | None:
    try:
        moment_of(said, 0.0)
    except Invalid as error:
        raise click.BadParameter(str(error)) from None
    return said


@click.command()
@click.argument("home", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("view")
@click.option("--at", metavar="WHEN", callback=_when, help='An epoch, a time ("2026-05-01 21:05", "1 hour ago") or "safe"; else newest.')
@click.option("--limit", type=click.IntRange(min=0), default=20, show_default=True, help="At most so many rows.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, rows as objects.")
def show(home: Path, view: str, at: str | None, limit: int, as_json: bool) -> None:
    """The rows of VIEW in HOME, as of the newest epoch or of the one given."""
    opened = open_home(home)
    # The epoch is fixed before reading: a running flow may go on meanwhile.
    epoch = opened.resolve(at) or opened.epoch
    rows, total = _first(opened, view, epoch, limit)
    if as_json:
        print_json({"view": view, "epoch": epoch, "total": total, "rows": rows.to_pylist()})
        return
    screen = console()
    screen.print(f"{visible(view)} as of epoch {epoch}: {rows.num_rows:,} of {total:,} rows", markup=False)
    screen.print(arrow_grid(rows))


def _first(home: Home, view: str, epoch: int, limit: int) -> tuple[pa.Table, int]:
    """The first rows, and how many there are in all; the view is read block by block."""
    kept: list[pa.RecordBatch] = []
    total = 0
    for batch in home.batches(view, epoch):
        kept.append(batch.slice(0, max(limit - total, 0)))
        total += batch.num_rows
    return pa.Table.from_batches(kept, home.schema(view)), total
