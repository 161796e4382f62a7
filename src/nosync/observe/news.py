"""What a flow says while it works: records of the logger `nosync.<flow>`, shown at a terminal where nobody has set up logging.

A line for each step of starting, one for the first epoch, then one for what was done since the line before, some seconds apart; and how to
go on, at the end. A program that configures `logging` gets the same records and decides by itself.
"""

import logging
import shlex
import sys
import time
from collections.abc import Mapping
from typing import Any

from nosync.model.errors import NosyncError
from nosync.model.events import Event
from nosync.model.identifiers import Epoch
from nosync.model.progress import Progress, in_a_line
from nosync.model.text import counted

ROOT = "nosync"
APART_SECONDS = 10.0
NUMBER = "compiled"  # `extra=` of records about views: which one it is
PROGRESS = {"progress": True}  # `extra=` of records about what has a display of its own in `nosync run`: epochs, recovery, the end


def logger(flow: str) -> logging.Logger:
    return logging.getLogger(f"{ROOT}.{flow}")


def is_progress(record: logging.LogRecord) -> bool:
    return "progress" in vars(record)


class Line(logging.Formatter):
    """`shop: epoch 1: 3 rows`."""

    def format(self, record: logging.LogRecord) -> str:
        name = record.name.partition(".")[2] or ROOT
        level = "" if record.levelno < logging.WARNING else f"{record.levelname.lower()}: "
        return f"{name}: {level}{record.getMessage()}"


def show_at_a_terminal() -> None:
    """Unless somebody has said how records shall be handled."""
    root = logging.getLogger(ROOT)
    if not root.handlers and root.level == logging.NOTSET and not logging.getLogger().handlers and sys.stderr.isatty():
        handler = logging.StreamHandler()
        handler.setFormatter(Line())
        root.addHandler(handler)
        root.setLevel(logging.INFO)


def say_compiled(log: logging.Logger, view: str, number: int) -> None:
    """How many a program has, only its end knows; who knows of an earlier one can say (`numbered`)."""
    log.info("view %s compiled (%d)", view, number, extra={NUMBER: number})


def numbered(record: logging.LogRecord, views: int) -> str:
    """What a record says, with the number of views there were before: `view totals compiled (2 of 8)`."""
    number = vars(record).get(NUMBER, views + 1)
    return record.getMessage() if number > views else f"{record.getMessage().removesuffix(')')} of {views})"


class News:
    """A listener that logs what people want to know."""

    def __init__(self, flow: str) -> None:
        self.log = logger(flow)
        self._since: list[Progress] = []
        self._said_at = 0.0
        self._home = ""
        self._warned: set[str] = set()

    def __call__(self, event: Event) -> None:
        match event.kind:
            case "started":
                self._home = str(event.facts["home"])
                self.log.info("%s", started(event.facts, event.epoch))
            case "progress" if event.progress is not None:
                self._progress(event.progress)
            case "idle":
                self._say_what_was_done()
            case "terminated":
                self._say_what_was_done()
                self.log.info("%s", ended(event.epoch, self._home, event.error), extra=PROGRESS)

    def _progress(self, progress: Progress) -> None:
        self._since.append(progress)
        for source in progress["sources"]:
            self._warn(source["description"], source["numInputRows"], source["rejectedRows"], progress["epoch"])
        if not self._said_at or time.monotonic() - self._said_at > APART_SECONDS:
            self._say_what_was_done()

    def _warn(self, source: str, rows: int, rejected: int, epoch: Epoch) -> None:
        """Once of each source: what fits in no row is more likely a wrong schema than wrong rows."""
        if rejected and rejected >= rows and source not in self._warned:
            self._warned.add(source)
            words = 'source "%s": no row of epoch %d fits its schema: all %s were rejected; run.view("%s.rejected") and `%s` say why'
            command = shlex.join(["nosync", "show", self._home, f"{source}.rejected"])
            self.log.warning(words, source, epoch, f"{rejected:,}", source, command)

    def _say_what_was_done(self) -> None:
        if self._since:
            words = in_a_line(self._since[0]) if len(self._since) == 1 else together(self._since)
            self.log.info("%s", words, extra=PROGRESS)
            self._since, self._said_at = [], time.monotonic()


def started(facts: Mapping[str, Any], epoch: Epoch) -> str:
    """What a run has before its first epoch."""
    counts = ", ".join(counted(number, noun) for noun in ("source", "view", "sink") if (number := facts[f"{noun}s"]))
    at = f"goes on after epoch {epoch}" if epoch else "begins"
    return f"{at}: {counts}, {counted(facts['shards'], 'shard')}, ready after {facts['seconds']:.1f} s"


def ended(epoch: Epoch, home: str, error: NosyncError | None) -> str:
    whole = f"the state is whole up to epoch {epoch}" if epoch else "there is no epoch yet"
    if error is not None:
        return f"failed, {whole}: {error.message}"
    return f"stopped after epoch {epoch}; start it again on {home} to go on"


def together(progress: list[Progress]) -> str:
    """Several epochs in one line."""
    rows, millis = (sum(one["numInputRows"] for one in progress), sum(one["durationMs"]["triggerExecution"] for one in progress))
    rejected = sum(one["rejectedRows"] for one in progress)
    first, last = progress[0]["epoch"], progress[-1]["epoch"]
    words = f"epochs {first} to {last}: {rows:,} rows, {millis / len(progress):,.0f} ms each"
    return f"{words}, {rejected:,} rejected" if rejected else words
