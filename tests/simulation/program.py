"""A small flow that computes with nothing but dictionaries: two sources, some traces, two sinks.

`totals` sums events by key in two shards; `parities`, fed by it, sums the totals by their parity, in two shards; `out` is the change of
`parities`, for the first sink. Those keep the newest value of each key; `rows` and `pairs` keep counted rows in two shards, where whatever
is missing or there twice shows for ever: `rows` the events themselves, `pairs`, fed by `rows` and `totals`, each event with the total of
its key. State as of an epoch is a function of the input up to it, so epochs may be computed one by one or several at once. With dice,
`rolls` records a random number for each event, which can never be had again, and `luck` sums those; `more` is the change of `luck`, or else
of one key of `totals`, for the second sink: most epochs have nothing for it.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from nosync.journal.entries import Opened
from nosync.model.engine import CoversOf, Outcome, Targets
from nosync.model.errors import Corrupt
from nosync.model.hash_range import HashRange
from nosync.model.layers import Covers, Kind, LayerInfo, leaves_of
from nosync.model.shards import shard_ranges
from nosync.model.store import fingerprint
from nosync.model.watermark import History, nothing_seen
from nosync.recovery.plan import Shape
from nosync.state.cover import LayerRange

from .places import Both, Cache, Peek
from .sources import Lasting
from .world import Broken, World

HALVES = shard_ranges(2)
SINKS = {"out": "sink", "more": "other"}
SELDOM = 0  # the key that the second sink hears of
COUNTED = ("rows", "pairs")  # state is the sum of all layers, not the newest value
SHARDED = ("totals", "parities", *COUNTED)


def number(key: int | str) -> int:
    """The event, or its key, that a row begins with."""
    return int(str(key).partition("/")[0])


def hash_of(key: int | str) -> int:
    """Even keys are in the lower half, odd ones in the upper; of each, every other one in its second quarter."""
    return number(key) % 2 << 63 | number(key) // 2 % 2 << 62


def shape_of(dice: bool) -> Shape:
    """Who feeds whom."""
    feeders = {"totals": frozenset(["totals"]), "parities": frozenset(["totals", "parities"])}
    feeders["out"] = frozenset(["totals", "parities", "out"])
    feeders |= {"rows": frozenset(["rows"]), "pairs": frozenset(["totals", "rows", "pairs"])}
    if not dice:
        return Shape(feeders | {"more": frozenset(["totals", "more"])}, SINKS)
    feeders |= {"rolls": frozenset(["rolls"]), "luck": frozenset(["rolls", "luck"]), "more": frozenset(["rolls", "luck", "more"])}
    return Shape(feeders, SINKS, unrepeatable=frozenset(["rolls"]), records=frozenset(["rolls"]))


@dataclass
class Sink:
    """Remembers what it was given, by the last epoch of it, and from which one on that was. It may come again, but only the same; what is
    new only after what was before. Epochs that have nothing for it may be missing.
    """

    release: str
    precise: bool
    down: bool = False
    got: dict[int, dict[str, Any]] = field(default_factory=dict)
    since: dict[int, int] = field(default_factory=dict)

    def take(self, first: int, epoch: int, content: dict[str, Any]) -> None:
        if epoch in self.got and (self.got[epoch], self.since[epoch]) != (content, first):
            raise Broken(f"epoch {epoch} was delivered as {self.got[epoch]} since {self.since[epoch]}, then as {content} since {first}")
        if epoch not in self.got and first <= self.last:
            raise Broken(f"epochs {first} to {epoch} were delivered as one, and {self.last} before")
        self.got[epoch], self.since[epoch] = content, first

    @property
    def last(self) -> int:
        return max(self.got, default=0)

    def each(self) -> dict[int, dict[str, Any]]:
        """What it got, by the epoch that gave it."""
        alone = {epoch: content for epoch, content in self.got.items() if self.since.get(epoch, epoch) == epoch}
        return alone | {int(one): self.got[epoch][one] for epoch in self.got.keys() - alone.keys() for one in self.got[epoch]}


@dataclass
class DictEngine:
    """Computes epochs, and writes their layers into the cache. `rotten`: bytes were changed, and reading may meet that."""

    world: World
    disk: Cache
    lasting: Lasting
    run: str
    dice: bool
    rotten: bool = False
    written: int = 0
    shards: int = 2

    def prepare(self, opened: Opened) -> None:
        """There is nothing to prepare."""

    def events(self, openings: Sequence[Opened]) -> list[int]:
        return self.world.operation("source", "read", lambda: [event for opened in openings for event in self._events(opened)])

    def _events(self, opened: Opened) -> list[int]:
        slice = opened.slices.get("lasting")
        found = self.lasting.read(slice["first"], slice["last"]) if slice else []
        for name, mark in opened.files.items():
            file = self.disk.files.get(name)
            if file is None or fingerprint(file.content) != mark:
                raise Broken(f"input {name} of epoch {opened.epoch} is {'gone' if file is None else 'damaged'}")
            found = [*found, *json.loads(file.content)]
        return found

    def compute(
        self,
        openings: Sequence[Opened],
        covers: CoversOf,
        targets: Targets | None = None,
        seen: History = nothing_seen,
    ) -> Outcome:
        events, asked = self.events(openings), frozenset(shape_of(self.dice).feeders if targets is None else targets)
        wanted: dict[str, dict[int, Any]] = {}
        if asked - {"rolls", "luck", "rows"}:
            wanted |= self._sums(events, covers, bool(asked & {"parities", "out"}))
        if asked & {"rows", "pairs"}:
            wanted |= self._rows(events, covers, wanted.get("totals"))
        if self.dice and asked & {"rolls", "luck", "more"}:
            wanted |= self._luck(events, covers, targets is not None)
        return Outcome(tuple(self._layers(wanted, openings, targets)), {"lasting": len(events)}, {})

    def _sums(self, events: list[int], covers: CoversOf, parities: bool) -> dict[str, dict[int, Any]]:
        before, old = self.state("totals", covers), self.state("parities", covers) if parities else {}
        after, new = dict(before), dict(old)
        for event in events:
            after[event % 4] = after.get(event % 4, 0) + event
        for key in after:
            if after[key] != before.get(key):
                for total, sign in ((before.get(key), -1), (after[key], 1)):
                    if total is not None:
                        new[total % 2] = new.get(total % 2, 0) + sign * total
        change = {key: [old.get(key), new[key]] for key in sorted(new) if new[key] != old.get(key, 0)}
        totals = {key: after[key] for key in sorted(after) if after[key] != before.get(key)}
        seldom = {key: total for key, total in totals.items() if key == SELDOM}
        return {"totals": totals, "parities": {key: new[key] for key in change}, "out": change, "more": seldom}

    def _rows(self, events: list[int], covers: CoversOf, totals: dict[int, int] | None) -> dict[str, dict[str, int]]:
        """The change of both kinds of counted rows."""
        fresh = Counter(map(str, events))
        if totals is None:
            return {"rows": fresh}
        before, old = self.state("totals", covers), self.counted("rows", covers)
        pairs = Counter(paired(old + fresh, before | totals))
        pairs.subtract(paired(old, before))
        return {"rows": fresh, "pairs": {pair: count for pair, count in sorted(pairs.items()) if count}}

    def _luck(self, events: list[int], covers: CoversOf, again: bool) -> dict[str, dict[int, Any]]:
        """What was rolled is read from its record when it is asked for again."""
        rolls = [self.world.random.randrange(1, 7) for _ in events]
        if again:
            found = [layer for layers in covers("rolls").values() for layer in layers]
            rolls = [value for layer in sorted(found, key=lambda layer: layer.lower) for value in self.read(layer).values()]
        before = self.state("luck", covers).get(0, 0)
        change = {0: before + sum(rolls)} if rolls else {}
        return {"rolls": dict(enumerate(rolls)), "luck": change, "more": change}

    def _layers(self, wanted: Mapping[str, dict[int, Any]], openings: Sequence[Opened], targets: Targets | None) -> Sequence[LayerInfo]:
        layers: list[LayerInfo] = []
        for trace, values in wanted.items():
            for held in self.parts(trace, targets):
                mine = {key: value for key, value in values.items() if trace not in SHARDED or held.contains(hash_of(key))}
                if mine:
                    layers.append(self.write(trace, held, openings[0].epoch, openings[-1].epoch + 1, mine))
        return layers

    def parts(self, trace: str, targets: Targets | None) -> list[HashRange]:
        """The ranges that a layer is written for: shards, or what targets ask of them."""
        shards = shard_ranges(self.shards) if trace in SHARDED else HALVES[:1]
        if targets is None:
            return list(shards)
        return [held.both(one) for held in shards for one in sorted(targets.get(trace, ())) if held.overlaps(one)]

    def counted(self, trace: str, covers: CoversOf) -> Counter[str]:
        """All rows with their counts."""
        return self.summed((layer, held) for held, layers in covers(trace).items() for layer in layers)

    def summed(self, ranges: Iterable[LayerRange]) -> Counter[str]:
        found = Counter[str]()
        for layer, part in ranges:
            found.update({row: count for row, count in self.read(layer).items() if part.contains(hash_of(row))})
        return Counter({row: count for row, count in found.items() if count})

    def holds(self, trace: str, covers: Covers, remote: Peek | None = None) -> dict[Any, int]:
        """What a trace holds in these covers, without what is 0. What the home lacks is read from the `remote`."""
        if remote is not None:
            return replace(self, disk=Both(self.disk, remote)).holds(trace, covers)
        if trace in COUNTED:
            return self.counted(trace, lambda _: covers)
        return {key: value for key, value in self.state(trace, lambda _: covers).items() if value}

    def state(self, trace: str, covers: CoversOf) -> dict[int, int]:
        found: dict[int, int] = {}
        for held, layers in covers(trace).items():
            for layer in reversed(layers):
                found |= {int(key): value for key, value in self.read(layer).items() if held.contains(hash_of(int(key)))}
        return found

    def read(self, layer: LayerInfo) -> dict[str, Any]:
        file = self.disk.files.get(layer.path)
        if file is None or digest(file.content) != layer.checksum:
            text = f"layer {layer.path} is {'missing' if file is None else 'damaged'} and was to be read"
            raise Corrupt(text) if self.rotten else Broken(text)
        values = values_of(file.content)
        return _as_of(values, layer.end, layer.trace in COUNTED) if layer.versions else values

    def versions(self, layer: LayerInfo) -> dict[int, dict[str, Any]]:
        """What a layer holds, by version."""
        if not layer.versions:
            return {layer.upper - 1: self.read(layer)}
        self.read(layer)
        return {int(version): values for version, values in values_of(self.disk.files[layer.path].content).items()}

    def fold(self, order: dict[str, Any]) -> LayerInfo:
        """As the merging process does."""
        kept = sorted({*order["among"], *range(order["since"], order["upper"] - 1), order["upper"] - 1})
        found: dict[int, dict[str, Any]] = {version: {} for version in kept}
        held = HashRange.parse(order["range"])
        like, oldest = (LayerInfo.from_json(order["layers"][number]) for number in (0, -1))
        for layer in reversed([LayerInfo.from_json(text) for text in order["layers"]]):
            for epoch, values in sorted(self.versions(layer).items()):
                mine = {key: value for key, value in values.items() if held.contains(hash_of(key if like.trace in COUNTED else int(key)))}
                version = min(version for version in kept if version >= epoch)
                found[version] = _joined(found[version], mine, layer.trace in COUNTED)
        written = self.write(like.trace, held, order["lower"], order["upper"], found)
        rows, blind = sum(map(len, found.values())), tuple((first, last) for first, last in order["blind"])
        leaves = leaves_of(LayerInfo.from_json(text) for text in order["layers"])
        return replace(written, rows=rows, versions=len(kept), blind=blind, first=oldest.begin, leaves=leaves, bottom=order["bottom"])

    def verify(self, layer: LayerInfo) -> bool:
        file = self.disk.files.get(layer.path)
        return file is not None and digest(file.content) == layer.checksum

    def write(self, trace: str, held: HashRange, lower: int, upper: int, values: Mapping[Any, Any]) -> LayerInfo:
        content = json.dumps(values).encode()
        self.written += 1
        path = f"layers/{trace.replace('/', '%2F')}/{held}/{lower:012d}-{upper}-{self.run}-{self.written:x}.arrow"
        self.disk.replace(path, content)
        kind: Kind = "diffs" if trace in COUNTED else "upserts"
        return LayerInfo(trace, held, lower, upper, kind, path, len(values), len(content), digest(content))

    def blank(self, trace: str, range: HashRange, lower: int, upper: int, kind: Kind) -> LayerInfo:
        return self.write(trace, range, lower, upper, {})

    def merge(self, layers: Sequence[LayerInfo]) -> LayerInfo:
        """Newest first."""
        return self.merge_ranges([(layer, layer.range) for layer in layers], layers[0].range)

    def merge_ranges(self, ranges: Sequence[LayerRange], held: HashRange, bottom: bool = False) -> LayerInfo:
        """Into one layer of a range; newest first."""
        lower, upper = min(layer.lower for layer, _ in ranges), max(layer.upper for layer, _ in ranges)
        if (trace := ranges[0][0].trace) in COUNTED:
            return replace(self.write(trace, held, lower, upper, dict(sorted(self.summed(ranges).items()))), bottom=bottom)
        values: dict[str, Any] = {}
        for layer, part in reversed(ranges):
            values |= {key: value for key, value in self.read(layer).items() if part.contains(hash_of(int(key)))}
        written = self.write(trace, held, lower, upper, {int(key): value for key, value in sorted(values.items())})
        return replace(written, bottom=bottom)


def paired(rows: Mapping[str, int], totals: Mapping[int, int]) -> dict[str, int]:
    """Each event with the total of its key."""
    return {f"{row}/{totals[int(row) % 4]}": count for row, count in rows.items()}


def _as_of(versions: dict[str, dict[str, Any]], until: int, counted: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for version, values in sorted(versions.items(), key=lambda item: int(item[0])):
        found = _joined(found, values if int(version) < until else {}, counted)
    return found


def _joined(older: dict[str, Any], newer: dict[str, Any], counted: bool) -> dict[str, Any]:
    """Rows are counted, other values replaced."""
    if not counted:
        return older | newer
    return {key: older.get(key, 0) + newer.get(key, 0) for key in {**older, **newer}}


def events_of(history: Any, opened: Opened) -> list[int]:
    """All that an epoch took, trimmed or not."""
    slice = opened.slices.get("lasting", {"first": 0, "last": 0})
    return [*history.lasting.events[slice["first"] : slice["last"]], *(row for name in opened.files for row in history.written[name])]


@lru_cache(10_000)
def values_of(content: bytes) -> dict[str, Any]:
    """Read many times: nobody may change it."""
    values: dict[str, Any] = json.loads(content)
    return values


@lru_cache(10_000)
def digest(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()[:12]


def expected(inputs: Sequence[Sequence[int]]) -> list[dict[str, dict[Any, int]]]:
    """What each trace holds after each epoch, computed the plain way; nothing that is 0."""
    totals: dict[int, int] = {}
    rows = Counter[str]()
    states = []
    for events in inputs:
        for event in events:
            totals[event % 4] = totals.get(event % 4, 0) + event
        rows.update(map(str, events))
        parities: dict[int, int] = {}
        for total in totals.values():
            parities[total % 2] = parities.get(total % 2, 0) + total
        state = {"totals": totals, "parities": parities, "rows": rows, "pairs": paired(rows, totals)}
        states.append({trace: {key: value for key, value in values.items() if value} for trace, values in state.items()})
    return states
