"""Merging behind the stream: a process of its own, at low priority, that turns several layers into one.

The epoch loop asks `Merger.collect` between epochs for layers that are done, records them, and `Merger.offer`s the next merge.
The stream never waits for it; while it is behind, covers are longer and nothing else. The process starts with the first merge: a run that
has nothing to merge never pays for it.
"""

import json
import subprocess
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import IO

from nosync.journal.image import Image
from nosync.model.errors import Corrupt, Unavailable
from nosync.model.hash_range import HashRange
from nosync.model.identifiers import Epoch, TraceName
from nosync.model.layers import Covers, LayerInfo
from nosync.model.shards import shard_ranges
from nosync.model.watermark import Expiry
from nosync.recovery.suspicion import START_AGAIN
from nosync.state.cover import Slice
from nosync.state.spine import WIDTH, Level, levels, merges_of, plan_merge
from nosync.tiers.background import close_pipes, spawn

Expiries = Mapping[TraceName, Expiry]
NO_EXPIRIES: Expiries = {}


class Merger:
    """One merging process for one home. Merges of different traces follow one another, the longest cover first."""

    def __init__(
        self, home: str, flow: str, run: str, unmerged: frozenset[TraceName] = frozenset(), expiries: Expiries = NO_EXPIRIES
    ) -> None:
        self._unmerged, self._expiries = unmerged, expiries
        self._arguments = (home, flow, run)
        self._done: SimpleQueue[str] = SimpleQueue()
        self._process: subprocess.Popen[str] | None = None
        self._listener: threading.Thread | None = None
        self._busy = False
        self._orders: list[dict[str, object]] = []

    def _started(self) -> "subprocess.Popen[str]":
        if self._process is None:
            self._process = spawn("nosync.duties.merge_worker", *self._arguments)
            self._listener = threading.Thread(target=self._listen, args=(self._process.stdout,), daemon=True)
            self._listener.start()
        return self._process

    def _listen(self, answers: IO[str]) -> None:
        for line in answers:
            self._done.put(line)

    def collect(self) -> list[LayerInfo]:
        """Layers merged since the last call."""
        found: list[LayerInfo] = []
        while True:
            try:
                answer = json.loads(self._done.get_nowait())
            except Empty:
                return found
            self._busy = False
            if "damage" in answer:
                raise Corrupt(f"merging met damage: {answer['damage']}", hint=START_AGAIN)
            if "error" in answer:
                self._orders = []
                raise Unavailable(f"merging failed: {answer['error']}", hint="Nothing is lost; it is tried again: make room on the disk.")
            found.append(LayerInfo.from_json(answer))

    def offer(self, image: Image) -> None:
        """Starts the most useful merge, unless one is under way. A process that was killed is replaced."""
        if self._process is not None and self._process.poll() is not None:
            return self._forget_process()  # what it had finished is collected first
        if self._busy:
            return
        self._orders = self._orders or next_merges(image, self._unmerged, self._expiries)
        if self._orders:
            self._busy = True
            self._send(self._orders.pop(0))

    def _send(self, order: dict[str, object]) -> None:
        orders = self._started().stdin
        assert orders is not None
        with suppress(BrokenPipeError):  # killed just now: replaced the next time
            orders.write(json.dumps(order) + "\n")
            orders.flush()

    def _forget_process(self) -> None:
        """It has ended, or is about to: everything it answered is read."""
        process, listener = self._process, self._listener
        self._process, self._busy, self._orders = None, False, []
        if process is not None and listener is not None:
            process.wait()
            listener.join()
            close_pipes(process)

    @property
    def busy(self) -> bool:
        return self._busy and self._process is not None and self._process.poll() is None

    def merge_all(self, image: Image, record: Callable[[LayerInfo], None]) -> None:
        """Waits until nothing is left to merge. For tests and for stopping in good order; the stream never calls it."""
        while True:
            self.offer(image)
            if not self.busy:
                return
            self._done.put(self._done.get())
            for layer in self.collect():
                record(layer)

    def close(self) -> None:
        """A merge under way is given up: its inputs are all still there."""
        if self._process is not None:
            self._process.terminate()
            self._forget_process()


def next_merges(
    image: Image, unmerged: frozenset[TraceName] = frozenset(), expiries: Expiries = NO_EXPIRIES
) -> list[dict[str, object]]:
    """The merge that shortens the longest cover of a shard, if there is one; of equally long ones, where the merged layer may stand for its
    inputs. Outputs of sinks stay epoch by epoch: they are `unmerged`. What earlier shards have left is merged into layers of today's.
    """
    best: tuple[tuple[int, bool], TraceName, Sequence[Level], Level] | None = None
    for trace, covers in image.newest.items():
        for shard in _shards(image, covers) if trace not in unmerged else ():
            if len(covers.get(shard, ())) < WIDTH and shard in covers:
                continue  # too short, seen at a glance
            found = levels(covers, shard)
            chosen = plan_merge(found)
            if not chosen or not merges_of(chosen):
                continue
            use = (len(found), image.kept.stands_alone(chosen[-1].lower, chosen[0].upper))
            if best is None or use > best[0]:
                best = (use, trace, chosen, found[-1])
    if best is None:
        return []
    _, trace, merged, oldest = best
    bottom = merged[-1] == oldest
    expired = _expired(expiries.get(trace) if bottom else None, merged[0].upper, image)
    return [_order(held, slices) | {"bottom": bottom, "expired": expired} for held, slices in merges_of(merged)]


def _order(held: HashRange, slices: Iterable[Slice]) -> dict[str, object]:
    found = [(layer.to_json(), str(part)) for layer, part in slices]
    return {"layers": [layer for layer, _ in found], "slices": [part for _, part in found], "range": str(held)}


def _shards(image: Image, covers: Covers) -> Iterable[HashRange]:
    return shard_ranges(image.declared.shards) if image.declared else covers


def _expired(expiry: Expiry | None, upper: Epoch, image: Image) -> dict[str, object] | None:
    """What no epoch from `upper` on can ask for: those are the epochs that read the merged layer."""
    until = expiry.until(upper, image.seen_before) if expiry else None
    return None if expiry is None or until is None else {"column": expiry.column, "until": until, "chained": expiry.chained}
