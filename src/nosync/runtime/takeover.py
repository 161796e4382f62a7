"""A changed program takes over: what is new or changed is rebuilt from all input, or begins empty; the rest keeps its state.

Promise: until the one record that says so is there, the home belongs to the program before; a crash or a failing query leaves it at that.
Where something is only added, the rest goes on meanwhile (see `joining`).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from nosync.journal.entries import TakenOver
from nosync.journal.image import Image
from nosync.journal.journal import Journal
from nosync.model.engine import Engine
from nosync.model.errors import Invalid
from nosync.model.identifiers import NO_EPOCH, Epoch
from nosync.model.store import Disk, Remote
from nosync.peers.arrivals import Arrivals
from nosync.recovery.restore import Report
from nosync.runtime.change import Difference, OnChange, base
from nosync.runtime.job_progress import Watched
from nosync.runtime.rebuilding import ProgramChange, Rebuild, Rewriter
from nosync.tiers.host import HostTier


@dataclass(frozen=True)
class Takeover:
    """What a changed program found. Empty where it was the same."""

    epoch: Epoch = NO_EPOCH
    kept: tuple[str, ...] = ()
    rebuilt: tuple[str, ...] = ()
    emptied: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


def taken_over(takeover: Takeover) -> str:
    """What became of the state of a changed program, in one line; empty where it was the same."""
    kinds = (("rebuilt", takeover.rebuilt), ("begun empty", takeover.emptied), ("dropped", takeover.dropped), ("kept", takeover.kept))
    done = [f"{', '.join(names)} {kind}" for kind, names in kinds if names]
    return f"the program has changed at epoch {takeover.epoch}: {'; '.join(done)}" if takeover.epoch else ""


def check_possible(change: ProgramChange, on_change: OnChange, image: Image) -> None:
    """Refuses what could not be carried out, before anybody is fenced."""
    known = image.declared.sinks if image.declared else {}
    for sink in change.sinks if on_change == "rebuild" else ():
        if sink in known:
            raise Invalid(
                f'sink "{sink}" cannot be rebuilt: its target has what the query before gave',
                hint='Give the sink another name and an empty target: it gets all rows at once, then changes. Or pass on_change="discard" '
                "to send only what changes from now on. Where columns only have other names or places, select them for the sink as before.",
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


def impossible(change: ProgramChange, image: Image) -> dict[OnChange, Invalid]:
    """The ways to go on with a changed program that could not be carried out, and why."""
    found: dict[OnChange, Invalid] = {}
    choices: tuple[OnChange, ...] = ("rebuild", "discard")
    for choice in choices:
        try:
            check_possible(change, choice, image)
        except Invalid as error:
            found[choice] = error
    return found


def check_choice(change: ProgramChange, on_change: OnChange, image: Image) -> None:
    """Refuses to go on with a changed program unless the caller said how, and unless that is possible; with the ways that are."""
    not_so, found = impossible(change, image), change.difference
    if len(not_so) == 2:
        reasons = "; ".join(f'on_change="{choice}": {error.message}' for choice, error in not_so.items())
        known = [f'"{sink}"' for sink in change.sinks if image.declared is not None and sink in image.declared.sinks]
        first = f'Select for sink {", ".join(known)} what it had; or, with "rebuild", give it another name and an empty target; or use'
        raise Invalid(
            f"the program has changed since epoch {image.epoch}: {found}. No way to go on is possible: {reasons}",
            hint=f"{first if known else 'Use'} a new home. flow.explain(home=...) says why, part by part.",
        )
    if on_change in not_so:
        raise not_so[on_change]
    if on_change == "refuse" and found:
        raise Invalid(f"the program has changed since epoch {image.epoch}: {found}", hint=_ways_on(found, image.epoch, not_so))


def _ways_on(found: Difference, epoch: Epoch, not_so: Mapping[OnChange, Invalid]) -> str:
    keeping = f"{len(found.kept)} of {len(found.kept) + len(found.fresh)} operators keep their state"
    ways = {
        "rebuild": f'on_change="rebuild" to compute what is new or changed from the input of epochs 1 to {epoch} ({keeping})',
        "discard": 'on_change="discard" to let it begin empty with the next epoch',
    }
    open_ones = [way for choice, way in ways.items() if choice not in not_so]
    closed = [f'on_change="{choice}" is not possible: {error.message}. ' for choice, error in not_so.items()]
    said = f"Pass {', '.join(open_ones)}, or use a new home. {''.join(closed)}"
    return f"{said}The state of what is gone is dropped. flow.explain(home=...) says why, part by part."


@dataclass
class Taking:
    """Carries a change out."""

    journal: Journal
    disk: Disk
    remote: Remote | None
    engine: Engine
    report: Report
    watched: Watched | None = None
    arrivals: Arrivals | None = None
    rewriter: Rewriter | None = None

    def take_over(self, change: ProgramChange, on_change: OnChange) -> Takeover:
        """At once: nothing else is computed meanwhile."""
        if on_change == "discard" or not change.targets:
            return self.record(change, None)
        if self.arrivals is not None:
            self.arrivals.catch_up()
        rebuild = self.rebuild(change)
        rebuild.go_on()
        return self.record(change, rebuild)

    def rebuild(self, change: ProgramChange) -> Rebuild:
        return Rebuild(change, self.journal, self.disk, self.remote, self.engine, self.report, self.watched, self.rewriter)

    def record(self, change: ProgramChange, rebuild: Rebuild | None) -> Takeover:
        """The program takes over behind the newest epoch, as far as which a rebuild has come."""
        epoch, found = self.journal.image.epoch, change.difference
        layers, seen = (rebuild.layers, rebuild.times) if rebuild is not None else ((), [])
        self._sync()  # no restart of the host may lead back behind this
        first = Epoch(1) if change.stepwise else epoch
        begun = dict.fromkeys(change.targets, first if rebuild is not None else epoch + 1)
        begun |= {trace: view.begun(self.journal.image) for trace, view in rebuild.rewritten.items()} if rebuild is not None else {}
        released = dict.fromkeys(change.sinks, first - 1 if rebuild is not None else epoch)
        self.journal.append(change.declaration, TakenOver(epoch, layers, begun, rebuild is None, released, seen))
        self._sync()  # nor make it undone once a sink has something of it
        fresh = found.fresh
        return Takeover(epoch, found.kept, fresh if rebuild is not None else (), () if rebuild is not None else fresh, found.gone)

    def _sync(self) -> None:
        """All that is recorded by now; what tasks have written elsewhere is brought home first."""
        if self.arrivals is not None:
            self.arrivals.catch_up()
        HostTier(self.journal, self.disk).step()
