"""One process of the flow in a simulated history, from taking over until it is dropped. Its threads go on a piece at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from nosync.duties.leading import Leading
from nosync.duties.merging import due_folds
from nosync.duties.troubles import Troubles
from nosync.duties.upkeep import Upkeep
from nosync.journal.entries import Declared, Merged
from nosync.journal.image import Image
from nosync.journal.journal import Journal
from nosync.journal.past import TieredReader
from nosync.journal.taken import taken_from
from nosync.model.errors import Conflict, Unavailable
from nosync.model.hash_range import HashRange
from nosync.model.layers import Covers, LayerInfo
from nosync.model.policies.log_structured import LogStructured
from nosync.model.run import Runner
from nosync.model.sink import Terms
from nosync.peers.arrivals import Arrivals
from nosync.recovery.plan import Shape
from nosync.recovery.restore import recover
from nosync.recovery.survey import doubtful
from nosync.recovery.suspicion import cleared, suspected
from nosync.runtime.epochs import Epochs
from nosync.state.cover import pieces
from nosync.state.spine import Level, levels, merges_of, plan_merge
from nosync.tiers.host import synced_number

from .keeping import hold
from .places import Host, Link
from .program import HALVES, SINKS, DictEngine, Sink, shape_of
from .sources import Fleeting, LastingReader
from .tasks import Task
from .world import Broken, Crash

if TYPE_CHECKING:
    from .history import History

Merge = tuple[tuple[Level, ...], bool]
MARKS_OF = {"lasting": lambda slice: [str(slice["last"])]}
LEASE = "lease"
MERGED = ("totals", "parities", "rows", "pairs", "luck")


class Life:
    """A process. It begins with the one thread that takes over and recovers; `ready` from there on, when the others run."""

    arrivals: Arrivals | None = None  # where tasks do not write into the home

    def __init__(self, history: History, host: Host, remote: Link | None, follows: int | None = None) -> None:
        self.history, self.host, self.disk, self.remote, self.follows = history, host, host.disk, remote, follows
        self.world = history.world
        self.tasks: dict[str, Task] = {}
        self.threads: dict[str, Callable[[], object]] = {"start": self.begin}
        self.journal: Journal | None = None
        self.ready = self.ending = False
        self.last_news: object = None

    def begin(self) -> None:
        history = self.history
        history.starts += 1
        history.places[history.starts] = self.host
        runner = Runner(history.starts, "host", self.host.boot, history.wall_clock(), f"{history.starts:08x}")
        self.journal = journal = self.take(runner)
        self.leading, self.renew_at = Leading(journal, self.remote or self.disk, runner, Troubles(), self.world.clock), 0.0
        self.engine = self.make_engine(journal)
        doubted = doubtful(journal.chain, synced_number(self.disk, journal.chain), self.host.boot) | suspected(self.disk, journal.image)
        done = recover(journal, self.disk, self.remote, self.engine, self.shape(), self.engine.verify, doubted)
        cleared(self.disk)
        history.repaired |= bool(done.recomputed or done.fetched or done.rolled_back or done.missing_from)
        if self.current:
            history.check_recovery(done)
        self.take_over()
        self.fleeting = Fleeting(self.disk, journal.run, history.written)
        self.lasting = LastingReader(self.world, history.lasting, self.position(journal), lambda slice: history.check_trim(self, slice))
        sources = {"lasting": self.lasting, "fleeting": self.fleeting}
        self.epochs = Epochs(journal, sources, self.engine, history.wall_clock)
        trims = {name: source.trim for name, source in sources.items()} if history.trims else {}
        policy = LogStructured(most_layers=3, patience_seconds=history.patience)
        self.upkeep = Upkeep(
            journal, self.disk, self.remote, {name: self.terms(sink) for name, sink in self.sinks().items()}, self, trims, policy=policy,
            roll_records=history.roll, trim_batch=2, marks_of=MARKS_OF, retention=history.rule, verify=self.engine.verify,
            clock=self.world.clock, now=self.world.clock, arrivals=self.arrivals,
        )  # fmt: skip
        if self.upkeep.layers is not None and self.upkeep.records is not None:
            self.upkeep.layers.clock = self.upkeep.records.clock = self.world.clock
        self.merged: list[LayerInfo] = []
        self.to_merge: Merge | dict[str, Any] | None = None
        duties: dict[str, Callable[[], object]] = dict(self.upkeep.duties())
        self.threads = {"stream": self.stream, "opener": self.epochs.open_ahead, "merger": self.merge, "sweep": self.sweep, **duties}
        self.threads[LEASE] = self._renew
        self.ready = True
        if self.current:
            history.check_state(self)

    def take(self, runner: Runner) -> Journal:
        """Whoever has stood by follows the run that it stood by for, or nobody: none of those has a generation that another has."""
        try:
            journal = Journal(self.disk, self.remote, runner, follows=self.follows)
        except Conflict as error:
            self.world.events["another followed first"] += 1
            raise Unavailable(error.message) from error
        if self.follows is not None:
            self.history.standing_by.check(journal, self.follows)
        return journal

    def renew(self) -> None:
        """Its lease, where that is due, as a thread like others: begun only while somebody watches, so that nobody else's history is
        another for it.
        """
        if self._can_go_on(LEASE) and (LEASE in self.tasks or self.world.seconds >= self.renew_at):
            self.go_on(LEASE)

    def _renew(self) -> None:
        self.renew_at = self.world.seconds + self.leading.step()

    @property
    def current(self) -> bool:
        """Whether no newer run has taken over."""
        return self.journal is not None and self.history.generation() <= self.journal.generation

    def make_engine(self, journal: Journal) -> DictEngine:
        history = self.history
        return DictEngine(self.world, self.disk, history.lasting, journal.run, history.dice, history.rotten)

    def shape(self) -> Shape:
        return shape_of(self.history.dice)

    def sinks(self) -> dict[str, Sink]:
        return self.history.sinks

    def take_over(self) -> None:
        """After recovery, before anything else."""
        assert self.journal is not None
        if self.journal.image.declared is None:
            sinks = {name: {"trace": trace} for trace, name in SINKS.items()}
            self.journal.append(Declared("f", 2, {}, {}, {}, sinks))

    def position(self, journal: Journal) -> int:
        """Where the source goes on, from the summary; it must be what all openings say."""
        reader = TieredReader(self.disk, self.remote)
        taken = taken_from(["lasting"], reader, journal.base, journal.after(journal.base), MARKS_OF)["lasting"]
        known = [str(slice["last"]) for slice in taken]
        last = str(taken.latest["last"]) if taken.latest else None
        if last != max(known, key=int, default=None) or len(taken.marks) != len(known) or taken.marks.among(known) != set(known):
            raise Broken(f"{known} were taken, not {len(taken.marks)} up to {last}")
        return int(last or 0)

    def precise(self, sink: str) -> bool:
        return self.sinks()[sink].precise

    def terms(self, sink: Sink) -> Terms:
        return Terms(sink.release)

    def deliver(self, sink: str, first: int, last: int) -> None:
        """Called by the releaser. No run may begin this once a newer one had taken over when its thread last looked."""
        assert self.journal is not None
        task = self.world.tasks.current
        if task is not None and task.newest > self.journal.generation:
            raise Broken(f"run {self.journal.run} was fenced and began to deliver epoch {last}")
        first = self.changed(sink, first, last)
        content = self.output(sink, first) if first == last else self.outputs(sink, first, last)
        if self.sinks()[sink].down:
            self.world.seen["sink.deliver", "refused", "none"] += 1
            raise Unavailable(f"{sink} is down")
        self.world.operation("sink", "deliver", lambda: self.sinks()[sink].take(first, last, content))

    def changed(self, sink: str, first: int, last: int) -> int:
        """The first of the epochs that has something for the sink, or the last. Those that are passed over have nothing."""
        passed = next((epoch for epoch in range(self.sinks()[sink].last + 1, first) if self.output(sink, epoch)), None)
        self.world.events["passed over"] += first > self.sinks()[sink].last + 1
        if passed is not None:
            raise Broken(f"epochs up to {last} are delivered to {sink} before epoch {passed}")
        return next((epoch for epoch in range(first, last) if self.output(sink, epoch)), last)

    def outputs(self, sink: str, first: int, last: int) -> dict[str, Any]:
        """Of some epochs, for a sink that gets them as one."""
        return {str(epoch): found for epoch in range(first, last + 1) if (found := self.output(sink, epoch)) or epoch == last}

    def output(self, sink: str, epoch: int) -> dict[str, Any]:
        assert self.journal is not None
        trace = next(trace for trace, name in self.shape().sinks.items() if name == sink)
        layers = [layer for layer in self.journal.image.traces.get(trace, {}).get(HALVES[0], []) if layer.lower == epoch]
        if any(layer.upper != epoch + 1 for layer in layers):
            raise Broken(f"the output of epoch {epoch} is not kept alone")
        return self.engine.read(layers[-1]) if layers else {}

    def stream(self) -> bool:
        """One epoch, after the news of what was merged meanwhile; then more to merge is chosen."""
        assert self.journal is not None
        while self.merged:
            self.journal.append(Merged(self.merged.pop()))
        worked = self.epochs.step() is not None
        if self.to_merge is None and not self.merged:
            self.to_merge = self._due(self.journal.image)
        return worked or self.to_merge is not None

    def _due(self, image: Image) -> Merge | dict[str, Any] | None:
        """Something to merge or to fold."""
        merge = next(self.mergeable(), None)
        if merge is not None and self.world.random.random() < 0.5:
            return merge
        parts = [(trace, held) for trace in MERGED for held in pieces(image.traces.get(trace, {}))]
        folds = due_folds(image, self.upkeep.may_go(image.epoch), parts)
        return next((fold for fold in folds if all(layer["path"] in self.disk.files for layer in fold["layers"])), merge)

    def mergeable(self) -> Iterator[Merge]:
        """What may be merged, and whether nothing lies beneath."""
        assert self.journal is not None
        for trace in MERGED:
            covers = self.to_be_merged(trace)
            for held in self.ranges_of(trace, covers):
                known = levels(covers, held)
                chosen = plan_merge(known, fan_in=3, width=2, floor_rows=1)
                if chosen and merges_of(chosen):
                    yield chosen, chosen[-1] == known[-1]

    def to_be_merged(self, trace: str) -> Covers:
        assert self.journal is not None
        return self.journal.image.newest.get(trace, {})

    def ranges_of(self, trace: str, covers: Covers) -> Iterable[HashRange]:
        return covers

    def merge(self) -> bool:
        """Another process does this; the stream hears of it later."""
        if self.to_merge is None:
            return False
        chosen = self.to_merge
        if not isinstance(chosen, dict):
            layers, bottom = chosen
            self.merged += [self.engine.merge_ranges(ranges, held, bottom) for held, ranges in merges_of(layers)]
        elif all(text["path"] in self.disk.files for text in chosen["layers"]):  # else they were given up meanwhile
            self.merged.append(self.engine.fold(chosen))
            self.world.events["fold"] += 1
        self.to_merge = None
        return True

    def sweep(self) -> None:
        self.upkeep.look_for_orphans()

    def burst(self) -> None:
        """Some thread goes on until it hands over, or comes to the end of its step."""
        chance = self.world.random
        if self.ready and chance.random() < 0.3:
            self.fleeting.offer(chance.randrange(100))
        if self.ready and self.current and chance.random() < 0.02 and self.journal is not None and self.journal.lock.owner is None:
            hold(self)
        names = [name for name in self.threads if self._can_go_on(name) and (name != LEASE or name in self.tasks)]
        if "stream" in names:
            names.append("stream")
        for seldom in ("sweep", self.history.slow):
            if seldom in names and chance.random() > 0.2:
                names.remove(seldom)
        if names:
            self.go_on(chance.choice(names))

    def _can_go_on(self, name: str) -> bool:
        task = self.tasks.get(name)
        return not self.ending if task is None else task.runnable

    def go_on(self, name: str) -> Any:
        """What the step returned; None if it is not at its end. Raises what it raised."""
        task = self.tasks.get(name)
        if task is None:
            task = self.tasks[name] = Task(self.threads[name], self.world.newest())
        try:
            result = self.world.tasks.resume(task)
        except BaseException:
            self.tasks.pop(name, None)
            raise
        if task.done:
            self.tasks.pop(name, None)
            return result
        self.world.events["waited for a lock"] += task.waits_for is not None
        return None

    def kill(self) -> None:
        for task in self.tasks.values():
            task.killed = True
            self.world.tasks.kill(task, Crash("killed"))
        self.tasks, self.threads = {}, {}
