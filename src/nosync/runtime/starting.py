"""Starting in phases: check, fence, declare; then recover and take over; then epochs.

Promise: what the program, the home or the remote speak against is refused before anybody is fenced. Sources and sinks are called after: a
source goes on from what the run before has taken, and opening a sink shuts that run out of its target. If one of them fails, the run before
has ended all the same; this one says in HOME/status that it failed and why. `begin` comes back once this run alone may write and its
program is declared; what may take long is left to `Starting.recover`, which the run calls on the thread of its loop, and tests by hand.
"""

import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from nosync.duties.leading import Leading
from nosync.duties.troubles import Troubles
from nosync.journal.chain import Chain
from nosync.journal.entries import Declared, Keeping
from nosync.journal.image import Image
from nosync.journal.journal import Journal
from nosync.journal.names import source_folder
from nosync.journal.past import TieredReader
from nosync.journal.taken import taken_from
from nosync.model.errors import Invalid
from nosync.model.ladder import DEFAULT
from nosync.model.policies.table import policy_named
from nosync.model.policy import Policy
from nosync.model.run import this_process
from nosync.model.store import Remote
from nosync.recovery.check import is_whole
from nosync.recovery.preflight import history_of
from nosync.recovery.restore import Recovered, Report, check_recoverable, recover, unreported
from nosync.recovery.survey import doubtful
from nosync.recovery.suspicion import cleared, suspected
from nosync.runtime.change import OnChange, check_same_flow, check_settings
from nosync.runtime.epochs import Clock
from nosync.runtime.joining import Joining
from nosync.runtime.outlet import LayerOutlet
from nosync.runtime.program import Program, marks_of
from nosync.runtime.rebuilding import ProgramChange
from nosync.runtime.reporting import failing_start
from nosync.runtime.rescaling import rescale
from nosync.runtime.stepping import Stepping
from nosync.runtime.takeover import Takeover, Taking, check_choice
from nosync.runtime.unshared_home import UnsharedHome, check_unshared, is_unshared, serve_layers
from nosync.spark.engine import WIDE_BYTES, SparkEngine
from nosync.state.private import make_folder
from nosync.store.disk import LocalDisk
from nosync.tiers.host import synced_number


def begin(
    program: Program,
    home: Path,
    shards: int | None,
    remote: Remote | None = None,
    clock: Clock = time.time,
    wide_bytes: int = WIDE_BYTES,
    disk: LocalDisk | None = None,
    on_change: OnChange = "refuse",
    detached: bool = False,
    follows: int | None = None,
    leads: bool = False,
    joins: bool = False,
) -> "Starting":
    """Checks, fences every other run of the flow, and declares the program. Sources and sinks are open then.

    `follows`: the run stood by for one of that generation. `Conflict` where another has followed it already. `leads`: those who stand by
    hear of it from here on, until `Starting.leading` is stopped. `joins`: what is only added to the program may come when epochs go on.
    """
    disk = disk or LocalDisk(home.absolute())
    runner = this_process(clock())
    following = follows is not None
    check_start(program, disk, remote, shards, on_change, detached, runner.boot, tried=following)
    unshared = not following and is_unshared(program.spark, disk.root)
    journal = Journal(disk, remote, runner, detached, follows)
    home, troubles = disk.root, Troubles(clock)
    leading = Leading(journal, remote or disk, runner, troubles)
    if leads:
        leading.start()
    with failing_start(journal, disk, leading.stop):
        lost_under = policy_before(journal.image.declared, program.policy)
        program, shards, change = _declare(program, journal, shards, on_change, clock)
        engine = SparkEngine(program, str(home), journal.run, shards, wide_bytes)
        part = part_before(program, journal, change) if joins and not (unshared or following) and on_change == "rebuild" else None
        first = SparkEngine(part, str(home), journal.run, shards, wide_bytes) if part is not None else None
        starting = Starting(
            program, home, disk, remote, journal, engine, runner.boot, change, on_change, lost_under, clock, troubles, leading,
            executors_unasked=following, first=first,
        )  # fmt: skip
        starting.start_sources()
        starting.open_sinks()
        if unshared:
            starting.serve_layers()
    return starting


