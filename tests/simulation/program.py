"""A small flow that computes with nothing but dictionaries: two sources, two operators, a sink.

`totals` sums events by key in two shards; `parities`, fed by it, sums the totals by their parity, in two shards; `out` is the change of
`parities`, for the sink. State as of an epoch is a function of the input up to it, so epochs may be computed one by one or several at once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nosync.journal.entries import Opened
from nosync.journal.names import source_folder
from nosync.model.engine import CoversOf, Outcome, Targets
from nosync.model.hash_range import HashRange
from nosync.model.layers import Kind, LayerInfo
from nosync.model.shards import shard_ranges
from nosync.model.store import fingerprint
from nosync.model.watermark import History, nothing_seen
from nosync.recovery.plan import Shape

from .world import Cache

HALVES = shard_ranges(2)

SHAPE = Shape(
    {"totals": frozenset(["totals"]), "parities": frozenset(["totals", "parities"]), "out": frozenset(["totals", "parities", "out"])},
    {"out": "sink"},
)


class Broken(Exception):
    """A promise of the contract was not kept."""


@dataclass
class Lasting:
    """A source that can be read again until it is asked to trim. Shared by all runs, as a real one would be."""

    events: list[int] = field(default_factory=list)
    trimmed: int = 0

    def read(self, first: int, last: int) -> list[int]:
        if first < self.trimmed:
            raise Broken(f"events {first} to {last} were trimmed up to {self.trimmed} and are needed again")
        return self.events[first:last]


@dataclass
class LastingReader:
    """One run's hold of it."""

    source: Lasting
    position: int
    check: Callable[[dict[str, Any]], None] = lambda slice: None

    def available(self) -> dict[str, Any] | None:
        end = min(len(self.source.events), self.position + 3)
        if end == self.position:
            return None
        slice = {"first": self.position, "last": end}
        self.position = end
        return slice

    def files(self, slice: dict[str, Any]) -> dict[str, str]:
        return {}

    def acknowledge(self, slice: dict[str, Any]) -> None:
        """It can be read again anyway."""

    def reopen(self, slice: dict[str, Any], unreadable: Mapping[str, str]) -> dict[str, Any]:
        return slice

    def trim(self, slice: dict[str, Any]) -> None:
        self.check(slice)
        self.source.trimmed = max(self.source.trimmed, slice["last"])


@dataclass
class Fleeting:
    """A source that cannot be read again: rows go into a file of the home, and leave the source once their epoch is recorded."""

    disk: Cache
    run: str
    pending: list[int] = field(default_factory=list)
    count: int = 0

    def available(self) -> dict[str, Any] | None:
        if not self.pending:
            return None
        name = f"{source_folder('fleeting')}/{self.run}-{self.count}"
        content = json.dumps(self.pending).encode()
        self.disk.replace(name, content)
        self.count += 1
        return {"file": name, "mark": fingerprint(content), "rows": len(self.pending)}

    def acknowledge(self, slice: dict[str, Any]) -> None:
        self.pending = self.pending[slice["rows"] :]

    def reopen(self, slice: dict[str, Any], unreadable: Mapping[str, str]) -> dict[str, Any]:
        return slice

    def files(self, slice: dict[str, Any]) -> dict[str, str]:
        return {slice["file"]: slice["mark"]}

    def trim(self, slice: dict[str, Any]) -> None:
        """Its file is the flow's to delete."""


def events_of(opened: Opened, lasting: Lasting, files: Mapping[str, bytes]) -> list[int]:
    found: list[int] = []
    if "lasting" in opened.slices:
        slice = opened.slices["lasting"]
        found += lasting.read(slice["first"], slice["last"])
    for name in opened.files:
        if name not in files:
            raise Broken(f"input {name} of epoch {opened.epoch} is gone")
        found += json.loads(files[name])
    return found


@dataclass
class Sink:
    """Remembers what it was given. An epoch may come again, but only the same; a new one only after the one before."""

    release: str
    got: dict[int, dict[str, Any]] = field(default_factory=dict)

    def take(self, epoch: int, content: dict[str, Any]) -> None:
        if epoch in self.got and self.got[epoch] != content:
            raise Broken(f"epoch {epoch} was delivered as {self.got[epoch]} and then as {content}")
        if epoch > 1 and epoch - 1 not in self.got:
            raise Broken(f"epoch {epoch} was delivered before {epoch - 1}")
        self.got[epoch] = content


