"""A running flow, as PySpark users know a streaming query: the handle that `flow.start` gives."""

import threading
from functools import partial
from pathlib import Path
from typing import Any, Self

from pyspark.sql import DataFrame, SparkSession

from nosync.history.home import Home
from nosync.history.status import recorded_safe, status_of
from nosync.journal.entries import Keeping
from nosync.journal.journal import Journal
from nosync.journal.names import INPUT
from nosync.journal.pins import pin, unpin
from nosync.model.absent import public
from nosync.model.arguments import checked
from nosync.model.errors import Conflict, Fenced, Internal, Invalid, NosyncError
from nosync.model.identifiers import Epoch
from nosync.model.ladder import Keep, ladder_of
from nosync.model.moment import At
from nosync.model.progress import Progress
from nosync.model.sink import Promise
from nosync.model.status import Status
from nosync.model.why import Why
from nosync.observe.drawing import drawn, write_drawing
from nosync.observe.figures import figures_of
from nosync.observe.introductions import status_as_html, status_in_a_line
from nosync.observe.text import in_words, ways_in_words
from nosync.recovery.restore import Recovered
from nosync.runtime.change import OnChange
from nosync.runtime.durability import DURABILITY, Durability
from nosync.runtime.loop import IDLE_SECONDS, Loop
from nosync.runtime.program import Program
from nosync.runtime.provenance import why
from nosync.runtime.reading import changes_of, known_view, view_of
from nosync.runtime.rescaling import check_shards
from nosync.runtime.standby import stand_by
from nosync.runtime.starting import begin
from nosync.runtime.takeover import Takeover
from nosync.runtime.trigger import Trigger
from nosync.store.homes import refuse_remote_at_home
from nosync.store.objects import open_remote


