"""`nosync run FLOW.py`: runs the flow that a file defines, and shows what it does."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from nosync.cli.display import Display, Lines, LiveTable, Quiet, Saying, Tally
from nosync.cli.following import follow
from nosync.cli.knobs import knobs
from nosync.cli.program import load_flow
from nosync.cli.recovering import RecoveryDisplay
from nosync.history.home import open as open_home
from nosync.model.compaction import Knobs, compaction_of
from nosync.model.errors import NosyncError
from nosync.observe.news import is_progress
from nosync.runtime.change import CHOICES
from nosync.runtime.durability import durability_of
from nosync.runtime.run import Run
from nosync.runtime.trigger import trigger_of
from nosync.store.homes import refuse_foreign_folder


def _shards(context: click.Context, option: click.Parameter, said: str | None) -> int | str | None:
    if said is None or said == "auto":
        return said
    if not said.isdecimal() or not int(said):
        raise click.BadParameter(f"{said} is neither a number of shards nor auto")
    return int(said)


@click.command(short_help="Run the flow that a Python file defines.")
@click.argument("file", metavar="FLOW.py", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--home", required=True, type=click.Path(file_okay=False, path_type=Path), help="Folder of the state; made if missing.")
@click.option("--shards", callback=_shards, metavar="N|auto", help="Number of shards from here on; auto: by cores and load.")
@click.option("--available-now", is_flag=True, help="Process what is there, then end.")
@click.option("--trigger", metavar="DURATION", help='The least time between epochs, as "1 second".')
@click.option("--latency", metavar="DURATION", help="In which rows shall be seen: epochs are as rare as that allows.")
@click.option("--remote", metavar="URL", help="Also keep a copy there (s3://..., gs://..., az://..., file:///...).")
@click.option("--recover-within", metavar="DURATION", help='How soon a recovery from the remote shall be done, as "5s".')
@click.option(
    "--on-change", type=click.Choice(CHOICES), default="refuse", show_default=True, help="What becomes of state whose query has changed."
)
@knobs
@click.option("--standby", is_flag=True, help="Wait, ready, until the run that leads is no more; then go on in its place.")
@click.option("--quiet", "-q", is_flag=True, help="Show nothing but errors.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per epoch on stdout.")
def run(
    file: Path, home: Path, shards: int | str | None, available_now: bool, trigger: str | None, latency: str | None,
    remote: str | None, recover_within: str | None, on_change: str, standby: bool, quiet: bool, as_json: bool,
    compaction: Knobs,
) -> None:  # fmt: skip
    """Run the variable `flow` of FLOW.py. Ctrl-C stops after the current epoch; a second one at once.

    \b
    nosync run shop.py --home state/shop                    go on for ever, from where it stopped
    nosync run shop.py --home state/shop --available-now    do what is there, then end
    nosync run shop.py --home state/shop --json             an epoch a line, for programs
    nosync run shop.py --home state/shop --remote s3://bucket/shop --standby
    """
    if available_now + (trigger is not None) + (latency is not None) > 1:
        raise click.UsageError("--available-now, --trigger and --latency exclude each other.")
    options: dict[str, Any] = {"home": str(home), "remote": remote, "recover_within": recover_within, "on_change": on_change}
    options |= {"standby": True} if standby else {}
    options |= {"compaction": compaction} if compaction else {}
    options |= {"shards": shards} if shards is not None else {}
    options |= {"trigger": "availableNow"} if available_now else {"trigger": trigger} if trigger is not None else {}
    options |= {"trigger": {"latency": latency}} if latency is not None else {}
    trigger_of(options.get("trigger"))  # what is wrong with them is said before Spark starts
    durability_of(remote, recover_within, 1)
    compaction_of(compaction)
    refuse_foreign_folder(home)
    screen = Console(highlight=False)
    display: Display = Quiet() if quiet else LiveTable(screen) if screen.is_terminal and not as_json else Lines(as_json)
    with _saying(display, home):
        _run(file, home, options, display, as_json, screen.is_terminal)


def _run(file: Path, home: Path, options: dict[str, Any], display: Display, as_json: bool, terminal: bool) -> None:
    begun, quiet = time.monotonic(), isinstance(display, Quiet)
    display.say(f"loading {file}: Spark starts, then each view is compiled")
    flow = load_flow(file)
    views = flow.program().graph.views
    display.say(f"{flow.name}: {len(views)} views compiled after {time.monotonic() - begun:.1f} s; starting on {home}")
    started, tally = flow.start(**options), Tally()
    recovery = RecoveryDisplay(started, Console(stderr=True, highlight=False, quiet=quiet), as_json, quiet)

    def look() -> None:
        recovery.look()
        display.look(started.status)

    def report(progress: dict[str, Any]) -> None:
        tally.add(progress)
        display.epoch(progress)

    try:
        follow(started, report, look, display.say)
    finally:
        recovery.close()
        display.close()
    if not quiet:
        _summarise(tally, started, file, home, to_stderr=as_json or not terminal)


def _summarise(tally: Tally, started: Run, file: Path, home: Path, to_stderr: bool) -> None:
    for line in tally.summary(started.status, ["nosync", "run", str(file), "--home", str(home)], str(home)):
        click.echo(line, err=to_stderr)


def _views_before(home: Path) -> int:
    """How many views there will be, if the program is the one that the home is of."""
    try:
        return len(open_home(home).views)
    except NosyncError:
        return 0  # the start says what is wrong with it


@contextmanager
def _saying(display: Display, home: Path) -> Iterator[None]:
    """What the library logs is shown as steps, but for what has a display of its own."""
    logger, handler = logging.getLogger("nosync"), Saying(display.say, _views_before(home))
    handler.addFilter(lambda record: not is_progress(record))
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.WARNING if isinstance(display, Quiet) else logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