def make_home(home: Path) -> None:
    """`Invalid` says why there can be no such folder."""
    try:
        make_folder(home)
    except OSError as error:
        at = Path(error.filename or home)
        why = f'"{at}" is a file' if at.is_file() else f'"{at.parent}" is a file' if at.parent.is_file() else error.strerror or str(error)
        raise Invalid(f'home "{home}" cannot be made: {why}', hint="Pass a folder that can be written, or one to be made.") from None


def check_start(
    program: Program, disk: LocalDisk, remote: Remote | None, shards: int | None, on_change: OnChange, detached: bool, boot: str,
    tried: bool = False,
) -> Chain:  # fmt: skip
    """Before anybody is fenced: whether this program can go on with what is there, which it gives. Makes the folder of the home."""
    make_home(disk.root)
    chain = history_of(disk.root, disk, remote, detached, tried)
    found = _change(program, chain.image(), shards, on_change)
    if found is not None:
        doubted = doubtful(chain, synced_number(disk, chain), boot)
        shape = replace(found[0].shape(), policy=policy_before(chain.image().declared, program.policy))
        check_recoverable(chain, disk, remote, shape, partial(is_whole, disk.root), doubted)
    return chain


def policy_before(declared: Declared | None, chosen: Policy) -> Policy:
    """How the state of a home was protected, whatever is chosen now: that is what a recovery may go by."""
    return policy_named(declared.policy) if declared is not None else chosen


def _change(program: Program, image: Image, shards: int | None, on_change: OnChange) -> tuple[Program, ProgramChange] | None:
    """The program under the home's names, and what going on with it means for the state of an image; None where there is none yet."""
    if image.declared is None:
        return None
    program = program.named_after(image.declared)
    change = program.change(image.declared, shards or image.declared.shards)
    check_same_flow(image.declared, change.declaration, program.formerly)
    check_settings(image.declared.settings, change.declaration.settings, program.on_other_settings)
    if change.difference and image.epoch:
        on_change = "rebuild" if on_change == "refuse" and change.loses_nothing(image) else on_change
        check_choice(change, on_change, image)
    return program, change


def _declare(
    program: Program, journal: Journal, shards: int | None, on_change: OnChange, clock: Clock
) -> tuple[Program, int, ProgramChange | None]:
    """Records the program, unless it has to take over first: then with what that leads to."""
    found = _change(program, journal.image, shards, on_change)
    if found is None:
        declaration = program.declaration(shards or program.spark.sparkContext.defaultParallelism)
    else:
        program, change = found
        if journal.image.declared and change.declaration.shards != journal.image.declared.shards:
            rescale(journal, change.declaration.shards, clock())
        declaration = change.declaration
        if change.difference and journal.image.epoch:
            return program, declaration.shards, change
    if (before := journal.image.declared) is not None:
        declaration = replace(declaration, policy=before.policy)  # until all is recovered that was lost under it
    if before != declaration:
        journal.append(declaration)
    return program, declaration.shards, None


def part_before(program: Program, journal: Journal, change: ProgramChange | None) -> Program | None:
    """What the home has the state of, declared, where the program only adds views to that; else None."""
    before = journal.image.declared
    part = program.without(change.targets) if before is not None and change is not None and change.only_adds else None
    if before is None or change is None or part is None:
        return None
    rest = part.change(before, change.declaration.shards)
    if rest.difference or rest.declaration.settings != before.settings:
        return None
    declaration = replace(rest.declaration, policy=before.policy)
    if declaration != before:
        journal.append(declaration)
    return part


