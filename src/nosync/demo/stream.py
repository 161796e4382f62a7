"""The stream of the demo, in a process of its own, since it will be killed: `python -m nosync.demo.stream FOLDER`.

Input is under FOLDER/in, the state under FOLDER/home and, copied, under FOLDER/remote; a sink writes to FOLDER/out. Reports what happens as
lines of JSON on stdout. A line on stdin asks for the end: then all input is processed, and once more by a run that nobody disturbs,
under FOLDER/again.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import nosync as ns
from nosync.demo.program import auction_flow
from nosync.model.identifiers import Epoch

LOOK_SECONDS = 0.1
Report = Callable[..., None]


def main() -> None:
    folder, report, begun = Path(sys.argv[1]), _reporter(), time.monotonic()
    asked = threading.Event()
    threading.Thread(target=_listen, args=(asked,), daemon=True).start()
    try:
        _disturbed(folder, report, begun, asked)
        _undisturbed(folder)
        report("compared")
    except ns.NosyncError as error:
        report("failed", message=str(error))
        raise SystemExit(1) from error


def _listen(asked: threading.Event) -> None:
    """Whoever started this process and is gone does not want it to go on."""
    if not sys.stdin.readline():
        os._exit(1)
    asked.set()


def _reporter() -> Report:
    """Writes to the stdout that the process began with. Spark's own goes where its stderr goes."""
    words = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def report(event: str, **facts: Any) -> None:
        print(json.dumps({"event": event, **facts}), file=words, flush=True)

    return report


def _disturbed(folder: Path, report: Report, begun: float, asked: threading.Event) -> None:
    """The stream that the demo watches, and kills."""
    flow = auction_flow(folder / "in", folder / "out")
    declared = time.monotonic()
    with flow.start(home=folder / "home", shards=2, remote=f"file://{(folder / 'remote').absolute()}") as run:
        recovered = asdict(run.recovered)
        seconds = time.monotonic() - declared
        report("started", sparkSeconds=declared - begun, recoverySeconds=seconds, recovered=recovered, epoch=run.epoch)
        reported = run.epoch
        while run.isActive and not asked.wait(LOOK_SECONDS):
            reported = _report_epochs(run, reported, report)
        run.processAllAvailable()
        _report_epochs(run, reported, report)
    report("finished", safe=run.safe)


def _report_epochs(run: ns.Run, reported: Epoch, report: Report) -> Epoch:
    for progress in run.recentProgress:
        if progress["epoch"] > reported:
            reported = progress["epoch"]
            millis = progress["durationMs"]["triggerExecution"]
            report("epoch", epoch=reported, rows=progress["numInputRows"], millis=millis, safe=run.safe)
    return reported


def _undisturbed(folder: Path) -> None:
    """The same program over the same files, in one go."""
    flow = auction_flow(folder / "in", folder / "again" / "out")
    flow.start(home=folder / "again" / "home", shards=2, trigger={"availableNow": True}).awaitTermination()


if __name__ == "__main__":
    main()
