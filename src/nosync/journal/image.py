"""What a journal says: a fold over its records, and nothing else.

The image of a long history stays small: it has the layers that nobody has given up, which are few (see `state.folding`), and `forget_past`
leaves of the epochs what is under way. What was forgotten is still in the segments of the journal (see `past`).
"""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from nosync.journal.entries import (
    Computed,
    Declared,
    Entry,
    GivenUp,
    Keeping,
    Merged,
    Opened,
    Pinned,
    Reached,
    Released,
    Releasing,
    Rescaled,
    Restored,
    RolledBack,
    Skipped,
    Started,
    Swept,
    TakenOver,
    Thinned,
    Trimmed,
    Unpinned,
)
from nosync.model.hash_range import HashRange, joined
from nosync.model.identifiers import NO_EPOCH, NO_RECORD, Epoch, RecordNumber, TraceName
from nosync.model.layers import Covers, LayerInfo
from nosync.model.retention import ALL_EPOCHS, Kept
from nosync.model.watermark import newest
from nosync.state.cover import covers_of, with_layers

RECENT = 16  # epochs whose event times are kept
MOST_TIMES = 4096  # of epochs, in a roll-up


class Begun(NamedTuple):
    """From where on a trace of a changed program has a history: an epoch, and the record that says so. `empty`: it was not rebuilt."""

    epoch: Epoch
    number: RecordNumber
    empty: bool


