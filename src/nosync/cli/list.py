"""`nosync list DIR`: the homes below a folder, and how each stands."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from nosync.cli.output import console, grid, print_json, size
from nosync.history.home import open as open_home
from nosync.model.errors import NosyncError

DEEP = 4  # folders below the one given


@click.command(name="list", short_help="Find the homes of flows below a folder.")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path), default=Path("."))
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def list_homes(folder: Path, as_json: bool) -> None:
    """Find the homes of flows in FOLDER (default: here) and below it.

    \b
    nosync list
    nosync list state --json
    """
    found = [_facts(home) for home in _homes(folder)]
    if as_json:
        print_json({"folder": str(folder), "homes": found})
    elif not found:
        click.echo(f'no home of a flow in "{folder}", {DEEP} folders deep', err=True)
    else:
        rows = [(one["home"], one["flow"], one["now"], one["epoch"], size(one["bytes"])) for one in found]
        console().print(grid(("home", "flow", "now", "epoch", "size"), rows, numeric=(False, False, False, True, True)))


def _homes(folder: Path) -> Iterator[Path]:
    for place, folders, _ in os.walk(folder):
        folders.sort()
        if {"journal", "runs"} <= set(folders):
            folders.clear()
            yield Path(place)
        elif len(Path(place).relative_to(folder).parts) >= DEEP:
            folders.clear()
        folders[:] = [name for name in folders if not name.startswith(".")]


def _facts(home: Path) -> dict[str, Any]:
    try:
        status = open_home(home).status
        return {"home": str(home), "flow": status.flow, "now": status.phase, "epoch": status.epoch, "bytes": status.bytes}
    except NosyncError as error:
        return {"home": str(home), "flow": "?", "now": error.message, "epoch": 0, "bytes": 0}
