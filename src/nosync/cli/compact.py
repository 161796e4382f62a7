"""`nosync compact HOME`: what goes on behind a run, for a home at rest."""

from pathlib import Path

import click

from nosync.cli.knobs import knobs
from nosync.cli.output import size
from nosync.cli.resting import resting_journal
from nosync.history.home import open as open_home
from nosync.history.usage import Usage
from nosync.journal.names import LAYERS
from nosync.model.compaction import Knobs, compaction_of
from nosync.runtime.at_rest import compact as compact_home
from nosync.store.disk import LocalDisk


@click.command(short_help="Fold old layers of a flow at rest, and delete what its ladder does not keep.")
@click.argument("home", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--remote", metavar="URL", help="That of the flow, where it has one.")
@knobs
def compact(home: Path, remote: str | None, compaction: Knobs) -> None:
    """Fold the old layers of the flow in HOME together and delete what its ladder does not keep, here and on its remote. A run does that
    by itself; this is for a home that lies still, say after `nosync keep`. Every epoch that is kept stays readable.
    """
    before = _usage(home)
    with resting_journal(home, remote, whole=True) as journal:
        held = compact_home(journal, home, compaction_of(compaction))
    after, kept = _usage(home), open_home(home).image.kept
    click.echo(f"{before.files:,} files of layers, {size(before.bytes)}; now {after.files:,}, {size(after.bytes)}")
    click.echo(f"every epoch from {kept.since} on can be read, and {len(kept.among):,} before")
    if held:
        click.echo(f"{held:,} files are being read; they are deleted once their readers have ended, by the next run or this command")


def _usage(home: Path) -> Usage:
    sizes = LocalDisk(home).sizes(LAYERS)
    return Usage(len(sizes), sum(sizes.values()))
