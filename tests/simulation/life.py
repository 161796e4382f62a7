"""One run of the flow in a simulated history, from taking over until it is dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nosync.duties.upkeep import Upkeep
from nosync.journal.entries import Merged, Opened
from nosync.journal.journal import Journal
from nosync.journal.past import TieredReader, openings
from nosync.journal.taken import taken_from
from nosync.model.policies.log_structured import LogStructured
from nosync.model.run import Runner
from nosync.recovery.plan import Shape
from nosync.recovery.restore import recover
from nosync.recovery.survey import doubtful
from nosync.runtime.epochs import Epochs
from nosync.state.spine import plan_merge
from nosync.tiers.host import synced_number

from .program import HALVES, SHAPE, Broken, DictEngine, Fleeting, LastingReader

if TYPE_CHECKING:
    from .history import History

POLICY = LogStructured(most_layers=3, patience_seconds=0.0)
MARKS_OF = {"lasting": lambda slice: [str(slice["last"])]}


class Life:
    """One run of the flow, from taking over until it is dropped."""

    def __init__(self, history: History) -> None:
        self.history = history
        history.starts += 1
        runner = Runner(history.starts, "host", history.boot, 0.0, f"{history.starts:08x}")
        disk, remote = history.disk, history.remote
        self.journal = Journal(disk, remote, runner)
        self.engine = self.make_engine()
        doubted = doubtful(self.journal.chain, synced_number(disk, self.journal.chain), history.boot)
        done = recover(self.journal, disk, remote, self.engine, self.shape(), self.engine.verify, doubted)
        history.check_recovery(done)
        self.take_over()
        self.fleeting = Fleeting(disk, self.journal.run)
        self.lasting = LastingReader(history.lasting, self.position(), self.check_trim)
        sources = {"lasting": self.lasting, "fleeting": self.fleeting}
        self.epochs = Epochs(self.journal, sources, self.engine, lambda: 0.0)
        trims = {name: source.trim for name, source in sources.items()} if history.trims else {}
        self.upkeep = Upkeep(
            self.journal, disk, remote, self.sinks(), self, trims, policy=POLICY, roll_records=history.roll, trim_batch=2,
            marks_of=MARKS_OF,
        )  # fmt: skip
        history.check_state(self)

    def make_engine(self) -> DictEngine:
        return DictEngine(self.history.disk, self.history.lasting, self.journal.run)

    def shape(self) -> Shape:
        return SHAPE

    def sinks(self) -> dict[str, Any]:
        return {"sink": self.history.sink.release}

    def take_over(self) -> None:
        """For programs that change: after recovery, before anything else."""

    def openings(self) -> list[Opened]:
        """Every epoch of the one history, from the journal."""
        reader = TieredReader(self.history.disk, self.history.remote)
        return openings(reader, self.journal.base, self.journal.after(self.journal.base))

    def position(self) -> int:
        """Where the source goes on, from the summary; it must be what all openings say."""
        reader = TieredReader(self.history.disk, self.history.remote)
        taken = taken_from(["lasting"], reader, self.journal.base, self.journal.after(self.journal.base), MARKS_OF)["lasting"]
        known = [str(slice["last"]) for slice in taken]
        last = str(taken.latest["last"]) if taken.latest else None
        if last != max(known, key=int, default=None) or len(taken.marks) != len(known) or taken.marks.among(known) != set(known):
            raise Broken(f"{known} were taken, not {len(taken.marks)} up to {last}")
        return int(last or 0)

    def check_trim(self, slice: dict[str, Any]) -> None:
        """Called by the source when it is to let go."""
        image = self.journal.image
        epoch = next(entry.epoch for entry in self.openings() if entry.slices.get("lasting") == slice)
        if image.trimmed.get("lasting", 0) < epoch:
            raise Broken(f"epoch {epoch} is trimmed and no record says so")
        if epoch not in self.history.sink.got:
            raise Broken(f"epoch {epoch} is trimmed before the sink has it")

    def precise(self, sink: str) -> bool:
        return self.history.sink.release == "safe"  # either will do

    def deliver(self, sink: str, epoch: int) -> None:
        """Called by the releaser. No run may begin this once a newer one had taken over when it last looked."""
        if self.history.newest_at_last_operation > self.journal.generation:
            raise Broken(f"run {self.journal.run} was fenced and began to deliver epoch {epoch}")
        layers = [layer for layer in self.journal.image.traces.get("out", {}).get(HALVES[0], []) if layer.lower == epoch]
        if any(layer.upper != epoch + 1 for layer in layers):
            raise Broken(f"the output of epoch {epoch} is not kept alone")
        content = self.engine.read(layers[-1]) if layers else {}
        self.history.world.operation("sink", "deliver", lambda: self.history.sink.take(epoch, content))

    def merge(self) -> bool:
        for trace in ("totals", "parities"):
            for found in self.journal.image.newest.get(trace, {}).values():
                chosen = plan_merge(found, fan_in=3, width=2, floor_rows=1)
                if chosen:
                    self.journal.append(Merged(self.engine.merge(chosen)))
                    return True
        return False

    def act(self) -> None:
        """One step of something."""
        chance = self.history.world.random
        steps = [self.epochs.step, self.epochs.step, self.epochs.open_ahead, self.merge, *self.upkeep.duties().values()]
        if chance.random() < 0.05:
            steps = [self.upkeep.look_for_orphans, lambda: self.upkeep.look_for_orphans(far=False)]
        if chance.random() < 0.4:
            self.fleeting.pending.append(chance.randrange(100))
        chance.choice(steps)()