@dataclass
class DictEngine:
    """Computes epochs, and writes their layers into the cache."""

    disk: Cache
    lasting: Lasting
    run: str
    written: int = 0

    def prepare(self, opened: Opened) -> None:
        """There is nothing to prepare."""

    def compute(
        self,
        openings: Sequence[Opened],
        covers: CoversOf,
        targets: Targets | None = None,
        seen: History = nothing_seen,
    ) -> Outcome:
        files = {name: file.content for name, file in self.disk.files.items() if name.startswith("input/")}
        events = [event for opened in openings for event in events_of(opened, self.lasting, files)]
        lower, upper = openings[0].epoch, openings[-1].epoch + 1
        before = self._state("totals", covers)
        after = dict(before)
        for event in events:
            after[event % 4] = after.get(event % 4, 0) + event
        old, layers = self._state("parities", covers), []
        new = dict(old)
        for key in after:
            if after[key] != before.get(key):
                for total, sign in ((before.get(key), -1), (after[key], 1)):
                    if total is not None:
                        new[total % 2] = new.get(total % 2, 0) + sign * total
        change = {key: [old.get(key), new[key]] for key in sorted(new) if new[key] != old.get(key, 0)}
        wanted = {
            "totals": {key: after[key] for key in after if after[key] != before.get(key)},
            "parities": {key: new[key] for key in change},
        }
        for trace, values in wanted.items():
            for shard in (0, 1):
                mine = {key: value for key, value in sorted(values.items()) if key % 2 == shard}
                if mine and (targets is None or HALVES[shard] in targets.get(trace, ())):
                    layers.append(self._write(trace, HALVES[shard], lower, upper, mine))
        if change and (targets is None or HALVES[0] in targets.get("out", ())):
            layers.append(self._write("out", HALVES[0], lower, upper, change))
        return Outcome(tuple(layers), {"lasting": len(events)}, {})

    def _state(self, trace: str, covers: CoversOf) -> dict[int, int]:
        found: dict[int, int] = {}
        for layers in covers(trace).values():
            for layer in reversed(layers):
                found |= {int(key): value for key, value in self.read(layer).items()}
        return found

    def read(self, layer: LayerInfo) -> dict[str, Any]:
        file = self.disk.files.get(layer.path)
        if file is None or digest(file.content) != layer.checksum:
            raise Broken(f"layer {layer.path} is {'missing' if file is None else 'damaged'} and was to be read")
        values: dict[str, Any] = json.loads(file.content)
        return values

    def verify(self, layer: LayerInfo) -> bool:
        file = self.disk.files.get(layer.path)
        return file is not None and digest(file.content) == layer.checksum

    def _write(self, trace: str, held: HashRange, lower: int, upper: int, values: Mapping[int, Any]) -> LayerInfo:
        content = json.dumps(values).encode()
        self.written += 1
        path = f"layers/{trace}/{held}/{lower:012d}-{upper}-{self.run}-{self.written:x}.arrow"
        self.disk.replace(path, content)
        return LayerInfo(trace, held, lower, upper, "upserts", path, len(values), len(content), digest(content))

    def blank(self, trace: str, range: HashRange, lower: int, upper: int, kind: Kind) -> LayerInfo:
        return self._write(trace, range, lower, upper, {})

    def merge(self, layers: Sequence[LayerInfo]) -> LayerInfo:
        """Newest first."""
        values: dict[str, Any] = {}
        for layer in reversed(layers):
            values |= self.read(layer)
        keyed = {int(key): value for key, value in sorted(values.items())}
        return self._write(layers[0].trace, layers[0].range, layers[-1].lower, layers[0].upper, keyed)


def digest(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()[:12]


def expected(inputs: Sequence[Sequence[int]]) -> list[tuple[dict[int, int], dict[int, int]]]:
    """Totals and parities after each epoch, computed the plain way."""
    totals: dict[int, int] = {}
    states = []
    for events in inputs:
        for event in events:
            totals[event % 4] = totals.get(event % 4, 0) + event
        parities: dict[int, int] = {}
        for total in totals.values():
            parities[total % 2] = parities.get(total % 2, 0) + total
        states.append((dict(totals), parities))
    return states

