"""A running flow, as PySpark users know a streaming query."""

import re
import threading
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from pyspark.sql import DataFrame, SparkSession

from nosync.history.home import covers_at, find_view
from nosync.model.errors import Internal, Invalid, NosyncError
from nosync.runtime.epochs import Epochs
from nosync.runtime.program import Program, record_of
from nosync.spark.read import view_frame

IDLE_SECONDS = 0.01
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

    def __init__(self, program: Program, home: Path, shards: int | None, trigger: Trigger) -> None:
        self._program, self._trigger = program, trigger
        self._epochs = Epochs(program, home, shards)
        self._progress: deque[dict[str, Any]] = deque(maxlen=1000)
        self._changed = threading.Condition()
        self._stopping = False
        self._active = True
        self._idle_rounds = 0
        self._message = "Starting"
        self._error: NosyncError | None = None
        self._thread = threading.Thread(target=self._loop, name=f"nosync {program.name}", daemon=True)
        self._thread.start()

    @property
    def spark(self) -> SparkSession:
        return self._program.spark

    @property
    def name(self) -> str:
        return self._program.name

    @property
    def id(self) -> str:
        """The run's id: it is part of the name of every file that this run writes."""
        return self._epochs.run

    @property
    def epoch(self) -> int:
        """The newest computed epoch."""
        return self._epochs.image.epoch

    @property
    def isActive(self) -> bool:  # noqa: N802 (PySpark's name)
        return self._active

    @property
    def status(self) -> dict[str, Any]:
        busy = self._message == "Processing"
        return {"message": self._message, "isDataAvailable": busy, "isTriggerActive": busy}

    @property
    def lastProgress(self) -> dict[str, Any] | None:  # noqa: N802 (PySpark's name)
        return self._progress[-1] if self._progress else None

    @property
    def recentProgress(self) -> list[dict[str, Any]]:  # noqa: N802 (PySpark's name)
        return list(self._progress)

    def exception(self) -> NosyncError | None:
        """Why the run ended, if it failed."""
        return self._error

    def view(self, name: str, at: int | None = None) -> DataFrame:
        """The rows of a view as of an epoch (the newest by default): an ordinary DataFrame that reads the log when it is used."""
        records = {view.name: record_of(view) for view in self._program.graph.views.values()}
        record = find_view(records, name)
        with self._epochs.journal.lock:
            covers = covers_at(self._epochs.image, record, name, at)
        schema = self._program.graph.views[name].schema
        return view_frame(self.spark, str(self._epochs.home), record, covers, self._epochs.shards, schema)

    def processAllAvailable(self) -> None:  # noqa: N802 (PySpark's name)
        """Waits until all input that is there now has been processed. Raises if the run failed."""
        with self._changed:
            seen = self._idle_rounds
            self._changed.wait_for(lambda: self._idle_rounds >= seen + 2 or not self._active)
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
            while not self._stopping:
                begun = time.monotonic()
                if not self._round() and self._trigger.once:
                    break
                self._pause(begun)
        except NosyncError as error:
            self._error = error
        except Exception as error:
            self._error = Internal(f"{type(error).__name__}: {error}", hint="This is a bug of nosync: please report it.")
            self._error.__cause__ = error
        finally:
            self._epochs.close()
            with self._changed:
                self._active = False
                self._message = "Stopped" if self._error is None else "Failed"
                self._changed.notify_all()

    def _round(self) -> bool:
        """One epoch, or the news that there is nothing to do."""
        self._message = "Processing"
        done = self._epochs.step()
        with self._changed:
            if done is None:
                self._idle_rounds += 1
                self._message = "Waiting for data to arrive"
            else:
                self._progress.append(done)
            self._changed.notify_all()
        return done is not None

    def _pause(self, begun: float) -> None:
        idle = self._message != "Processing"
        rest = max(self._trigger.seconds - (time.monotonic() - begun), IDLE_SECONDS if idle else 0.0)
        if rest > 0:
            with self._changed:
                self._changed.wait_for(lambda: self._stopping, timeout=rest)