@public
class Run:
    """A flow that is running. Leaving it as a context manager stops it after the epoch under way.

    It is there as soon as every earlier run is fenced and the program declared; recovering and rebuilding go on behind (see `status`), and
    whoever asks for their result waits for them.
    """

    def __init__(
        self,
        program: Program,
        home: Path,
        shards: int | None,
        trigger: Trigger,
        durability: Durability = DURABILITY,
        on_change: OnChange = "refuse",
    ) -> None:
        if durability.remote:
            refuse_remote_at_home(home, durability.remote)
        remote = open_remote(durability.remote) if durability.remote else None
        detached = durability.detached
        start = partial(begin, program, home, shards, remote, on_change=on_change, detached=detached, leads=True, joins=True)
        self._starting = stand_by(start, program, home, shards, remote, on_change, detached) if durability.standby else start()
        self._program = self._starting.program
        self._loop = Loop(self._starting, trigger)

    @property
    def spark(self) -> SparkSession:
        return self._program.spark

    @property
    def name(self) -> str:
        return self._program.name

    @property
    def id(self) -> str:
        """The run's id: it is part of the name of every file that this run writes."""
        return self._starting.run

    @property
    def epoch(self) -> Epoch:
        """The newest computed epoch. Waits for recovery, which may have to go back.

        >>> run.epoch
        1
        """
        self._loop.wait_for(lambda: self._loop.stepping is not None or not self._loop.active)
        return self._starting.image.epoch

    @property
    def isActive(self) -> bool:  # noqa: N802 (PySpark's name)
        return self._loop.active

    @property
    def safe(self) -> dict[str, Epoch]:
        """By kind of failure (`process`, `host` and, with a remote, `site`), the newest epoch that survives it. Waits for recovery.
        >>> run.safe["process"]
        1
        """
        return self._loop.ready().upkeep.safe()

    @property
    def recovered(self) -> Recovered:
        """What it took to come back when this run started. Waits for it."""
        return self._loop.ready().recovered

    @property
    def takeover(self) -> Takeover:
        """What became of the state when a changed program took it over; empty where the program was the same. Waits for it."""
        return self._loop.joined().takeover

    def __repr__(self) -> str:
        return f"Run of {status_in_a_line(self.status, str(self._starting.home))}"

    def _repr_html_(self) -> str:
        rows = self._loop.stepping.opened().counted() if self._loop.stepping is not None else {}
        return status_as_html(self.status, str(self._starting.home), rows)

    def guarantees(self) -> dict[str, Promise]:
        """As `flow.guarantees()`, for this home: output that comes from state which began empty is divergent.
        >>> run.guarantees()
        {}
        """
        return self._program.promises(self._loop.ready().image.begun)

    @property
    def status(self) -> Status:
        """How the run stands now; waits for nothing. `ns.open(home).status` is the same from outside.

        >>> run.status.phase
        'running'
        """
        live, journal, stepping = self._loop.live(), self._starting.journal, self._loop.stepping
        input_bytes = sum(self._starting.disk.sizes(INPUT).values())
        with journal.lock:
            return status_of(journal.image, stepping.upkeep.safe() if stepping else self._recorded_safe(), live, input_bytes)

    def _recorded_safe(self) -> dict[str, Epoch]:
        journal = self._starting.journal
        return recorded_safe(journal.image, self._starting.disk, journal.chain, journal.after)

    @property
    def lastProgress(self) -> Progress | None:  # noqa: N802 (PySpark's name)
        """What the newest epoch did.
        >>> run.lastProgress.numInputRows
        1
        """
        return self._loop.progress[-1] if self._loop.progress else None

    @property
    def recentProgress(self) -> list[Progress]:  # noqa: N802 (PySpark's name)
        """What the latest epochs did, up to a thousand.

        >>> [progress.epoch for progress in run.recentProgress]
        [1]
        """
        return list(self._loop.progress)

    def exception(self) -> NosyncError | None:
        """Why the run ended, if it failed.
        >>> run.exception() is None
        True
        """
        return self._loop.error

    @checked(epoch="Pass at=.", version="Pass at=.", timestamp="Pass at=.")
    def view(self, name: str, at: At = None) -> DataFrame:
        """The rows of a view as of an epoch, the newest by default: an ordinary DataFrame that reads the log when it is used. Waits for
        recovery.

        `at` is the number of an epoch; a time (a datetime, "2026-05-01 21:05", "1 hour ago"), for the newest that was opened by then; or
        "safe", for the newest that survives every configured failure. Its layers are held for ten minutes; a DataFrame that is used later
        than that may find that they were given up: ask for the view again.

        >>> run.view("spend", at=1).show()
        +----+-----+
        |user|spent|
        +----+-----+
        | ann|  3.5|
        +----+-----+
        <BLANKLINE>
        """
        known_view(self._program, name)
        return view_of(self._program, self._loop.having(name), name, at)

    def changes(self, name: str, since: At = None, until: At = None) -> DataFrame:
        """What the epochs after `since` (else all) up to `until` (else the newest) have added to a view and taken from it: its columns with
        `_epoch`, `_time` and `_diff`. What is not kept by itself counts among the next epoch that is. Waits for recovery.
        >>> run.changes("spend").select("user", "spent", "_epoch", "_diff").collect()
        [Row(user='ann', spent=3.5, _epoch=1, _diff=1)]
        """
        return changes_of(self._program, self._loop.having(name), name, since, until)

    def why(self, view: str, row: dict[str, Any] | None = None, /, *, at: At = None, most: int = 100, **values: Any) -> Why:
        """What the rows of a view with these values come from: epochs, slices of sources, and at most `most` input rows of each source, as
        far as the input is kept. Values of columns that group or join say most. They come by name, or as a dict: columns called `at` or
        `most` only so.
        >>> run.why("spend", user="ann").counts
        {'purchases': 1}
        """
        if most < 1:
            raise Invalid(f"run.why: most={most} would show no row", hint="Pass 1 or more.")
        self._loop.having(view)
        home, wanted = self._opened(), {**(row or {}), **values}
        for column, given in (("at", at is not None), ("most", most != 100)):
            if given and row is None and column in self._program.queries[view].columns:
                hint = f'Pass the row\'s values as a dict, then at= and most= are ours: run.why("{view}", {{"{column}": ...}}).'
                raise Invalid(f'run.why: view "{view}" has a column "{column}", and that is the name of an argument, too', hint=hint)
        epoch = home.resolve(at)
        return why(self._program, self._starting.engine, home, view, wanted, home.epoch if epoch is None else epoch, most)

    def history(self) -> DataFrame:
        """One row an epoch: when it was opened, from which slices, rows in and out, layers and bytes, and which failures it survives.
        >>> run.history().select("epoch", "kept").collect()
        [Row(epoch=1, kept=True)]
        """
        return self.spark.createDataFrame(self._opened().history())

    def _opened(self) -> Home:
        """The home as a reader sees it, with the remote behind it."""
        return self._loop.ready().opened()

    def keep(self, keep: Keep) -> None:
        """From now on, state stays readable as of these epochs, as in `flow.start(..., keep=)`; so it does after the next start.
        >>> run.keep("7 days")
        """
        self._recording("keep HOME LADDER").append(Keeping(ladder_of(keep).said))

    def pin(self, name: str, at: At = None) -> Epoch:
        """Holds an epoch, the newest by default, under a name until that is dropped (`unpin`), whatever `keep` says; gives the epoch.
        >>> run.pin("before the sale")
        1
        >>> run.unpin("before the sale")
        """
        journal = self._recording("pin HOME NAME")
        epoch = self._opened().resolve(at)
        pin(journal, name, journal.image.epoch if epoch is None else epoch)
        return journal.image.pins[name]

    def unpin(self, name: str) -> None:
        """The epoch of this pin is held by nothing but `keep` from here on.
        >>> run.pin("mine")
        1
        >>> run.unpin("mine")
        """
        unpin(self._recording("pin HOME NAME --drop"), name)

    def _recording(self, command: str) -> Journal:
        """To record what somebody wants from here on. Once the run has ended that is for a command."""
        journal = self._loop.ready().journal
        if not self._loop.active:
            raise Fenced("this run has ended", hint=f"`nosync {command}` does it at rest; or start the flow again.")
        return journal

    @property
    def pins(self) -> dict[str, Epoch]:
        """The pinned epochs, by name."""
        return dict(self._loop.ready().journal.snapshot()[0].pins)

    def rescale(self, shards: int) -> Epoch:
        """Cuts the flow into so many shards, more or fewer, from the next epoch on; gives that epoch. The stream waits for nothing, and
        nothing is copied: layers of the past are read in slices, and merging makes new ones over time. Waits for the epoch under way.
        >>> run.rescale(2)
        2
        """
        check_shards(shards)
        stepping = self._loop.ready()
        if not self._loop.active:
            hint = f"`nosync rescale HOME {shards}` does it at rest; so does flow.start(..., shards={shards})."
            raise Conflict("the run has ended", hint)
        return stepping.rescaling.ask(shards)

    def explain(self, *, svg: str | Path | None = None) -> None:
        """Prints the graph as `flow.explain` does, with rows, layers, bytes and milliseconds of each state. `svg`: a file for a drawing.
        >>> run.explain()
        Flow "shop"
        ...
        """
        picture, stepping = self._program.picture(), self._loop.ready()
        with stepping.journal.lock:
            figures = figures_of(picture, stepping.image, self.recentProgress)
        print(in_words(picture, figures))
        if ways := ways_in_words([progress["way"] for progress in self.recentProgress]):
            print(f"\n{ways}")
        if svg is not None:
            write_drawing(svg, drawn(picture, figures))

    def processAllAvailable(self) -> None:  # noqa: N802 (PySpark's name)
        """Waits until all input that is there now has been processed, and sinks have it, whatever their pace. Raises if the run failed,
        or was stopped.

        >>> run.processAllAvailable()
        """
        loop = self._loop
        caught_up = loop.exhaust() and loop.exhaust()  # some sources have more to give once they were asked
        while loop.active and loop.tending is not None and not loop.tending.released():
            loop.tending.hurry()
            loop.wait_for(lambda: not loop.active, IDLE_SECONDS)
        self._raise()
        if loop.stopping and not caught_up:
            raise Conflict(
                f'the run of flow "{self.name}" was stopped: what came after epoch {self._starting.image.epoch} is not processed',
                hint="Call processAllAvailable() before stop(), and inside of `with flow.start(...) as run:`.",
            )

    @checked()
    def awaitTermination(self, timeout: float | None = None) -> bool | None:  # noqa: N802 (PySpark's name)
        """Waits until the run ends; with a timeout, in seconds, says whether it has. Raises if the run failed.

        >>> run.awaitTermination(timeout=0.01)
        False
        """
        if timeout is not None and timeout < 0:
            raise Invalid(f"run.awaitTermination: timeout={timeout} lies in the past", hint="Pass seconds, 0 or more.")
        self._loop.thread.join(timeout)
        self._raise()
        return None if timeout is None else not self._loop.thread.is_alive()

    def stop(self) -> None:
        """Ends the run after the epoch under way. The flow can be started again on the same home.

        Called by one of the run's own threads, such as a sink's function, it asks for the end and comes back at once.
        >>> run = flow.start("state/shop again")
        >>> run.stop()
        """
        self._loop.ask_to_stop()
        if not self._loop.owns(threading.current_thread()):
            self._loop.thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.stop()
        if kind is None:
            self._raise()

    def _raise(self) -> None:
        error = self._loop.error
        if error is not None:
            raise error if isinstance(error, Internal) else error.with_traceback(None)  # the user's call is what matters