@dataclass
class Starting:
    """A run that is fenced and declared, and has yet to put its state together. `lost_under`: how the state was protected until now.
    `executors_unasked`: it followed a run that may hold every core, which it gives back only once it is fenced. `first`: what computes
    epochs until what is new in the program has joined (see `joining`).
    """

    program: Program
    home: Path
    disk: LocalDisk
    remote: Remote | None
    journal: Journal
    engine: SparkEngine
    boot: str
    change: ProgramChange | None
    on_change: OnChange
    lost_under: Policy
    clock: Clock
    troubles: Troubles
    leading: Leading
    executors_unasked: bool = False
    unshared: UnsharedHome | None = None
    first: SparkEngine | None = None

    @property
    def run(self) -> str:
        return self.journal.run

    @property
    def image(self) -> Image:
        return self.journal.image

    def serve_layers(self) -> None:
        """From here on, tasks write layers where they run."""
        check_unshared(self.program.sources, self.disk)
        self.unshared = serve_layers(self.program.spark, self.journal, self.disk)
        self.engine.context.sharing = self.unshared.sharing

    def start_sources(self) -> None:
        sources, base = self.program.sources, self.journal.base
        reader, records = TieredReader(self.disk, self.remote), self.journal.after(base)
        found = taken_from(sources, reader, base, records, marks_of(sources), self.image.skipped)
        for name, source in sources.items():
            source.start(self.home / source_folder(name), found[name])

    def open_sinks(self) -> None:
        self.outlet = LayerOutlet(self.program, self.journal, str(self.home))

    def recover(self, report: Report = unreported) -> Stepping:
        """Puts the newest state together from all tiers, lets a changed program take over, and is ready for epochs."""
        if self.executors_unasked and is_unshared(self.program.spark, self.home):
            self.serve_layers()
        recovered = self._recover(report)
        if recovered.rolled_back:
            self.start_sources()
        arrivals = self.unshared.arrivals if self.unshared is not None else None
        taking = Taking(self.journal, self.disk, self.remote, self.engine, report, self.engine, arrivals, self.engine)
        takeover, joining = Takeover(), None
        if self.change is not None and self.first is not None:
            joining = Joining(self.change, taking, self.journal, self.engine, self.troubles)
        elif self.change is not None:
            takeover = taking.take_over(self.change, self.on_change)
        self._declare_policy()
        self._declare_keep()
        return Stepping(
            self.program, self.home, self.disk, self.remote, self.journal, self.first or self.engine, self.outlet, self.troubles,
            recovered, takeover, self.clock, lambda: bool(self.leading.standbys), self.unshared, joining,
        )  # fmt: skip

    def _declare_policy(self) -> None:
        """From here on, what is lost is lost under the policy of this run."""
        declared = self.image.declared
        if declared is not None and declared.policy != self.program.policy.name:
            self.journal.append(replace(declared, policy=self.program.policy.name))

    def _declare_keep(self) -> None:
        """What this run was told to keep; else what those before were, at first the default."""
        keep = self.program.keep.said if self.program.keep else self.image.keep or DEFAULT.said
        if keep != self.image.keep:
            self.journal.append(Keeping(keep))

    def _recover(self, report: Report) -> Recovered:
        doubted = doubtful(self.journal.chain, synced_number(self.disk, self.journal.chain), self.boot)
        doubted |= suspected(self.disk, self.image)
        shape, whole = replace(self.program.shape(), policy=self.lost_under), partial(is_whole, self.home)
        done = recover(self.journal, self.disk, self.remote, self.engine, shape, whole, doubted, report)
        cleared(self.disk)
        return done


def started_facts(starting: Starting, seconds: float) -> dict[str, Any]:
    """What a run says of itself when it is ready."""
    program, declared = starting.program, starting.image.declared
    counts = {"sources": len(program.sources), "views": len(program.graph.views), "sinks": len(program.sinks)}
    counts["shards"] = declared.shards if declared else 0
    return {"home": str(starting.home), "seconds": seconds, "ui": program.spark.sparkContext.uiWebUrl, **counts}
