"""The three acts of the demo: watch the views change, look back at an earlier epoch, sum up what was seen."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from nosync.demo.display import Display, side_by_side, table
from nosync.demo.feeder import Feeder
from nosync.demo.watching import SHOWN, Excerpt, Excerpted, Pace, PaceKeeper, excerpt

LOOK_SECONDS = 0.5
BACK = Excerpt("categories", "categories", "category", 6)
REJECTED = Excerpt("bids.rejected", "bids.rejected: lines that do not fit the schema", "epoch", 3)


def watch(run: Any, feeder: Feeder, console: Console, seconds: float) -> Pace:
    """Feed the flow for so long, and show every change. Events start to flow when the first epoch has warmed Spark up."""
    keeper = PaceKeeper()
    seen, excerpts = 0, [Excerpted(each.title, (), ()) for each in SHOWN]
    with Display(console) as display:
        while run.isActive and run.epoch == 0:
            time.sleep(LOOK_SECONDS)
        feeder.start()
        ends_at = time.monotonic() + seconds
        while run.isActive and time.monotonic() < ends_at:
            pace = keeper.look(run)
            if pace.epoch > seen:
                seen, excerpts = pace.epoch, [excerpt(run, each) for each in SHOWN]
            display.show(pace, excerpts)
            time.sleep(LOOK_SECONDS)
        feeder.stop()
        run.processAllAvailable()
        display.show(keeper.look(run), [excerpt(run, each) for each in SHOWN])
    return keeper.look(run)


def look_back(run: Any, console: Console, pace: Pace) -> int:
    """One view as of an earlier epoch beside the newest; gives that epoch."""
    earlier = max(1, pace.epoch // 3)
    console.rule(f"the same view as of epoch {earlier}, and now")
    then = replace(excerpt(run, BACK, at=earlier), title=f"categories as of epoch {earlier}")
    now = replace(excerpt(run, BACK), title=f"categories as of epoch {pace.epoch}")
    console.print(side_by_side([then, now]))
    if pace.rejected:
        console.print(table(excerpt(run, REJECTED)))
    return earlier


def sum_up(console: Console, pace: Pace, earlier: int, home: Path, times: Sequence[float], program: Path) -> None:
    """What was just seen, in a few sentences with the figures of this run."""
    middle = sorted(times)[len(times) // 2] if times else 0.0
    size = sum(path.stat().st_size for path in home.rglob("*") if path.is_file()) / 2**20
    console.rule("what you just saw")
    for sentence in (
        f"{pace.rows:,} events from three folders of JSON files went through in {pace.epoch} epochs, the middle one in {middle:,.0f} ms.",
        "Five views were kept up to date by ordinary PySpark and SQL: each epoch read only its new files and the groups they touch.",
        "`categories` is an aggregate over the view `auction_prices`, whose rows change all the time: changes are taken back and replaced.",
        f"{pace.rejected:,} malformed lines stopped nothing; they are in the view `bids.rejected`, with reason and file.",
        f"The view as of epoch {earlier} was read from the layers of the state; nothing was computed again. Every epoch stays readable.",
        f"The state of all views and their whole history takes {size:,.1f} MiB.",
        f"The program is {program}.",
    ):
        console.print(f"• {sentence}", highlight=False, markup=False)
