"""`nosync show HOME VIEW`: the rows of a view as of an epoch, without Spark and without the running flow."""

from collections.abc import Sequence
from pathlib import Path

import click
import pyarrow as pa

from nosync.cli.at import AT, epoch_meant
from nosync.cli.output import console, visible
from nosync.cli.table import distinct_names, only, printed, sorted_by, where
from nosync.history.home import Home
from nosync.history.home import open as open_home
from nosync.model.identifiers import Epoch

FORMATS = ("table", "csv", "json", "parquet")
SHOWN = 20  # rows of a table; in other formats, all


def views_in(context: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """For completion: the views of the home that was named before."""
    try:
        return [name for name in open_home(context.params["home"]).views if name.startswith(begun)]
    except Exception:  # a shell that completes is no place for errors
        return []


def _names(said: Sequence[str]) -> list[str]:
    return [name.strip() for one in said for name in one.split(",") if name.strip()]


@click.command(short_help="The rows of a view, now or as of an epoch.")
@click.argument("home", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("view", shell_complete=views_in)
@AT
@click.option("--where", "condition", metavar="SQL", help="Only rows that satisfy this.")
@click.option("--sort", "order", metavar="COLUMN[,...]", multiple=True, help='By these; "-spent" or "spent desc" for the largest first.')
@click.option("--columns", metavar="A,B", multiple=True, help="Only these, in this order.")
@click.option("--limit", type=click.IntRange(min=0), help=f"At most so many rows: a table has {SHOWN} unless told, other formats have all.")
@click.option("--format", "form", type=click.Choice(FORMATS), default="table", show_default=True)
@click.option("--output", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Write a file (csv, parquet).")
@click.option("--json", "as_json", is_flag=True, help="The same as --format json: one object, rows as objects.")
def show(
    home: Path, view: str, at: str | None, condition: str | None, order: tuple[str, ...], columns: tuple[str, ...], limit: int | None,
    form: str, output: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """The rows of VIEW in HOME, as of the newest epoch or of the one given.

    \b
    nosync show state/shop spend
    nosync show state/shop spend --at "1 hour ago" --sort -spent --limit 3
    nosync show state/shop spend --where "user like 'a%'" --columns user,spent
    nosync show state/shop spend --format parquet --output spend.parquet
    """
    opened = open_home(home)
    # The epoch is fixed before reading: a running flow may go on meanwhile.
    epoch = epoch_meant(opened, at)
    form = "json" if as_json else form
    most = SHOWN if limit is None and form == "table" else limit
    if condition is None and not order:
        rows, total = _first(opened, view, epoch, most)
    else:
        rows = distinct_names(opened.view(view, epoch))
        rows = sorted_by(where(rows, condition) if condition is not None else rows, _names(order))
        rows, total = rows if most is None else rows.slice(0, most), rows.num_rows
    rows = only(rows, _names(columns))
    if form == "table" and output is None:
        console().print(f"{visible(view)} as of epoch {epoch}: {rows.num_rows:,} of {total:,} rows", markup=False)
    printed(rows, form, output, {"view": view, "epoch": epoch, "total": total})


def _first(home: Home, view: str, epoch: Epoch, limit: int | None) -> tuple[pa.Table, int]:
    """The first rows, and how many there are in all; the view is read block by block."""
    kept: list[pa.RecordBatch] = []
    total = 0
    for batch in home.batches(view, epoch):
        kept.append(batch if limit is None else batch.slice(0, max(limit - total, 0)))
        total += batch.num_rows
    return distinct_names(pa.Table.from_batches(kept, home.schema(view))), total
