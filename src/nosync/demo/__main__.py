"""`python -m nosync.demo`: an auction streams through a flow for half a minute, live; then one view as of an earlier epoch.

Everything lives in a temporary folder that is removed at the end, unless `--folder` names one to keep.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click
from rich.console import Console

from nosync.demo import program
from nosync.demo.feeder import Feeder
from nosync.demo.story import look_back, sum_up, watch
from nosync.model.errors import NosyncError


@click.command()
@click.option("--seconds", default=30.0, show_default=True, type=click.FloatRange(min=1), help="How long events keep coming.")
@click.option("--seed", default=1, show_default=True, help="Another seed is another auction.")
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), help="Keep input and state here.")
def main(seconds: float, seed: int, folder: Path | None) -> None:
    """A live auction: people, auctions and bids, and views of them that change epoch by epoch."""
    console = Console() if sys.stdout.isatty() else Console(width=140)
    try:
        if folder:
            play(console, folder, seconds, seed)
        else:
            with tempfile.TemporaryDirectory(prefix="nosync-demo-", ignore_cleanup_errors=True) as temporary:
                play(console, Path(temporary), seconds, seed)
    except NosyncError as error:
        raise click.ClickException(str(error)) from error


def play(console: Console, folder: Path, seconds: float, seed: int) -> None:
    """The whole demo in a folder of its own: input under `in`, state under `home`."""
    console.print("starting Spark ...", style="dim")
    feeder = Feeder(folder / "in", seed, events_per_file=2_000, pause_seconds=0.5)
    feeder.write()
    with _stderr_to(folder / "spark.log"):
        flow = program.auction_flow(folder / "in")
    with flow.start(home=str(folder / "home"), shards=2) as run:
        pace = watch(run, feeder, console, seconds)
        earlier = look_back(run, console, pace)
        times = [progress["durationMs"]["triggerExecution"] for progress in run.recentProgress]
    sum_up(console, pace, earlier, folder / "home", times, Path(program.__file__))


@contextlib.contextmanager
def _stderr_to(path: Path) -> Iterator[None]:
    """While Spark starts: its JVM keeps the stderr it finds, and would write over the display for the rest of its life."""
    saved = os.dup(2)
    with path.open("ab") as log:
        os.dup2(log.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)


if __name__ == "__main__":
    main()
