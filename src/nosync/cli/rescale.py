"""`nosync rescale HOME N`: another number of shards for a home at rest."""

import time
from pathlib import Path

import click

from nosync.cli.resting import resting_journal
from nosync.history.home import open as open_home
from nosync.runtime.rescaling import check_shards
from nosync.runtime.rescaling import rescale as record


@click.command(short_help="Cut a flow at rest into more shards, or fewer.")
@click.argument("home", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("shards", type=int)
@click.option("--remote", metavar="URL", help="That of the flow, where it has one.")
def rescale(home: Path, shards: int, remote: str | None) -> None:
    """Cut the flow in HOME into SHARDS, more or fewer, from its next epoch on. Nothing is rewritten; every epoch stays readable.

    Of a flow that is running, `run.rescale(N)` does it; for it, this is refused.
    """
    check_shards(shards)
    before = open_home(home).status.shards
    if before == shards:
        click.echo(f"{shards} shards, as before")
        return
    with resting_journal(home, remote) as journal:
        epoch = record(journal, shards, time.time())
    click.echo(f"{shards} shards instead of {before} from epoch {epoch} on")
