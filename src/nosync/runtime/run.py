"""A running flow, as PySpark users know a streaming query."""

import logging
import re
import threading
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from pyspark.sql import DataFrame, SparkSession

from nosync.duties.tending import Tending
from nosync.graph.traces import feeders
from nosync.history.home import Past, covers_at, find_view
from nosync.history.moments import epoch_at
from nosync.model.errors import Corrupt, Internal, Invalid, NosyncError, Unavailable
from nosync.model.identifiers import Epoch
from nosync.model.moment import At
from nosync.model.sink import Promise
from nosync.observe.drawing import drawn
from nosync.observe.figures import figures_of
from nosync.observe.text import in_words
from nosync.recovery.restore import Recovered
from nosync.recovery.suspicion import suspect
from nosync.runtime.change import Changed
from nosync.runtime.durability import DURABILITY, Durability
from nosync.runtime.opener import Opener
from nosync.runtime.program import Program, record_of
from nosync.runtime.stepping import Stepping
from nosync.runtime.takeover import Takeover
from nosync.spark.read import view_frame
from nosync.store.objects import open_remote

IDLE_SECONDS = 0.01
STALL_SECONDS = (0.2, 5.0)
DRAIN_SECONDS = 30.0
log = logging.getLogger("nosync")
UNITS = {"millisecond": 1e-3, "second": 1.0, "minute": 60.0, "hour": 3600.0}


@dataclass(frozen=True)
class Trigger:
    """When epochs start: as soon as there is input (`seconds` 0), at most every so often, or until all that is there now is done."""

    seconds: float = 0.0
    once: bool = False


def trigger_of(given: dict[str, Any] | None) -> Trigger:
    """Reads `trigger=` as `DataStreamWriter.trigger` takes it: {"processingTime": "1 second"} or {"availableNow": True}."""
    if not given:
        return Trigger()
    if given == {"availableNow": True}:
        return Trigger(once=True)
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(millisecond|second|minute|hour)s?\s*", str(given.get("processingTime", "")))
    if len(given) != 1 or match is None:
        raise Invalid(f"trigger {given} is not understood", hint='Pass {"processingTime": "1 second"} or {"availableNow": True}.')
    return Trigger(float(match[1]) * UNITS[match[2]])