@dataclass
class Image:
    """The flow as of record `number`. `epoch` is the newest computed one, 0 before the first.

    `history` is the run that began it all: what distinguishes this line of history from any other, also of a flow of the same name."""

    number: RecordNumber = NO_RECORD
    history: str = ""
    declared: Declared | None = None
    started: Started | None = None
    opened: dict[Epoch, Opened] = field(default_factory=dict)
    opened_in: dict[Epoch, RecordNumber] = field(default_factory=dict)
    computed: dict[Epoch, Computed] = field(default_factory=dict)
    computed_in: dict[Epoch, RecordNumber] = field(default_factory=dict)
    epoch: Epoch = NO_EPOCH
    traces: dict[TraceName, dict[HashRange, list[LayerInfo]]] = field(default_factory=dict)
    newest: dict[TraceName, Covers] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    rejected: dict[str, int] = field(default_factory=dict)
    kept_layers: int = 0
    kept_bytes: dict[TraceName, int] = field(default_factory=dict)
    reached: dict[str, Epoch] = field(default_factory=dict)
    releasing: dict[str, tuple[Epoch, bool]] = field(default_factory=dict)
    released: dict[str, Epoch] = field(default_factory=dict)
    trimmed: dict[str, Epoch] = field(default_factory=dict)
    trim_done: dict[str, Epoch] = field(default_factory=dict)
    skipped: dict[str, dict[str, Epoch]] = field(default_factory=dict)
    swept: tuple[int, Epoch] = (0, NO_EPOCH)
    keep: str = ""
    kept: Kept = ALL_EPOCHS
    pins: dict[str, Epoch] = field(default_factory=dict)
    times: dict[Epoch, float] = field(default_factory=dict)
    seen: dict[Epoch, dict[str, int]] = field(default_factory=dict)
    begun: dict[TraceName, Begun] = field(default_factory=dict)

    def apply(self, number: RecordNumber, entry: Entry) -> None:
        self.number = number
        match entry:
            case Declared():
                self.declared = entry
                self._keep(frozenset(entry.feeders))
            case Started():
                if self.started is not None and self.started.remote != entry.remote:
                    self.reached = {}
                self.started = entry
                self.history = self.history or entry.run
            case Opened():
                self.opened[entry.epoch] = entry
                self.times[entry.epoch] = entry.at
                self.opened_in[entry.epoch] = number
            case Computed():
                self.epoch = entry.epoch
                self.computed[entry.epoch] = entry
                self.computed_in[entry.epoch] = number
                if entry.seen:
                    self.seen[entry.epoch] = entry.seen
                self._count(entry, 1)
                self._add(entry.layers)
            case Merged():
                self._add((entry.layer,))
            case Restored():
                self._lose(frozenset(entry.lost))
                self._replace(entry.layers)
                self._reached_at_most(min((layer.lower - 1 for layer in entry.layers), default=self.epoch))
            case TakenOver():
                self._replace(entry.layers)
                self._reached_at_most(min((layer.lower - 1 for layer in entry.layers), default=self.epoch))
                self.begun |= {trace: Begun(epoch, number, entry.empty) for trace, epoch in entry.begun.items()}
                self.released |= entry.released
                self.releasing = {sink: found for sink, found in self.releasing.items() if sink not in entry.released}
                self.seen |= {epoch: newest(self.seen.get(epoch, {}), seen) for epoch, seen in entry.seen}
            case RolledBack():
                self._roll_back(entry.epoch)
                self._reached_at_most(entry.epoch)
            case Reached():
                self.reached[entry.tier] = entry.epoch
            case Releasing():
                self.releasing[entry.sink] = (entry.epoch, entry.together)
            case Released():
                self.released[entry.sink] = entry.epoch
            case Trimmed():
                self.trimmed[entry.source], self.trim_done[entry.source] = entry.epoch, entry.done
            case Skipped():
                self.skipped[entry.source] = entry.names | self.skipped.get(entry.source, {})
            case Swept():
                self.swept = (entry.generation, entry.epoch)
            case Thinned():
                self.kept = self.kept.less(entry.since, entry.among, entry.gone)
                self.times = {epoch: at for epoch, at in self.times.items() if epoch in self.kept}
            case Keeping():
                self.keep = entry.keep
            case Pinned():
                self.pins[entry.name] = entry.epoch
            case Unpinned():
                self.pins.pop(entry.name, None)
            case GivenUp():
                self._lose(frozenset(entry.paths))
                self._narrow(entry.parts)
            case Rescaled():
                self.declared = replace(self.declared, shards=entry.shards) if self.declared else None

    def _reached_at_most(self, epoch: Epoch) -> None:
        """What comes after is on no tier until a run says so."""
        self.reached = {tier: min(epoch, reached) for tier, reached in self.reached.items()}

    def _add(self, layers: Iterable[LayerInfo]) -> None:
        """Adds layers to their traces, and to the newest covers in the place of what they collapse."""
        plain: dict[TraceName, list[LayerInfo]] = {}
        for layer in layers:
            self.traces.setdefault(layer.trace, {}).setdefault(layer.range, []).append(layer)
            self.kept_layers += 1
            self.kept_bytes[layer.trace] = self.kept_bytes.get(layer.trace, 0) + layer.bytes
            if not layer.versions:
                plain.setdefault(layer.trace, []).append(layer)
        for trace, found in plain.items():
            self.newest[trace] = with_layers(self.newest.get(trace, {}), found)

    def _replace(self, layers: Iterable[LayerInfo]) -> None:
        """Adds layers that need not fit between the others; covers are put together anew."""
        changed = list(layers)
        for layer in changed:
            known = self.traces.setdefault(layer.trace, {}).setdefault(layer.range, [])
            if all(layer.path != other.path for other in known):
                known.append(layer)
                self.kept_layers += 1
                self.kept_bytes[layer.trace] = self.kept_bytes.get(layer.trace, 0) + layer.bytes
        for trace in {layer.trace for layer in changed}:
            self.newest[trace] = covers_of(self.traces[trace], self.epoch)

    def _lose(self, paths: frozenset[str]) -> None:
        """Covers are put together anew from what is left; the gaps are filled by the layers that come with the same entry."""
        for trace, ranges in self.traces.items():
            lost = [layer for layers in ranges.values() for layer in layers if layer.path in paths]
            if lost:
                self.kept_layers -= len(lost)
                self.kept_bytes[trace] -= sum(layer.bytes for layer in lost)
                for held in [held for held in ranges if any(layer.range == held for layer in lost)]:
                    ranges[held] = [layer for layer in ranges[held] if layer.path not in paths]
                if any(layer.path in paths for found in self.newest.get(trace, {}).values() for layer in found):
                    self.newest[trace] = covers_of(ranges, self.epoch)

    def _narrow(self, parts: Mapping[str, Iterable[str]]) -> None:
        """These layers stand for fewer hashes. The newest covers have none of them there."""
        known = {layer.path: layer for layer in self.layers() if layer.path in parts} if parts else {}
        narrow = {path: _without(layer, parts[path]) for path, layer in known.items()}
        for trace in {layer.trace for layer in narrow.values()}:
            for held, layers in self.traces[trace].items():
                self.traces[trace][held] = [narrow.get(layer.path, layer) for layer in layers]
            covers = self.newest.get(trace, {}).items()
            self.newest[trace] = {held: tuple(narrow.get(layer.path, layer) for layer in found) for held, found in covers}

    def _keep(self, traces: frozenset[TraceName]) -> None:
        """Drops what a new program has no use for; a declaration that names no traces leaves all."""
        self._drop(frozenset(self.traces) - traces if traces else frozenset())
        self.begun = {trace: begun for trace, begun in self.begun.items() if trace in traces}

    def _drop(self, traces: Iterable[TraceName]) -> None:
        for gone in traces:
            self.kept_layers -= sum(map(len, self.traces.pop(gone).values()))
            self.newest.pop(gone, None)
            self.kept_bytes.pop(gone, None)

    def only(self, traces: Container[TraceName]) -> "Image":
        """As if nothing but these traces were there; the same image where that is so."""
        kept = frozenset(trace for trace in self.traces if trace in traces)
        if len(kept) == len(self.traces):
            return self
        other = self.copy()
        other._drop(frozenset(other.traces) - kept)
        return other

    def _roll_back(self, epoch: Epoch) -> None:
        self._lose(frozenset(layer.path for layer in self.layers() if layer.upper > epoch + 1))
        for gone in [computed for computed in self.computed if computed > epoch]:
            self._count(self.computed[gone], -1)
        for known in (self.opened, self.opened_in, self.computed, self.computed_in, self.seen, self.times):
            for gone in [other for other in known if other > epoch]:
                del known[gone]
        self.pins = {name: pinned for name, pinned in self.pins.items() if pinned <= epoch}
        self.epoch = min(self.epoch, epoch)

    def _count(self, entry: Computed, sign: int) -> None:
        for totals, counts in ((self.rows, entry.rows), (self.rejected, entry.rejected)):
            for name, count in counts.items():
                totals[name] = totals.get(name, 0) + sign * count

    def covers(self, trace: TraceName, at: Epoch) -> Covers:
        """By range of hashes, the layers that hold the trace's state as of an epoch, newest first. Ranges do not overlap; of wider
        layers the part in the range is meant."""
        if at == self.epoch:
            return dict(self.newest.get(trace, {}))
        return covers_of(self.traces.get(trace, {}), at, self.kept)

    def seen_before(self, epoch: Epoch) -> dict[str, int]:
        """The newest event time, by source, that epochs before this one have brought. Known for new epochs and for the ends of layers."""
        return self.seen.get(epoch - 1, {})

    def unfinished(self) -> Opened | None:
        """An epoch that was opened but not computed: it comes next, as recorded."""
        return self.opened.get(self.epoch + 1)

    @property
    def last_opened(self) -> Epoch:
        return max(self.opened, default=self.epoch)

    def newest_layers(self) -> list[LayerInfo]:
        """Each once, also where it is read in several pieces."""
        layers = (layer for covers in self.newest.values() for found in covers.values() for layer in found)
        return list({layer.path: layer for layer in layers}.values())

    def layers(self) -> list[LayerInfo]:
        """All layers of the traces, as far back as they are known."""
        return [layer for ranges in self.traces.values() for layers in ranges.values() for layer in layers]

    def forget_past(self, keep_from: Epoch) -> None:
        """Leaves the layers, and what was opened and computed from an epoch on."""
        for known in (self.opened, self.opened_in, self.computed, self.computed_in):
            for epoch in [epoch for epoch in known if epoch < keep_from]:
                del known[epoch]
        ends = {layer.upper - 1 for layer in self.newest_layers()}
        self.seen = {epoch: seen for epoch, seen in self.seen.items() if epoch > self.epoch - RECENT or epoch in ends}
        while len(self.times) > MOST_TIMES + len(self.kept.among):
            self.times = _sampled(self.times, self.kept)

    def copy(self) -> "Image":
        """One that may be changed while this one is read."""
        other = replace(self)
        for name, value in vars(self).items():
            if isinstance(value, dict):
                setattr(other, name, dict(value))
        other.traces = {trace: {held: list(layers) for held, layers in ranges.items()} for trace, ranges in self.traces.items()}
        other.newest = {trace: dict(covers) for trace, covers in self.newest.items()}
        return other


def _without(layer: LayerInfo, parts: Iterable[str]) -> LayerInfo:
    given_up = joined([*layer.without, *map(HashRange.parse, parts)])
    return replace(layer, without=tuple(given_up))


def fold(entries: Iterable[Entry]) -> Image:
    image = Image()
    for number, entry in enumerate(entries, start=1):
        image.apply(RecordNumber(number), entry)
    return image


def _sampled(times: dict[Epoch, float], kept: Kept) -> dict[Epoch, float]:
    """Of the epochs that follow one another without a gap, every other one: enough to tell how old the others are."""
    return {epoch: at for number, (epoch, at) in enumerate(sorted(times.items())) if epoch < kept.since or number % 2 == 0}
