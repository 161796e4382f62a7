"""Carrying out a plan: fetch what the remote has, recompute what nobody has, record both.

Everything here can be interrupted and begun again: files are fetched under their own names, recomputed layers count once they are recorded.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from nosync.journal.chain import Chain
from nosync.journal.entries import Entry, Restored, RolledBack
from nosync.journal.image import Image
from nosync.journal.journal import Journal
from nosync.journal.past import TieredReader, whole_image
from nosync.journal.record import Record
from nosync.model.engine import CoversOf, Engine
from nosync.model.errors import Conflict, Corrupt
from nosync.model.hash_range import HashRange, remainder
from nosync.model.identifiers import NO_EPOCH, Epoch, RecordNumber, TraceName, epochs
from nosync.model.layers import Covers, Kind, LayerInfo
from nosync.model.status import Recovery
from nosync.model.store import Disk, Remote, fingerprint
from nosync.recovery.plan import Plan, Shape, plan, recorded
from nosync.recovery.progress import RecoveryProgress, parts_of
from nosync.recovery.recompute import Recompute
from nosync.recovery.survey import Verify, intact, survey
from nosync.recovery.suspicion import suspect

Report = Callable[[Recovery], None]


def unreported(progress: Recovery) -> None:
    """For those who do not watch."""


@dataclass
class Recovered:
    """What a recovery did. `layers` are what the newest state needs, `fetched` files came from the remote, `recomputed` layers from input.

    `missing_from` is the first epoch of which something was missing everywhere; 0 for none. `different` are traces that came out otherwise
    than they are on record: something in the flow is not deterministic.
    """

    epoch: Epoch = NO_EPOCH
    layers: int = 0
    fetched: int = 0
    fetched_bytes: int = 0
    recomputed: int = 0
    recomputed_epochs: int = 0
    missing_from: int = 0
    rolled_back: int = 0
    jobs: int = 0
    different: tuple[TraceName, ...] = ()


def recover(
    journal: Journal,
    disk: Disk,
    remote: Remote | None,
    engine: Engine,
    shape: Shape,
    verify: Verify,
    doubted: frozenset[str],
    report: Report = unreported,
) -> Recovered:
    """Makes the newest epoch that can be reached readable from the home. `doubted` files may be torn (see `survey.doubtful`).

    Traces that the shape does not know are left alone: a changed program has no use for them. `report` is called before each file and
    each job, and may raise to give up: begun again, the recovery goes on from there.
    """
    report(Recovery("looking at what is there"))
    with journal.lock:  # in the middle of a run others go on recording, and roll up
        known, base = journal.snapshot()
        records = journal.after(base)
    image = known.only(shape.feeders)
    done = Recovered(layers=len(image.newest_layers()), epoch=image.epoch)
    if intact(image, disk, doubted, _needed(image)):
        _forget_torn(journal, disk, remote, _torn(image, disk, doubted, verify))
        return done
    candidate, chosen = _choose(image, base, records, disk, remote, shape, verify, doubted)
    for name in _torn(candidate, disk, doubted, verify):
        disk.delete(name)
    try:
        _Restoration(journal, disk, remote, engine, verify, report, done, shape).run(candidate, chosen)
    except Corrupt as error:
        suspect(disk, error)
        raise
    return done


def _torn(image: Image, disk: Disk, doubted: frozenset[str], verify: Verify) -> list[str]:
    """Files that a restart of the host has torn: of no use to anybody."""
    return [layer.path for layer in image.layers() if layer.path in doubted and disk.exists(layer.path) and not verify(layer)]


def _forget_torn(journal: Journal, disk: Disk, remote: Remote | None, torn: list[str]) -> None:
    """Of the newest state all is there. What was made beside it lately may be torn, and what it was made of is there still."""
    away = remote.there(torn) if remote is not None and torn else set[str]()
    for name in torn:
        disk.delete(name)
    if lost := [name for name in torn if name not in away]:
        journal.append(Restored(tuple(lost), ()))


def check_recoverable(chain: Chain, disk: Disk, remote: Remote | None, shape: Shape, verify: Verify, doubted: frozenset[str]) -> None:
    """Raises where a start that goes on with this history could not put its state together. Nothing is written: asked before anybody is
    fenced.
    """
    image = chain.image().only(shape.feeders)
    if not intact(image, disk, doubted, _needed(image)):
        _choose(image, chain.base, chain.records, disk, remote, shape, verify, doubted)


def check_whole(chain: Chain, disk: Disk, verify: Verify, doubted: frozenset[str]) -> None:
    """`Conflict` where a start would have something to put together first: for what goes on with a home and recovers nothing. Nothing is
    written.
    """
    image = chain.image()
    marks = {name: mark for entry in image.opened.values() for name, mark in entry.files.items() if name in doubted}
    torn = {name for name, mark in marks.items() if fingerprint(disk.read(name) or b"") != mark}
    if not intact(image, disk, frozenset([*torn, *_torn(image, disk, doubted, verify)]), _needed(image)):
        raise Conflict(
            "something of the newest state is missing here, or was torn by a restart of the host",
            hint="Start the flow on this home first: that puts its state together again.",
        )


def _choose(
    image: Image,
    base: RecordNumber,
    records: Sequence[Record],
    disk: Disk,
    remote: Remote | None,
    shape: Shape,
    verify: Verify,
    doubted: frozenset[str],
) -> tuple[Image, Plan]:
    """The plan, and the image that it speaks of: the one at hand; if that does not do, one with all the past in it."""
    found = plan(image, survey(image, disk, remote, doubted, verify), shape)
    if found is not None and found.epoch == image.epoch and not found.jobs:
        return image, found
    whole = whole_image(TieredReader(disk, remote), image, base, records)
    found = plan(whole, survey(whole, disk, remote, doubted, verify), shape)
    if found is not None:
        return whole, found
    raise Corrupt(
        "the state cannot be put together again: layers are missing on every tier, and " + _why(shape),
        hint="`nosync fsck HOME` says what is missing. Start with a new home to compute everything from the input that is there.",
    )


def _why(shape: Shape) -> str:
    return "their input was trimmed" + (", or a function that is not deterministic has made them" if shape.unrepeatable else "")


def _needed(image: Image) -> Iterable[str]:
    """Besides the newest covers, which have all outputs in them: input of epochs to come."""
    return (name for epoch, entry in image.opened.items() if epoch > image.epoch for name in entry.files)


@dataclass
class _Restoration:
    journal: Journal
    disk: Disk
    remote: Remote | None
    engine: Engine
    verify: Verify
    report: Report
    done: Recovered
    shape: Shape

    def run(self, image: Image, chosen: Plan) -> None:
        """`image` knows all layers that the plan speaks of."""
        self.steps = RecoveryProgress(image, chosen)
        self._clear(chosen.torn)
        self._fetch(chosen.fetch, {layer.path: layer for layer in image.layers()})
        entries: list[Entry] = []
        if (kept := _kept(image, chosen)) < image.last_opened:
            self.done.rolled_back = image.last_opened - chosen.opened
            entries += [RolledBack(kept), *(image.opened[epoch] for epoch in epochs(kept + 1, chosen.opened))]
        before_loss, image = image, image.copy()
        image.apply(image.number, Restored(chosen.lost, ()))
        lost, made = list(chosen.lost), list[LayerInfo]()
        for job in chosen.jobs:
            self.report(self.steps.before_job(job))
            before = _as_of(image, made, job, self.shape.records)
            openings = [image.opened[epoch] for epoch in epochs(job.first, job.last)]
            layers = list(self.engine.compute(openings, before, job.targets, image.seen_before).layers)
            layers += self._blanks(job, layers, {layer.trace: layer.kind for layer in before_loss.layers()})
            vanished = _vanished(image, job, layers, frozenset(chosen.gone))
            image.apply(image.number, Restored(vanished, ()))
            lost += vanished
            made += layers
            self.done.recomputed_epochs += job.last - job.first + 1
        if lost or made:
            found = [layer for layer in chosen.found if layer.path not in lost]
            entries.append(Restored(tuple(lost), (*found, *made)))
        if entries:
            self.journal.append(*entries)  # at once: after a kill in between nobody would know what was to be opened or made again
        self.done.different = differing(before_loss.layers(), made)
        self.done.missing_from = min((layer.lower for layer in chosen.missing), default=0)
        self.done.epoch, self.done.recomputed, self.done.jobs = self.journal.image.epoch, len(made), len(chosen.jobs)

    def _blanks(self, job: Recompute, made: Sequence[LayerInfo], kinds: Mapping[str, Kind]) -> list[LayerInfo]:
        """Where several epochs were computed as one and came to nothing, a layer says so: epochs between cannot be read any more."""
        if job.first == job.last:
            return []
        silent = [
            (trace, held) for trace, wanted in parts_of(job)
            for held in remainder(wanted, [layer.range for layer in made if layer.trace == trace])
        ]  # fmt: skip
        return [self.engine.blank(trace, held, job.first, job.last + 1, kinds[trace]) for trace, held in silent]

    def _fetch(self, names: Sequence[str], layers: dict[str, LayerInfo]) -> None:
        if not names:
            return
        assert self.remote is not None
        self.report(self.steps.before_file(0))
        for number, (name, there) in enumerate(self.remote.download_all(names, self.disk)):
            self.report(self.steps.before_file(number))
            if not there:
                raise Corrupt(f'"{name}" vanished from the remote', hint="Start again: what is left is surveyed anew.")
            if name in layers and not self.verify(layers[name]):
                self.disk.delete(name)  # first: nobody verifies again what is here
                self.journal.look()  # what a newer run has put there instead is not ours to delete
                self.remote.delete(name)
                raise Corrupt(f'"{name}" on the remote is damaged and was removed there', hint="Start again: it will be recomputed.")
            self.done.fetched_bytes += layers[name].bytes if name in layers else 0
        self.disk.sync_folders(names)
        self.done.fetched = len(names)

    def _clear(self, torn: Sequence[str]) -> None:
        for name in torn:
            self.disk.delete(name)
        self.disk.sync_folders(torn)


def differing(recorded: Iterable[LayerInfo], made: Sequence[LayerInfo]) -> tuple[TraceName, ...]:
    """Traces of which layers were made again with other bytes: the same input must give the same rows."""
    again = {_span(layer): layer.checksum for layer in made}
    found = {layer.trace for layer in recorded if again.get(_span(layer), layer.checksum) != layer.checksum}
    return tuple(sorted(found))


def _span(layer: LayerInfo) -> tuple[TraceName, HashRange, Epoch, Epoch]:
    return layer.trace, layer.range, layer.lower, layer.upper


def _kept(image: Image, chosen: Plan) -> Epoch:
    """The last epoch that stays as it was opened, and computed if it was."""
    return chosen.epoch if chosen.epoch < image.epoch else chosen.opened


def _vanished(image: Image, job: Recompute, made: Iterable[LayerInfo], gone: frozenset[str]) -> tuple[str, ...]:
    """Layers that stand for no epoch any more: of several epochs that were computed as one, since some of their neighbours are lost and may
    have undone what they say; of one that came to nothing; and those without a file, now that there is one again.
    """
    again = {(layer.trace, layer.range) for layer in made} if job.last == job.first else ()
    parts = [((trace, held), layers) for trace in job.targets for held, layers in image.traces.get(trace, {}).items()]
    inside = [(part, layer) for part, layers in parts for layer in layers if job.replaces(layer)]
    return tuple(layer.path for part, layer in inside if part not in again or layer.path in gone)


def _as_of(image: Image, made: Sequence[LayerInfo], job: Recompute, records: frozenset[TraceName]) -> CoversOf:
    """Covers as of before the job, recomputed layers among them; of records, what they hold of its epochs."""
    known = replace(image.copy(), epoch=NO_EPOCH - 1)  # so that covers are put together for the epoch asked for
    for layer in made:
        known.traces.setdefault(layer.trace, {}).setdefault(layer.range, []).append(layer)

    def covers(trace: TraceName) -> Covers:
        if trace not in records:
            return known.covers(trace, job.first - 1)
        ranges = known.traces.get(trace, {})
        return {held: tuple(recorded({(trace, held): layers}, job, records)) for held, layers in ranges.items()}

    return covers