class Run:
    """A flow that is running. Leaving it as a context manager stops it after the epoch under way."""

    def __init__(
        self,
        program: Program,
        home: Path,
        shards: int | None,
        trigger: Trigger,
        durability: Durability = DURABILITY,
        changed: Changed = "refuse",
    ) -> None:
        self._program, self._trigger, self._durability = program, trigger, durability
        self._message = "Starting"
        remote = open_remote(durability.remote) if durability.remote else None
        options: dict[str, Any] = {"most_layers": durability.most_layers, "tell": self._tell, "changed": changed}
        options["detached"] = durability.detached
        self._stepping = Stepping(program, home, shards, remote, **options)
        self._progress: deque[dict[str, Any]] = deque(maxlen=1000)
        self._changed = threading.Condition()
        self._stopping = False
        self._active = True
        self._idle_rounds = 0
        self._error: NosyncError | None = None
        self._tending = Tending(self._stepping.journal, self._stepping.upkeep, self._end, time.time)
        self._opener = Opener(self._stepping.epochs)
        self._thread = threading.Thread(target=self._loop, name=f"nosync {program.name}", daemon=True)
        self._thread.start()

    def _tell(self, text: str) -> None:
        self._message = f"Recovering: {text}"
        log.info("%s: %s", self._program.name, text)

    def _end(self, error: NosyncError) -> None:
        """Something behind the stream cannot go on."""
        with self._changed:
            self._error = self._error or error
            self._stopping = True
            self._changed.notify_all()

    @property
    def spark(self) -> SparkSession:
        return self._program.spark

    @property
    def name(self) -> str:
        return self._program.name

    @property
    def id(self) -> str:
        """The run's id: it is part of the name of every file that this run writes."""
        return self._stepping.run

    @property
    def epoch(self) -> Epoch:
        """The newest computed epoch."""
        return self._stepping.image.epoch

    @property
    def isActive(self) -> bool:  # noqa: N802 (PySpark's name)
        return self._active

    @property
    def safe(self) -> dict[str, Epoch]:
        """By kind of failure (`process`, `host` and, with a remote, `site`), the newest epoch that survives it."""
        return self._stepping.upkeep.safe()

    @property
    def recovered(self) -> Recovered:
        """What it took to come back when this run started."""
        return self._stepping.recovered

    @property
    def takeover(self) -> Takeover:
        """What became of the state when a changed program took it over; empty where the program was the same."""
        return self._stepping.takeover

    def guarantees(self) -> dict[str, Promise]:
        """As `flow.guarantees()`, for this home: output that comes from state which began empty is divergent."""
        graph, begun = self._program.graph, self._stepping.image.begun
        emptied = {trace: one.epoch for trace, one in begun.items() if one.empty}
        promises = self._program.promises()
        for name, needed in ((name, feeders(graph)[node.trace]) for name, node in graph.sinks.items()):
            for trace in sorted(needed & emptied.keys()):
                promises[name] = Promise("divergent", f'"{trace}" began empty with epoch {emptied[trace]}, when the program changed')
        return promises

    @property
    def status(self) -> dict[str, Any]:
        busy = self._message == "Processing"
        problems = {name: problem.message for name, problem in self._stepping.upkeep.problems.items()}
        return {"message": self._message, "isDataAvailable": busy, "isTriggerActive": busy, "safe": self.safe, "problems": problems}

    @property
    def lastProgress(self) -> dict[str, Any] | None:  # noqa: N802 (PySpark's name)
        return self._progress[-1] if self._progress else None

    @property
    def recentProgress(self) -> list[dict[str, Any]]:  # noqa: N802 (PySpark's name)
        return list(self._progress)

    def exception(self) -> NosyncError | None:
        """Why the run ended, if it failed."""
        return self._error

    def view(self, name: str, at: At = None) -> DataFrame:
        """The rows of a view as of an epoch, the newest by default: an ordinary DataFrame that reads the log when it is used.

        `at` is the number of an epoch; a time (a datetime, "2026-05-01 21:05", "1 hour ago"), for the newest that was opened by then; or
        "safe", for the newest that survives every configured failure."""
        records = {view.name: record_of(view) for view in self._program.graph.views.values()}
        record = find_view(records, name)
        stepping = self._stepping
        image, base = stepping.journal.snapshot()
        past = Past(stepping.disk, stepping.remote, base)
        epoch = epoch_at(at, image, past.openings, lambda: Epoch(min(self.safe.values())))
        covers = covers_at(image, record, name, epoch, past)
        stepping.bring(covers)
        schema = self._program.graph.views[name].schema
        return view_frame(self.spark, str(stepping.home), record, covers, stepping.shards, schema)

    def explain(self, svg: str | Path | None = None) -> None:
        """Prints the graph as `flow.explain` does, with rows, layers, bytes and milliseconds of each state. `svg`: a file for a drawing."""
        picture = self._program.picture()
        with self._stepping.journal.lock:
            figures = figures_of(picture, self._stepping.image, self.recentProgress)
        print(in_words(picture, figures))
        if svg is not None:
            Path(svg).write_text(drawn(picture, figures))

    def processAllAvailable(self) -> None:  # noqa: N802 (PySpark's name)
        """Waits until all input that is there now has been processed, and sinks have it. Raises if the run failed."""
        with self._changed:
            seen = self._idle_rounds
            self._changed.wait_for(lambda: self._idle_rounds >= seen + 2 or not self._active)
            self._tending.wake()
            while self._active and not self._tending.released():
                self._changed.wait(timeout=IDLE_SECONDS)
        self._raise()

    def awaitTermination(self, timeout: float | None = None) -> bool | None:  # noqa: N802 (PySpark's name)
        """Waits until the run ends; with a timeout, says whether it has. Raises if the run failed."""
        self._thread.join(timeout)
        self._raise()
        return None if timeout is None else not self._thread.is_alive()

    def stop(self) -> None:
        """Ends the run after the epoch under way. The flow can be started again on the same home."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.stop()
        if kind is None:
            self._raise()

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _loop(self) -> None:
        try:
            pause = STALL_SECONDS[0]
            while not self._stopping:
                begun = time.monotonic()
                try:
                    if not self._round() and self._trigger.once:
                        break
                    pause = STALL_SECONDS[0]
                except Unavailable as error:
                    self._stall(error, pause)
                    pause = min(2 * pause, STALL_SECONDS[1])
                    continue
                self._pause(begun)
        except NosyncError as error:
            self._error = self._error or error
            if isinstance(error, Corrupt):
                suspect(self._stepping.disk, error)
        except Exception as error:
            self._error = Internal(f"{type(error).__name__}: {error}", hint="This is a bug of nosync: please report it.")
            self._error.__cause__ = error
        finally:
            self._close()

    def _close(self) -> None:
        if self._error is None:
            self._message = "Stopping"
            self._tending.drain(DRAIN_SECONDS)
        self._opener.stop()
        self._tending.stop()
        self._stepping.close()
        try:
            self._stepping.outlet.close()
        except NosyncError as error:
            self._error = self._error or error
        with self._changed:
            self._active = False
            self._message = "Stopped" if self._error is None else "Failed"
            self._changed.notify_all()

    def _stall(self, error: Unavailable, seconds: float) -> None:
        """The epoch cannot be written now: it is tried again until it can."""
        message = f"Stalled: {error.message}"
        if self._message != message:
            log.warning("%s: %s", self.name, error)
        self._message = message
        with self._changed:
            self._changed.wait_for(lambda: self._stopping, timeout=seconds)

    def _round(self) -> bool:
        """One epoch, or the news that there is nothing to do."""
        if self._held_back():
            return True
        if not self._message.startswith("Stalled"):
            self._message = "Processing"
        with self._opener:
            done = self._stepping.step()
        with self._changed:
            if done is None:
                self._idle_rounds += 1
                self._message = "Waiting for data to arrive"
            else:
                self._progress.append(done)
                self._message = "Processing"
            self._changed.notify_all()
        return done is not None

    def _held_back(self) -> bool:
        """The only thing that the stream waits for: so much is not yet on a tier that losing it would be too much."""
        late = [tier for tier in self._stepping.upkeep.standings() if tier.behind > self._durability.most_unshipped_bytes]
        if not late:
            return False
        self._message = f"Waiting: {late[0].behind:,} bytes have yet to reach the tier that survives the loss of the {late[0].survives}"
        with self._changed:
            self._changed.wait_for(lambda: self._stopping, timeout=IDLE_SECONDS)
        return True

    def _pause(self, begun: float) -> None:
        idle = self._message == "Waiting for data to arrive"
        rest = max(self._trigger.seconds - (time.monotonic() - begun), IDLE_SECONDS if idle else 0.0)
        if rest > 0:
            with self._changed:
                self._changed.wait_for(lambda: self._stopping, timeout=rest)
