"""`nosync skip HOME SOURCE FILE...`: sets files aside for good, on record, so that a flow can go on without them."""

import time
from collections.abc import Iterable
from pathlib import Path

import click

from nosync.history.home import Home
from nosync.history.home import open as open_home
from nosync.journal.entries import Opened, Skipped
from nosync.journal.journal import Journal
from nosync.journal.names import record_name
from nosync.model.errors import Invalid
from nosync.model.identifiers import NO_EPOCH, Epoch, RecordNumber
from nosync.model.run import this_process
from nosync.sources.listing import entries_in
from nosync.store.disk import LocalDisk
from nosync.store.objects import open_remote


@click.command(short_help="Leave files out that are gone for good.")
@click.argument("home", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("source")
@click.argument("files", nargs=-1, required=True)
@click.option("--remote", metavar="URL", help="That of the flow, where it has one.")
def skip(home: Path, source: str, files: tuple[str, ...], remote: str | None) -> None:
    """Leave FILES of SOURCE out of everything that is computed from now on: for input that is gone or changed and cannot be had again.

    FILES are paths, or names below the folder of the source. Results that are there stay until they are needed again; then all from the
    epoch of the file on is computed without it. A run that is going on this home is fenced: start it again.
    """
    opened = open_home(home)
    names = _names(opened, source, files)
    disk, now = LocalDisk(home), time.time()
    journal = Journal(disk, open_remote(remote) if remote else None, this_process(now))
    journal.append(Skipped(source, names, now))
    records = [record_name(RecordNumber(number)) for number in range(journal.chain.number + 1, journal.number + 1)]
    disk.sync_files(records)
    disk.sync_folders(records)
    while journal.remote is not None and journal.shipped < journal.number:
        journal.ship()
    for name, epoch in names.items():
        click.echo(f'"{name}" of "{source}" is set aside; ' + (f"epoch {epoch} had it" if epoch else "no epoch had it"))


def _names(home: Home, source: str, files: Iterable[str]) -> dict[str, Epoch]:
    """The files by the names that the source knows them by, with the epochs that have taken them."""
    folders = home.image.declared.folders if home.image.declared else {}
    if source not in folders:
        raise Invalid(f'there is no source of files "{source}"', hint=f"There are: {', '.join(folders) or 'none'}.")
    names = [_below(Path(folders[source]), file) for file in files]
    epochs = _epochs([*home.past.openings(), *home.image.opened.values()], source)
    return {name: epochs.get(name, NO_EPOCH) for name in names}


def _below(folder: Path, file: str) -> str:
    """The name below the folder; `Invalid` for a file that lies elsewhere."""
    for path in (folder / file, Path(file).absolute()):
        if path.is_relative_to(folder) and ".." not in path.parts:
            return str(path.relative_to(folder))
    raise Invalid(f'"{file}" is not in "{folder}"', hint="Give a file of the source, by its path or by its name below the folder.")


def _epochs(openings: Iterable[Opened], source: str) -> dict[str, Epoch]:
    """By file, the epoch that has taken it."""
    return {file.name: entry.epoch for entry in openings for file in entries_in(entry.slices.get(source, {}))}
