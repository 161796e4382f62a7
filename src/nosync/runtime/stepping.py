"""A flow on its home, one step at a time: taking over, recovering, then epoch after epoch. `Run` gives it threads; tests step it by
hand.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nosync.duties.merging import Merger
from nosync.duties.trimming import BATCH as TRIM_BATCH
from nosync.duties.upkeep import Upkeep
from nosync.graph.timed import closings, expiries
from nosync.journal.entries import Merged
from nosync.journal.image import Image
from nosync.journal.joining import histories
from nosync.journal.journal import Journal
from nosync.journal.names import source_folder
from nosync.journal.past import TieredReader
from nosync.journal.taken import MarksOf, taken_from
from nosync.model.bound import BoundSource
from nosync.model.errors import Corrupt
from nosync.model.layers import Covers, LayerInfo
from nosync.model.run import this_process
from nosync.model.store import Remote
from nosync.recovery.restore import Recovered, Tell, check_recoverable, recover
from nosync.recovery.survey import doubtful
from nosync.recovery.suspicion import cleared, suspected
from nosync.runtime.change import Changed, check_choice, check_same_flow, check_settings
from nosync.runtime.epochs import Clock, Epochs
from nosync.runtime.outlet import LayerOutlet
from nosync.runtime.program import Program
from nosync.runtime.progress import progress
from nosync.runtime.takeover import Change, Takeover, Taking, check_possible
from nosync.spark.engine import WIDE_BYTES, SparkEngine
from nosync.spark.session import check_home
from nosync.state.layer import open_layer, verify
from nosync.state.private import make_folder
from nosync.store.disk import LocalDisk
from nosync.store.homes import check_folder
from nosync.tiers.courier import courier_for
from nosync.tiers.host import synced_number


class Stepping:
    """A flow on its home. Making one fences every other run of the flow."""

    def __init__(
        self,
        program: Program,
        home: Path,
        shards: int | None,
        remote: Remote | None = None,
        clock: Clock = time.time,
        wide_bytes: int = WIDE_BYTES,
        most_layers: int = 64,
        tell: Tell = lambda text: None,
        disk: LocalDisk | None = None,
        changed: Changed = "refuse",
        detached: bool = False,
    ) -> None:
        self.detached = detached
        self.program, self.home, self.clock, self.remote = program, home.absolute(), clock, remote
        self.disk = disk or LocalDisk(self.home)
        check_folder(self.home)
        make_folder(self.home)
        check_home(program.spark, self.home)
        self._check(shards, changed)
        runner = this_process(clock())
        self.journal = Journal(self.disk, remote, runner, detached)
        self.image = self.journal.image
        self.shards, change = self._declare(shards, changed)
        self.engine = SparkEngine(program, str(self.home), self.journal.run, self.shards, wide_bytes)
        self._start_sources()
        self.recovered = self._recover(runner.boot, tell)
        if self.recovered.rolled_back:
            self._start_sources()
        taking = Taking(self.journal, self.disk, remote, self.engine, tell)
        self.takeover = taking.take_over(change, changed) if change else Takeover()
        graph = program.graph
        self.epochs = Epochs(self.journal, program.sources, self.engine, clock, bool(graph.statics), closings(graph))
        sinks = {name: sink.release for name, sink in program.sinks.items()}
        self.outlet = LayerOutlet(program, self.journal, str(self.home))
        trims = {name: source.trim for name, source in program.sources.items() if source.trim is not None}
        self.courier = courier_for(remote, self.disk)
        self.upkeep = Upkeep(
            self.journal, self.disk, remote, sinks, self.outlet, trims, most_layers=most_layers, trim_batch=TRIM_BATCH,
            carrier=self.courier, marks_of=marks_of(program.sources),
        )  # fmt: skip
        self.merger = Merger(str(self.home), program.name, self.journal.run, frozenset(program.shape().sinks), expiries(graph))

    @property
    def run(self) -> str:
        return self.journal.run

    def _check(self, shards: int | None, changed: Changed) -> None:
        """Before anybody is fenced: whether this program can go on with what is there."""
        chain = histories(self.disk, self.remote, self.detached).believed
        if self._change(chain.image(), shards, changed) is not None:
            doubted = doubtful(chain, synced_number(self.disk, chain), this_process(0.0).boot)
            check_recoverable(chain, self.disk, self.remote, self.program.shape(), self._is_whole, doubted)

    def _change(self, image: Image, shards: int | None, changed: Changed) -> Change | None:
        """What going on with this program means for the state of an image; None where there is none yet."""
        if image.declared is None:
            return None
        self.program = self.program.named_after(image.declared)
        change = self.program.change(image.declared, shards or image.declared.shards)
        check_same_flow(image.declared, change.declaration)
        check_settings(image.declared.settings, change.declaration.settings, self.program.on_other_settings)
        if change.difference and image.epoch:
            check_choice(change.difference, changed, image.epoch)
            check_possible(change, changed, image)
        return change

    def _declare(self, shards: int | None, changed: Changed) -> tuple[int, Change | None]:
        """Records the program, unless it has to take over first: then with what that leads to."""
        change = self._change(self.image, shards, changed)
        cores = self.program.spark.sparkContext.defaultParallelism
        declaration = change.declaration if change else self.program.declaration(shards or cores)
        if change and change.difference and self.image.epoch:
            return declaration.shards, change
        if self.image.declared != declaration:
            self.journal.append(declaration)
        return declaration.shards, None

    def _recover(self, boot: str, tell: Tell) -> Recovered:
        doubted = doubtful(self.journal.chain, synced_number(self.disk, self.journal.chain), boot)
        doubted |= suspected(self.disk, self.image)
        done = recover(self.journal, self.disk, self.remote, self.engine, self.program.shape(), self._is_whole, doubted, tell)
        cleared(self.disk)
        return done

    def _is_whole(self, layer: LayerInfo) -> bool:
        try:
            verify(open_layer(self.home, layer))
        except Corrupt:
            return False
        return True

    def _start_sources(self) -> None:
        sources, base = self.program.sources, self.journal.base
        found = taken_from(sources, TieredReader(self.disk, self.remote), base, self.journal.after(base), marks_of(sources))
        for name, source in sources.items():
            source.start(self.home / source_folder(name), found[name])

    def step(self) -> dict[str, Any] | None:
        """One epoch if there is input (or one left unfinished), and its progress; None when there is nothing to do."""
        started = time.perf_counter()
        self.merge()
        step = self.epochs.step()
        if step is None:
            return None
        self.merge()
        millis = {"triggerExecution": round((time.perf_counter() - started) * 1e3), **step.millis}
        delays = {name: source.delay for name, source in self.program.graph.sources.items() if source.delay is not None}
        return progress(step, millis, self.image, self.run, self.upkeep, delays)

    def merge(self) -> None:
        """Takes what was merged meanwhile, and asks for more."""
        for layer in self.merger.collect():
            self.journal.append(Merged(layer))
        self.merger.offer(self.image)

    def bring(self, covers: Covers) -> None:
        """After a loss, layers of the past lie on the remote alone until somebody asks for them."""
        for layer in [layer for found in covers.values() for layer in found]:
            if self.remote is not None and not self.disk.exists(layer.path):
                self.remote.download(layer.path, self.disk)

    def close(self) -> None:
        self.merger.close()
        if self.courier is not None:
            self.courier.close()


def marks_of(sources: Mapping[str, BoundSource]) -> MarksOf:
    """Of sources that know what they must not take twice."""
    return {name: source.marks for name, source in sources.items() if source.marks is not None}
