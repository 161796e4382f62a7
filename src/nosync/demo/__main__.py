"""`python -m nosync.demo`: an auction streams through a flow, live, and is killed in the middle.

It comes back, and its outputs are compared with those of a run that nobody disturbed; then one view as of an earlier epoch.

Everything lives in a temporary folder that is removed at the end, unless `--folder` names one to keep.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import click
from rich.console import Console

import nosync as ns
from nosync.demo import program
from nosync.demo.display import Display
from nosync.demo.feeder import Feeder
from nosync.demo.process import StreamProcess
from nosync.demo.story import Crash, Return, Watch, describe_crash, describe_return, kill, look_back, prove, show_proof, sum_up

WIDTH = 140
FEWEST_EPOCHS = 3


@click.command()
@click.option("--seconds", default=20.0, show_default=True, type=click.FloatRange(min=1), help="How long the stream is watched.")
@click.option("--seed", default=1, show_default=True, help="Another seed is another auction.")
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), help="Keep input and state here; an empty or new folder.")
def main(seconds: float, seed: int, folder: Path | None) -> None:
    """A live auction: views that change epoch by epoch, through a kill -9 of the stream."""
    console = Console() if sys.stdout.isatty() else Console(width=WIDTH)
    try:
        if folder:
            equal = play(console, folder, seconds, seed)
        else:
            with tempfile.TemporaryDirectory(prefix="nosync-demo-", ignore_cleanup_errors=True) as temporary:
                equal = play(console, Path(temporary), seconds, seed)
    except ns.NosyncError as error:
        raise click.ClickException(str(error)) from error
    raise SystemExit(0 if equal else 1)


def play(console: Console, folder: Path, seconds: float, seed: int) -> bool:
    """The whole demo in a folder of its own; says whether all outputs were equal."""
    if (folder / "home").exists():
        raise ns.Invalid(f'"{folder}" already holds a demo', hint="Name another folder.")
    console.print("starting Spark in a process of its own ...", style="dim")
    feeder = Feeder(folder / "in", seed, events_per_file=2_000, pause_seconds=0.5)
    feeder.write()
    home = folder / "home"
    with Display(console) as display:
        watch = Watch(home, display)
        crash, back = _through_a_crash(folder, feeder, watch, display, seconds)
    compared = prove(folder)
    show_proof(console, compared)
    earlier = look_back(console, ns.open(home), watch.pace.rejected)
    sum_up(console, watch.pace, crash, compared, earlier, back, Path(program.__file__))
    return not any(one.different for one in compared)


def _through_a_crash(folder: Path, feeder: Feeder, watch: Watch, display: Display, seconds: float) -> tuple[Crash, Return]:
    """Half of the time before the crash, half after it. Gives the crash and the return."""
    home = folder / "home"
    stream = StreamProcess(folder)
    try:
        watch.until(stream, lambda: len(stream.epochs) > 0)
        feeder.start()
        _watch_for(seconds / 2, watch, stream)
        crash = kill(stream, home)
        killed_at = time.monotonic()
        display.note(describe_crash(crash))
        stream = StreamProcess(folder)
        watch.until(stream, lambda: len(stream.epochs) > 0)
        back = Return(time.monotonic() - killed_at, stream.started)
        for note in describe_return(crash, back, home):
            display.note(note)
        _watch_for(seconds / 2, watch, stream)
        feeder.stop()
        stream.finish()
        watch.until(stream, lambda: bool(stream.finished))
        display.note("the stream has ended; the same program now runs over the same files undisturbed, in another home ...")
        watch.until(stream, lambda: stream.ended)
        stream.check()
        return crash, back
    finally:
        feeder.stop()
        stream.close()


def _watch_for(seconds: float, watch: Watch, stream: StreamProcess) -> None:
    """At least some epochs, however slow the machine."""
    until = time.monotonic() + seconds
    watch.until(stream, lambda: time.monotonic() >= until and len(stream.epochs) >= FEWEST_EPOCHS)


if __name__ == "__main__":
    main()
