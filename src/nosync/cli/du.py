"""`nosync du HOME`: where the bytes are, and what keeps them."""

import time
from pathlib import Path
from typing import Any

import click

from nosync.cli.output import console, grid, print_json, size, visible
from nosync.history.home import open as open_home
from nosync.history.usage import Keeper, Usage, by_purpose, by_trace, keepers
from nosync.journal.image import Image
from nosync.model.identifiers import Epoch
from nosync.model.text import iso_seconds
from nosync.store.disk import LocalDisk
from nosync.store.objects import open_remote
from nosync.tiers.reader_leases import leases_of_others


@click.command()
@click.argument("home", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--remote", metavar="URL", help="What the remote has instead; there, most files are compressed.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def du(home: Path, remote: str | None, as_json: bool) -> None:
    """Files and bytes of the flow in HOME by purpose and by trace, and what keeps them: the ladder, pins, sinks that have yet to get
    an epoch, recoveries, readers."""
    image, safe = _looked_at(home)
    sizes = open_remote(remote).sizes("") if remote else LocalDisk(home).sizes("")
    facts = _facts(image, sizes)
    facts["keepers"] = [_said(one) for one in keepers(image, sizes, safe, leases_of_others(LocalDisk(home), time.time()))]
    if as_json:
        print_json(facts)
    else:
        _print(facts)


def _looked_at(home: Path) -> tuple[Image, dict[str, Epoch]]:
    """Nothing is held any more when this is back: a lease of ours would be counted."""
    opened = open_home(home)
    return opened.image, opened.safe


def _facts(image: Image, sizes: dict[str, int]) -> dict[str, Any]:
    return {
        "purposes": {purpose: _plain(usage) for purpose, usage in by_purpose(image, sizes).items()},
        "traces": {name: {"newest": _plain(state), "history": _plain(past)} for name, (state, past) in sorted(by_trace(image).items())},
        "keep": image.keep or "all",
        "everyEpochSince": image.kept.since,
        "epochsBefore": len(image.kept.among),
        "pins": dict(sorted(image.pins.items())),
    }


def _said(keeper: Keeper) -> dict[str, Any]:
    facts: dict[str, Any] = {"kind": keeper.kind, "reason": keeper.reason}
    if keeper.kind == "reader":
        return facts | {"until": iso_seconds(keeper.until)}
    return facts | {"first": keeper.first, "last": keeper.last, **_plain(keeper.usage)}


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
    screen.print(f"kept: {facts['keep']}: every epoch from {facts['everyEpochSince']} on, {facts['epochsBefore']:,} before")
    for one in facts["keepers"]:
        screen.print(f"kept: {_keeper(one)}", markup=False)


def _keeper(facts: dict[str, Any]) -> str:
    """A line: `epochs 18 to 20: sink "out" has yet to get them (3 files, 1.2 KiB)`."""
    if facts["kind"] == "reader":
        return f"{visible(facts['reason'])}, until {facts['until']}"
    epochs = f"epoch {facts['first']}" if facts["first"] == facts["last"] else f"epochs {facts['first']} to {facts['last']}"
    used = f" ({facts['files']:,} files, {size(facts['bytes'])})" if facts["files"] else ""
    return f"{epochs}: {visible(facts['reason'])}{used}"


def _figures(usage: dict[str, int]) -> tuple[int, str]:
    return usage["files"], size(usage["bytes"])
