"""The acts of the demo: watch the views change, kill the stream, see it come back, compare with a run that nobody disturbed, look back."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

import nosync as ns
from nosync.demo.display import Display, side_by_side, table
from nosync.demo.process import StreamProcess
from nosync.demo.proof import Compared, compare_sinks, compare_views
from nosync.demo.watching import SHOWN, Excerpt, Excerpted, Snapshot, excerpt, snapshot_of
from nosync.model.identifiers import Epoch

LOOK_SECONDS = 0.5
KILL_WITHIN_SECONDS = 3.0
BACK = Excerpt("categories", "categories", "category", 6)
REJECTED = Excerpt("bids.rejected", "bids.rejected: lines that do not fit the schema", "epoch", 3)


class Watch:
    """Shows the state of the home again and again, whoever writes to it."""

    def __init__(self, home: Path, display: Display) -> None:
        self._home, self._display = home, display
        self._seen, self._excerpts = 0, [Excerpted(each.title, (), ()) for each in SHOWN]
        self._reported: list[dict[str, Any]] = []
        self.pace = Snapshot()

    def until(self, stream: StreamProcess, done: Callable[[], bool]) -> None:
        """Until something is so. Raises if the stream fails meanwhile."""
        while not done():
            self.show(stream)
            stream.check()
            time.sleep(LOOK_SECONDS)
        self.show(stream)

    def show(self, stream: StreamProcess) -> None:
        try:
            home = ns.open(self._home)
        except ns.Invalid:
            return  # nothing is there yet
        self._reported = list(stream.epochs) or self._reported  # a stream that has just come back has reported nothing yet
        self.pace = snapshot_of(home.status, self._reported, stream.safe or self.pace.safe)
        if home.epoch > self._seen:
            self._seen, self._excerpts = home.epoch, [excerpt(home, each) for each in SHOWN]
        self._display.show(self.pace, self._excerpts)


@dataclass(frozen=True)
class Crash:
    """Where the stream was when it was killed: `epoch` was whole, `opened` had its input recorded and was not finished."""

    process: int
    epoch: Epoch
    opened: dict[Epoch, Any]


@dataclass(frozen=True)
class Return:
    """How the stream came back: after so many seconds, and its report when it ran again."""

    seconds: float
    report: dict[str, Any]


def kill(stream: StreamProcess, home: Path) -> Crash:
    """In the middle of an epoch, if there is one soon."""
    until = time.monotonic() + KILL_WITHIN_SECONDS
    while ns.open(home).image.unfinished() is None and time.monotonic() < until:
        pass
    stream.kill()
    image = ns.open(home).image
    return Crash(stream.id, image.epoch, {epoch: entry.slices for epoch, entry in image.opened.items() if epoch > image.epoch})


def describe_crash(crash: Crash) -> str:
    under_way = f"in the middle of epoch {min(crash.opened)}" if crash.opened else f"after epoch {crash.epoch}"
    return f"kill -9 {crash.process}: the stream is dead, {under_way}. Files keep coming, views stay readable; it is started again."


def describe_return(crash: Crash, back: Return, home: Path) -> list[str]:
    """What came from where when the stream came back."""
    seconds, report, recovered = back.seconds, back.report, back.report["recovered"]
    opened = ns.open(home).image.opened
    again = [epoch for epoch, slices in crash.opened.items() if epoch in opened and opened[epoch].slices == slices]
    replayed = f"epoch {', '.join(map(str, again))} computed again from the input recorded for it" if again else "no epoch was under way"
    first = seconds - report["sparkSeconds"] - report["recoverySeconds"]
    return [
        f"back after {seconds:.1f} s: {report['sparkSeconds']:.1f} s until Spark was up, {report['recoverySeconds']:.1f} s to take over "
        f"and look, {max(first, 0.0):.1f} s for the first epoch of a cold Spark.",
        f"from the log: the state as of epoch {report['epoch']}, {recovered['layers']} layers. Recomputed: {recovered['recomputed']} "
        f"layers. Replayed: {replayed}.",
    ]


def prove(folder: Path) -> list[Compared]:
    """All outputs beside those of the undisturbed run."""
    views = compare_views(ns.open(folder / "home"), ns.open(folder / "again" / "home"))
    return [*views, compare_sinks("hot_log (Parquet files, added up)", folder / "out", folder / "again" / "out")]


def show_proof(console: Console, compared: Sequence[Compared]) -> None:
    console.rule("killed, and undisturbed: the same program over the same files")
    rows = tuple((one.name, one.rows, one.undisturbed_rows, f"{one.different} differ" if one.different else "equal") for one in compared)
    console.print(table(Excerpted("", ("output", "rows, killed and resumed", "rows, undisturbed", "row for row"), rows)))


def look_back(console: Console, home: ns.Home, rejected: int) -> Epoch:
    """One view as of an earlier epoch beside the newest; gives that epoch."""
    earlier = Epoch(max(1, home.epoch // 3))
    console.rule(f"the same view as of epoch {earlier}, and now")
    then = replace(excerpt(home, BACK, at=earlier), title=f"categories as of epoch {earlier}")
    now = replace(excerpt(home, BACK), title=f"categories as of epoch {home.epoch}")
    console.print(side_by_side([then, now]))
    if rejected:
        console.print(table(excerpt(home, REJECTED)))
    return earlier


def sum_up(console: Console, pace: Snapshot, crash: Crash, compared: Sequence[Compared], earlier: int, back: Return, program: Path) -> None:
    """What was just seen, in a few sentences with the figures of this run."""
    same = "Nothing was lost and nothing came twice: every row of every output is as in a run that nobody disturbed."
    if any(one.different for one in compared):
        same = "The outputs are NOT those of a run that nobody disturbed. That is a bug: please report it."
    console.rule("what you just saw")
    for sentence in (
        f"{pace.rows:,} events from three folders of JSON files went through in {pace.epoch} epochs; five views were kept up to date by "
        "ordinary PySpark and SQL.",
        f"The stream was killed after epoch {crash.epoch} and was back after {back.seconds:.1f} s. Taking over and looking around took "
        f"{back.report['recoverySeconds']:.1f} s of it; the rest is Spark, starting cold.",
        same,
        "No epoch waited for a disk or a network: layers were synced and copied to the remote behind the stream.",
        f"{pace.rejected:,} malformed lines stopped nothing; they are in the view `bids.rejected`, with reason and file.",
        f"The view as of epoch {earlier} was read from the layers of the state; nothing was computed again. Every epoch stays readable.",
        f"The program is {program}.",
    ):
        console.print(f"• {sentence}", highlight=False, markup=False)
