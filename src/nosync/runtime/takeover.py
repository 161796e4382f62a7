"""A changed program takes over: what is new or changed is rebuilt from all input, or begins empty; the rest keeps its state.

Promise: until the one record that says so is there, the home belongs to the program before; a crash or a failing query leaves it at that.
Rebuilding goes the way of recovery: all epochs as one job that writes the traces wanted and no other (epoch by epoch where that matters).
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial

from nosync.journal.entries import Declared, Opened, TakenOver
from nosync.journal.image import RECENT, Image
from nosync.journal.journal import Journal
from nosync.journal.past import TieredReader, openings
from nosync.model.engine import CoversOf, Engine, Targets
from nosync.model.errors import Corrupt, Invalid
from nosync.model.hash_range import HashRange
from nosync.model.identifiers import NO_EPOCH, Epoch, TraceName
from nosync.model.layers import LayerInfo
from nosync.model.status import Recovery
from nosync.model.store import Disk, Remote
from nosync.model.watermark import newest
from nosync.recovery.restore import Report
from nosync.runtime.change import Difference, OnChange, base
from nosync.runtime.job_progress import Watched, reporting
from nosync.state.cover import cover
from nosync.tiers.host import HostTier


@dataclass(frozen=True)
class ProgramChange:
    """A program that is to take over. `targets` are the traces and shards without state, `upstream` those and all they are computed from;
    `sources` feed them, `sinks` are those without a past. `doubts` say why operators cannot begin empty, `recorded` ones of `upstream`
    cannot be computed again, `bare` ones without the input from before the flow's state was imported.
    """

    declaration: Declared
    difference: Difference
    targets: Targets
    upstream: Targets
    sources: frozenset[str]
    sinks: tuple[str, ...]
    stepwise: bool
    doubts: Mapping[str, str]
    recorded: tuple[str, ...] = ()
    bare: tuple[str, ...] = ()


@dataclass(frozen=True)
class Takeover:
    """What a changed program found. Empty where it was the same."""

    epoch: Epoch = NO_EPOCH
    kept: tuple[str, ...] = ()
    rebuilt: tuple[str, ...] = ()
    emptied: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


def check_possible(change: ProgramChange, on_change: OnChange, image: Image) -> None:
    """Refuses what could not be carried out, before anybody is fenced."""
    known = image.declared.sinks if image.declared else {}
    for sink in change.sinks if on_change == "rebuild" else ():
        if sink in known:
            raise Invalid(
                f'sink "{sink}" cannot be rebuilt: its target has what the query before gave',
                hint='Give the sink another name and an empty target: it gets all rows at once, then changes. Or pass on_change="discard" '
                "to send only what changes from now on.",
            )
    trimmed = {source: image.trimmed[source] for source in sorted(change.sources) if image.trimmed.get(source)}
    if on_change == "rebuild" and trimmed:
        source, epoch = next(iter(trimmed.items()))
        names = ", ".join(f'"{base(name)}"' for name in change.difference.fresh)
        raise Invalid(
            f'{names} cannot be rebuilt: the input of "{source}" up to epoch {epoch} was deleted once it was no longer needed',
            hint='Pass on_change="discard" to let it begin empty, or start on a new home with all input.',
        )
    if on_change == "rebuild" and change.recorded:
        raise Invalid(
            f'"{base(change.recorded[0])}" is not deterministic: neither it nor what is new behind it can be computed again',
            hint='Pass on_change="discard", or start on a new home.',
        )
    if on_change == "rebuild" and change.bare:
        raise Invalid(
            f'"{base(change.bare[0])}" cannot be rebuilt: of what came before the import only the imported state is there',
            hint='Pass on_change="discard" to let it begin empty, or start on a new home with all input.',
        )
    if on_change == "discard" and change.doubts:
        name, reason = next(iter(change.doubts.items()))
        raise Invalid(f'"{base(name)}" cannot begin empty: {reason}', hint='Pass on_change="rebuild".')


@dataclass
class Taking:
    """Carries a change out."""

    journal: Journal
    disk: Disk
    remote: Remote | None
    engine: Engine
    report: Report
    watched: Watched | None = None

    def take_over(self, change: ProgramChange, on_change: OnChange) -> Takeover:
        epoch, found = self.journal.image.epoch, change.difference
        rebuilding = on_change == "rebuild" and bool(change.targets)
        layers, seen = self._rebuilt(change, epoch) if rebuilding else ((), [])
        host = HostTier(self.journal, self.disk)
        host.step()  # no restart of the host may lead back behind this
        first = Epoch(1) if change.stepwise else epoch
        begun = dict.fromkeys(change.targets, first if rebuilding else epoch + 1)
        released = dict.fromkeys(change.sinks, first - 1 if rebuilding else epoch)
        self.journal.append(change.declaration, TakenOver(epoch, layers, begun, not rebuilding, released, seen))
        host.step()  # nor make it undone once a sink has something of it
        fresh = found.fresh
        return Takeover(epoch, found.kept, fresh if rebuilding else (), () if rebuilding else fresh, found.gone)

    def _rebuilt(self, change: ProgramChange, epoch: Epoch) -> tuple[tuple[LayerInfo, ...], list[tuple[Epoch, dict[str, int]]]]:
        """The layers of all epochs up to this one, of the traces that the change asks for, and the event times of the last."""
        names = ", ".join(base(name) for name in change.difference.fresh)
        self._report(change, f"rebuilding {names} from epochs 1 to {epoch}")
        reader = TieredReader(self.disk, self.remote)
        known = [entry for entry in openings(reader, self.journal.base, self.journal.after(self.journal.base)) if entry.epoch <= epoch]
        self._fetch(known)
        if not change.stepwise:
            with self._watching(change, names, epoch):
                return self.engine.compute(known, lambda trace: {}, change.targets).layers, []
        made: list[LayerInfo] = []
        seen: dict[Epoch, dict[str, int]] = {NO_EPOCH: {}}  # after each epoch
        for entry in known:
            self._report(change, f"rebuilding {names}, epoch {entry.epoch} of {epoch}", entry.epoch - 1, epoch)
            outcome = self.engine.compute([entry], _as_of(made, entry.epoch - 1), change.upstream, lambda epoch: seen.get(epoch - 1, {}))
            made += outcome.layers
            seen[entry.epoch] = newest(seen[entry.epoch - 1], outcome.seen)
        times = [(number, found) for number, found in seen.items() if found]
        return tuple(layer for layer in made if layer.trace in change.targets), times[-RECENT:]

    def _report(self, change: ProgramChange, what: str, done: int = 0, tasks: int = 0) -> None:
        self.report(Recovery(what, shards=sum(map(len, change.targets.values())), tasks_done=done, tasks=tasks))

    def _watching(self, change: ProgramChange, names: str, epoch: Epoch) -> AbstractContextManager[None]:
        """One job for all epochs may take long: it says how far it is, and is given up when the run shall stop."""
        what = f"rebuilding {names} from epochs 1 to {epoch}"
        return reporting(self.watched, partial(self._report, change, what)) if self.watched is not None else nullcontext()

    def _fetch(self, entries: Sequence[Opened]) -> None:
        """Input of ours that a lost disk took along."""
        for name in (name for entry in entries for name in entry.files):
            if not self.disk.exists(name) and (self.remote is None or not self.remote.download(name, self.disk)):
                raise Corrupt(f'input "{name}" is gone', hint='Pass on_change="discard", or put it back.')


def _as_of(made: Sequence[LayerInfo], epoch: Epoch) -> CoversOf:
    """Covers from what was made so far."""
    made_in: dict[TraceName, dict[HashRange, list[LayerInfo]]] = {}
    for layer in made:
        made_in.setdefault(layer.trace, {}).setdefault(layer.range, []).append(layer)
    return lambda trace: {held: cover(layers, epoch) for held, layers in made_in.get(trace, {}).items()}
