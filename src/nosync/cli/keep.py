"""`nosync keep HOME [LADDER]` and `nosync pin HOME [NAME]`: which epochs of a home at rest stay readable."""

from pathlib import Path

import click

from nosync.cli.at import AT, epoch_meant
from nosync.cli.resting import resting_journal
from nosync.history.home import open as open_home
from nosync.journal import pins
from nosync.journal.entries import Keeping
from nosync.model.ladder import ladder_of

HOME = click.argument("home", type=click.Path(exists=True, file_okay=False, path_type=Path))
REMOTE = click.option("--remote", metavar="URL", help="That of the flow, where it has one.")


@click.command()
@HOME
@click.argument("ladder", required=False)
@REMOTE
def keep(home: Path, ladder: str | None, remote: str | None) -> None:
    """Say which epochs of the flow in HOME stay readable from now on: "all", "100 epochs", "7 days", or a LADDER such as
    "10 minutes: every epoch, 1 day: 1 minute". Without one, say what is kept.

    Of a flow that is running, `run.keep(...)` does it; for it, this is refused.
    """
    if ladder is not None:
        said = ladder_of(ladder).said
        with resting_journal(home, remote) as journal:
            journal.append(Keeping(said))
    image = open_home(home).image
    click.echo(f"keeps {image.keep or 'all'}")
    click.echo(f"every epoch from {image.kept.since} to {image.epoch} can be read, and {len(image.kept.among):,} before")
    for name, epoch in sorted(image.pins.items()):
        click.echo(f'pin "{name}" holds epoch {epoch}')


@click.command()
@HOME
@click.argument("name")
@AT
@click.option("--drop", is_flag=True, help="Drop the pin.")
@REMOTE
def pin(home: Path, name: str, at: str | None, drop: bool, remote: str | None) -> None:
    """Hold an epoch of the flow in HOME under a NAME, whatever its ladder says, until the pin is dropped."""
    epoch = epoch_meant(open_home(home), at)
    with resting_journal(home, remote) as journal:
        if drop:
            pins.unpin(journal, name)
        else:
            pins.pin(journal, name, epoch)
    click.echo(f'pin "{name}" is dropped' if drop else f'pin "{name}" holds epoch {epoch}')
