"""`nosync du HOME`: where the bytes are, and what keeps them."""

from pathlib import Path
from typing import Any

import click

from nosync.cli.output import console, grid, print_json, size
from nosync.history.home import open as open_home
from nosync.history.usage import Usage, by_purpose, by_trace
from nosync.journal.image import Image
from nosync.store.disk import LocalDisk
from nosync.store.objects import open_remote


@click.command()
@click.argument("home", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--remote", metavar="URL", help="What the remote has instead; there, most files are compressed.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def du(home: Path, remote: str | None, as_json: bool) -> None:
    """Files and bytes of the flow in HOME by purpose and by trace, and which epochs they are kept for."""
    image = open_home(home).image
    sizes = open_remote(remote).sizes("") if remote else LocalDisk(home).sizes("")
    facts = _facts(image, sizes)
    if as_json:
        print_json(facts)
    else:
        _print(facts)


def _facts(image: Image, sizes: dict[str, int]) -> dict[str, Any]:
    return {
        "purposes": {purpose: _plain(usage) for purpose, usage in by_purpose(image, sizes).items()},
        "traces": {name: {"newest": _plain(state), "history": _plain(past)} for name, (state, past) in sorted(by_trace(image).items())},
        "keep": image.keep or "all",
        "everyEpochSince": image.kept.since,
        "epochsBefore": len(image.kept.among),
        "pins": dict(sorted(image.pins.items())),
    }


def _plain(usage: Usage) -> dict[str, int]:
    return {"files": usage.files, "bytes": usage.bytes}


def _print(facts: dict[str, Any]) -> None:
    screen = console()
    purposes = [(name, one["files"], size(one["bytes"])) for name, one in facts["purposes"].items()]
    screen.print(grid(("for", "files", "bytes"), purposes, numeric=[False, True, True]))
    screen.print()
    rows = [(name, *_figures(one["newest"]), *_figures(one["history"])) for name, one in facts["traces"].items()]
    heads = ("trace", "files", "newest state", "files", "history")
    screen.print(grid(heads, rows, numeric=[False, True, True, True, True]))
    screen.print()
    pins = "".join(f', pin "{name}" on epoch {epoch}' for name, epoch in facts["pins"].items())
    screen.print(f"kept: {facts['keep']}: every epoch from {facts['everyEpochSince']} on, {facts['epochsBefore']:,} before{pins}")


def _figures(usage: dict[str, int]) -> tuple[int, str]:
    return usage["files"], size(usage["bytes"])
