"""A flow on its home that has its state together: epoch after epoch, and what is merged between them. `loop` gives it a thread; tests
step it by hand.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from nosync.duties.merging import Merger
from nosync.duties.trimming import BATCH as TRIM_BATCH
from nosync.duties.troubles import Troubles
from nosync.duties.upkeep import Upkeep
from nosync.graph.timed import closings, expiries
from nosync.history.home import Home
from nosync.journal.entries import Merged
from nosync.journal.image import Image
from nosync.journal.journal import Journal
from nosync.model.errors import Unavailable
from nosync.model.footprint import Footprint
from nosync.model.identifiers import NO_EPOCH, NO_RECORD
from nosync.model.layers import Covers, LayerInfo
from nosync.model.places import Sharing
from nosync.model.progress import Progress
from nosync.model.source import Slice
from nosync.model.store import Remote
from nosync.peers.arrivals import Arrivals
from nosync.recovery.check import is_whole
from nosync.recovery.restore import Recovered, recover
from nosync.runtime.epochs import Clock, Epochs
from nosync.runtime.joining import Joining
from nosync.runtime.mending import Mending
from nosync.runtime.outlet import LayerOutlet
from nosync.runtime.program import Program, marks_of
from nosync.runtime.progress import NewestBytes, progress
from nosync.runtime.rescaling import Rescaling
from nosync.runtime.takeover import Takeover
from nosync.runtime.unshared_home import UnsharedHome
from nosync.spark.engine import SparkEngine
from nosync.store.disk import LocalDisk
from nosync.tiers.uploading import upload_process

MERGE_AGAIN_SECONDS = 1.0
NOTHING_MERGED = NO_RECORD, NO_EPOCH


@dataclass
class Stepping:
    """Made by `Starting.recover`. `recovered` and `takeover` say what that took. `slices`: what the last epoch had of each source. What is
    `joining` is in `program` already, but not in the epochs that `engine` computes.
    """

    program: Program
    home: Path
    disk: LocalDisk
    remote: Remote | None
    journal: Journal
    engine: SparkEngine
    outlet: LayerOutlet
    troubles: Troubles
    recovered: Recovered
    takeover: Takeover
    clock: Clock
    stood_by: Callable[[], bool]
    unshared: UnsharedHome | None = None
    joining: Joining | None = None

    def __post_init__(self) -> None:
        program, graph = self.program, self.program.graph
        self.epochs = Epochs(
            self.journal, program.sources, self.engine, self.clock, bool(graph.statics), closings(graph), lambda: self.upkeep.reproducible()
        )  # fmt: skip
        sinks = {name: sink.terms for name, sink in program.sinks.items()}
        trims = {name: source.trim for name, source in program.sources.items() if source.trim is not None}
        self.uploader = upload_process(self.remote, self.disk)
        self.upkeep = Upkeep(
            self.journal, self.disk, self.remote, sinks, self.outlet, trims, policy=program.policy, trim_batch=TRIM_BATCH,
            uploader=self.uploader, marks_of=marks_of(program.sources), troubles=self.troubles, now=self.clock,
            stood_by=self.stood_by, verify=partial(is_whole, self.home), arrivals=self.arrivals,
            knobs=program.compaction,
        )  # fmt: skip
        coming = self.arrivals.is_coming if self.arrivals is not None else None
        self.merger = Merger(
            str(self.home), program.name, self.journal.run, frozenset(program.shape().sinks), expiries(graph), coming, program.compaction
        )  # fmt: skip
        self.mending: Mending | None = None
        if self.arrivals is not None:
            self.mending = Mending(
                self.journal, self.arrivals, self._recover, lambda: self.merger.finish(self._merged), self.epochs.opening
            )  # fmt: skip
            self.outlet.sharing = self.sharing
        self.rescaling = Rescaling(self.journal, self.engine, program.scaling, self.clock)
        if self.joining is not None:
            self.upkeep.keeps_all, self.rescaling.held = True, "what is new in the program gets its past"
        self._merge_from, self._merged_at = 0.0, NOTHING_MERGED  # in that state there was nothing to merge
        self._opened_at, self._newest_bytes = 0.0, NewestBytes()
        self.footprint: Footprint | None = None  # as it was last measured
        self.slices: dict[str, Slice] = {}

    @property
    def arrivals(self) -> Arrivals | None:
        """What brings layers home that tasks write elsewhere."""
        return self.unshared.arrivals if self.unshared is not None else None

    @property
    def sharing(self) -> Sharing | None:
        return self.unshared.sharing if self.unshared is not None else None

    @property
    def run(self) -> str:
        return self.journal.run

    @property
    def image(self) -> Image:
        return self.journal.image

    def step(self, around: AbstractContextManager[object] | None = None) -> Progress | None:
        """One epoch if there is input (or one left unfinished), and its progress; None when there is nothing to do."""
        with self.rescaling.boundary:
            self.rescaling.carry_out()
            self._join()
            if self.mending is None:
                return self._step(around)
            self.mending.step()
            try:
                return self._step(around)
            except Unavailable as error:
                self.mending.failed(error)
                raise

    def _step(self, around: AbstractContextManager[object] | None) -> Progress | None:
        started = time.perf_counter()
        self.merge()
        step = self.epochs.step(around)
        if step is None:
            return None
        self.slices = step.opened.slices
        self.rescaling.follow(sum(step.outcome.rows.values()))
        self.upkeep.meter.epoch(step.millis["compute"] / 1e3)
        self.merge()
        millis = {"triggerExecution": round((time.perf_counter() - started) * 1e3), **step.millis}
        delays = {name: source.delay for name, source in self.program.graph.sources.items() if source.delay is not None}
        since, self._opened_at = self._opened_at, step.opened.at
        lags = {name: found for name in step.opened.slices if (found := self.program.sources[name].lag())}
        newest = self._newest_bytes.of(self.image)
        return progress(step, millis, self.image, self.run, self.upkeep, delays, since, lags, newest, self.footprint)

    def _join(self) -> None:
        """What was added to the program takes part in the next epoch, if it has its past by now."""
        if self.joining is None or (found := self.joining.step()) is None:
            return
        self.takeover, self.engine = found, self.joining.engine
        self.epochs.engine = self.rescaling.engine = self.engine
        self.upkeep.keeps_all, self.rescaling.held, self.upkeep.reported = False, "", NO_EPOCH
        self.joining = None

    def lacks(self, view: str) -> bool:
        """Whether the view has yet to join."""
        joining, node = self.joining, self.program.graph.views.get(view)
        return joining is not None and node is not None and node.trace in joining.change.targets

    @property
    def shards(self) -> int:
        return self.rescaling.shards

    def merge(self) -> None:
        """Takes what was merged meanwhile, and asks for more. A merge that failed is asked for again after a while: no epoch waits."""
        try:
            for layer in self.merger.collect():
                self._merged(layer)
                self.troubles.over("merge")
        except Unavailable as error:
            self.troubles.met("merge", error)
            self._merge_from = time.monotonic() + MERGE_AGAIN_SECONDS
        state = self.image.number, self.upkeep.may_go(self.image.epoch)
        if time.monotonic() >= self._merge_from and state != self._merged_at:
            self.merger.offer(self.image, state[1])
            self._merged_at = NOTHING_MERGED if self.merger.busy else state

    def _merged(self, layer: LayerInfo) -> None:
        self.journal.append(Merged(layer))

    def _recover(self, doubted: frozenset[str]) -> Recovered:
        """In the middle of the run: what is in the home is in no doubt."""
        whole = partial(is_whole, self.home)
        return recover(self.journal, self.disk, self.remote, self.engine, self.program.shape(), whole, doubted)

    def bring(self, covers: Covers) -> None:
        """After a loss, layers of the past lie on the remote alone until somebody asks for them. What is on its way home is not lost."""
        for layer in [layer for found in covers.values() for layer in found]:
            if self.remote is not None and not layer.place and not self.disk.exists(layer.path):
                self.remote.download(layer.path, self.disk)

    def opened(self) -> Home:
        """The home as a reader sees it, with the remote behind it, and all in it that is recorded by now."""
        if self.arrivals is not None:
            self.arrivals.catch_up()
        return Home(self.home, self.remote)

    def close(self) -> None:
        self.merger.close()
        if self.uploader is not None:
            self.uploader.close()
