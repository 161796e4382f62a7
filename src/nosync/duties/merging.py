"""Merging behind the stream: a process of its own, at low priority, that turns several layers into one.

The epoch loop asks `Merger.collect` between epochs for layers that are done, records them, and `Merger.offer`s the next merge.
The stream never waits for it; while it is behind, covers are longer and nothing else. The process starts with the first merge: a run that
has nothing to merge never pays for it.
"""

import json
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, dropwhile
from queue import Empty, SimpleQueue
from typing import IO, Any, TypeVar

from nosync.journal.image import Image
from nosync.model.compaction import DEFAULT, Ages, Compaction
from nosync.model.errors import Corrupt, Unavailable
from nosync.model.hash_range import HashRange
from nosync.model.identifiers import NO_EPOCH, Epoch, TraceName
from nosync.model.layers import Covers, LayerInfo, TraceRange
from nosync.model.retention import FIRST, Kept
from nosync.model.shards import shard_ranges
from nosync.model.watermark import Expiry
from nosync.recovery.suspicion import START_AGAIN
from nosync.state.cover import LayerRange, pieces
from nosync.state.folding import Chain, Fold, chain_of, plan_folds
from nosync.state.spine import WIDTH, Level, levels, merges_of, plan_cleaning, plan_merge
from nosync.tiers.background import close_pipes, spawn

Expiries = Mapping[TraceName, Expiry]
NO_EXPIRIES: Expiries = {}
IsComing = Callable[[LayerInfo], bool]
Order = dict[str, Any]
T = TypeVar("T")
FEW = 3  # layers more or fewer in a range do not call for a look
AT_ONCE = 4  # orders of a kind that are given together, at least: none of them waits for an epoch to end
SHARE = 8  # the part of all that is due, of many shards: with few at once covers would get longer and longer
SMALL_AT_ONCE, SMALL_ROWS = 128, 1 << 16  # so many where all of them together have few rows: many views have a small layer each an epoch


class Merger:
    """One merging process for one home. Merges of different traces follow one another, the longest cover first. `is_coming`: whether a
    layer is on its way, where others write them.
    """

    def __init__(
        self, home: str, flow: str, run: str, unmerged: frozenset[TraceName] = frozenset(), expiries: Expiries = NO_EXPIRIES,
        is_coming: IsComing | None = None, knobs: Compaction = DEFAULT,
    ) -> None:  # fmt: skip
        self._unmerged, self._due, self._knobs = unmerged, DueMerges(unmerged, expiries, is_coming, knobs), knobs
        self._arguments = (home, flow, run)
        self._done: SimpleQueue[str] = SimpleQueue()
        self._process: subprocess.Popen[str] | None = None
        self._threads: tuple[threading.Thread, ...] = ()
        self._orders: SimpleQueue[list[Order] | None] = SimpleQueue()
        self._busy = 0  # orders that are not answered yet
        self._closed = False
        self._looked: dict[TraceRange, int] = {}
        self._counted: dict[TraceName, int] = {}
        self._kept: Kept | None = None

    def _started(self) -> "subprocess.Popen[str]":
        if self._process is None:
            self._process = spawn("nosync.duties.merge_worker", *self._arguments)
            self._orders = SimpleQueue()
            feeding = threading.Thread(target=_feed, args=(self._process.stdin, self._orders), daemon=True)
            self._threads = (threading.Thread(target=self._listen, args=(self._process.stdout,), daemon=True), feeding)
            for thread in self._threads:
                thread.start()
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
            self._busy -= 1
            if "given_up" in answer:
                continue  # an epoch that was kept until then is not any more: another order will come without
            if "damage" in answer:
                raise Corrupt(f"merging met damage: {answer['damage']}", hint=START_AGAIN)
            if "error" in answer:
                raise Unavailable(f"merging failed: {answer['error']}", hint="Nothing is lost; it is tried again: make room on the disk.")
            found.append(LayerInfo.from_json(answer))

    def offer(self, image: Image, last: Epoch = NO_EPOCH) -> None:
        """Starts the most useful merges, unless some are under way. A process that was killed is replaced. Up to epoch `last` nothing will
        be taken back, so that leaf layers may be folded.
        """
        if self._process is not None and self._process.poll() is not None:
            return self._forget_process()  # what it had finished is collected first
        if self._busy or self._closed:
            return
        orders = [order for group in self._due.orders(image, AT_ONCE, SMALL_AT_ONCE) for order in group]
        folds = due_folds(image, last, self._changed_parts(image), self._knobs)
        orders += at_once(folds, AT_ONCE, SMALL_AT_ONCE, lambda fold: sum(layer["rows"] for layer in fold["layers"]))
        if orders:
            self._busy = len(orders)
            self._started()
            self._orders.put(orders)

    def _changed_parts(self, image: Image) -> Iterator[TraceRange]:
        """Those that have more or fewer layers than when there was nothing to fold, the one with the most first."""
        if image.kept != self._kept:
            self._looked, self._counted, self._kept = {}, {}, image.kept
        numbers = {trace: sum(map(len, found.values())) for trace, found in image.traces.items() if trace not in self._unmerged}
        changed = {trace: number for trace, number in numbers.items() if self._counted.get(trace) != number}
        counts = {(trace, held): len(layers) for trace in changed for held, layers in pieces(image.traces[trace]).items()}
        for part, count in sorted(counts.items(), key=lambda item: -item[1]):
            if abs(count - self._looked.get(part, 0)) >= (1 if self._knobs.by_segment else FEW):
                yield part
                self._looked[part] = count
        self._counted |= changed  # whoever stops before is told of the others the next time

    def _forget_process(self) -> None:
        """It has ended, or is about to: everything it answered is read."""
        process, self._process, self._busy = self._process, None, 0
        if process is not None:
            self._orders.put(None)
            process.wait()
            for thread in self._threads:
                thread.join()
            close_pipes(process)

    @property
    def busy(self) -> bool:
        return self._busy > 0 and self._process is not None and self._process.poll() is None

    def merge_all(self, image: Image, record: Callable[[LayerInfo], None], last: Epoch = NO_EPOCH) -> None:
        """Waits until nothing is left to merge. For tests and for stopping in good order; the stream never calls it."""
        while True:
            self.offer(image, last)
            if not self.busy:
                return
            self._done.put(self._done.get())
            for layer in self.collect():
                record(layer)

    def finish(self, record: Callable[[LayerInfo], None]) -> None:
        """Waits for the merges under way: none is begun."""
        while self.busy:
            with suppress(Empty):  # killed meanwhile
                self._done.put(self._done.get(timeout=1.0))
            for layer in self.collect():
                record(layer)

    def close(self) -> None:
        """A merge under way is given up: its inputs are all still there. None is begun from here on."""
        self._closed = True
        if self._process is not None:
            self._process.terminate()
            self._forget_process()


def _feed(pipe: IO[str], orders: "SimpleQueue[list[Order] | None]") -> None:
    """Hands orders to the process, which takes them as it gets to them: many do not fit into a pipe, and the stream waits for nothing."""
    with suppress(BrokenPipeError):  # killed just now: replaced the next time
        while (given := orders.get()) is not None:
            pipe.writelines(json.dumps(order) + "\n" for order in given)
            pipe.flush()


def at_once(due: Iterable[T], most: int, small: int, rows_of: Callable[[T], int]) -> list[T]:
    """The first so many; more, up to `small`, as long as all of them have few rows. Whatever comes after is not asked for."""
    found, rows = list[T](), 0
    for one in due:
        rows += rows_of(one)
        if len(found) >= most and rows > SMALL_ROWS:
            break
        found.append(one)
        if len(found) >= max(most, small):
            break
    return found


class DueMerges:
    """The merges that shorten the covers of shards. What a trace has to merge is looked for again only when its cover is another one.

    Outputs of sinks stay epoch by epoch: they are `unmerged`. What earlier shards have left is merged into layers of today's, and what has
    yet to arrive (`is_coming`) is left out.
    """

    def __init__(
        self, unmerged: frozenset[TraceName] = frozenset(), expiries: Expiries = NO_EXPIRIES, is_coming: IsComing | None = None,
        knobs: Compaction = DEFAULT,
    ) -> None:  # fmt: skip
        self._knobs = knobs
        self._unmerged, self._expiries, self._is_coming = unmerged, expiries, is_coming
        self._known: _Known = {}
        self._shards = 0

    def orders(self, image: Image, some: int | None = None, small: int = 0) -> list[list[Order]]:
        """The longest cover first; of equally long ones, where the merged layer may stand for its inputs. All, or `some` of them: so many,
        or a part of them where that is more, or `small` where that is little work.
        """
        shards = image.declared.shards if image.declared else 0
        known = self._known if shards == self._shards else {}
        self._known, self._shards = {trace: self._looked_at(known, image, trace) for trace in image.newest}, shards
        due = [(trace, one) for trace, (_, found) in self._known.items() for one in found]
        best_first = sorted(due, key=lambda pair: (pair[1].length, pair[1].stands_alone(image.kept)), reverse=True)
        if some is not None:
            most = max(some, len(due) // SHARE)
            best_first = at_once(best_first, most, small, lambda pair: sum(level.rows for level in pair[1].chosen))
        return [_merges(image, one.chosen, one.bottom, self._expiries.get(trace)) for trace, one in best_first]

    def _looked_at(self, known: "_Known", image: Image, trace: TraceName) -> tuple[Covers, list["_Due"]]:
        """What is due of a trace, and the covers that say so: an image never changes covers, it has others in their place."""
        covers = image.newest[trace]
        before, is_coming = known.get(trace), self._is_coming
        if before is not None and before[0] is covers and is_coming is None:
            return before
        there = covers if is_coming is None else {held: _arrived(layers, is_coming) for held, layers in covers.items()}
        return covers, list(_due_in(image, there, self._knobs)) if trace not in self._unmerged else []


@dataclass(frozen=True, slots=True)
class _Due:
    """What to merge of one shard: of a cover so long, these levels. `bottom`: with the oldest."""

    length: int
    chosen: Sequence[Level]
    bottom: bool

    def stands_alone(self, kept: Kept) -> bool:
        return kept.stands_alone(self.chosen[-1].lower, self.chosen[0].upper)


_Known = dict[TraceName, tuple[Covers, list[_Due]]]


def _due_in(image: Image, covers: Covers, knobs: Compaction) -> Iterator[_Due]:
    for shard in _shards(image, covers):
        if len(covers.get(shard, ())) < (WIDTH if knobs.dirty_ratio is None else 2) and shard in covers:
            continue  # too short, seen at a glance
        known = levels(covers, shard)
        chosen = plan_merge(known) or plan_cleaning(_closed(known, image, knobs), knobs)
        if chosen and merges_of(chosen):
            yield _Due(len(known), chosen, chosen[-1] == known[-1])


def _closed(known: Sequence[Level], image: Image, knobs: Compaction) -> Sequence[Level]:
    """Without the segment that is written now, where the knobs say what that is."""
    if not knobs.by_segment or knobs.dirty_ratio is None:
        return known
    sizes = accumulate(sum(layer.bytes for layer, _ in level.ranges) for level in known)
    ages = Ages(image.times, image.epoch)
    of_age = dropwhile(lambda one: not knobs.closes(one[1], ages.of(one[0].lower)), zip(known, sizes, strict=True))
    return [level for level, _ in of_age]


def due_merges(
    image: Image, unmerged: frozenset[TraceName] = frozenset(), expiries: Expiries = NO_EXPIRIES, is_coming: IsComing | None = None,
    knobs: Compaction = DEFAULT,
) -> list[list[Order]]:  # fmt: skip
    """All that there are, looked for once."""
    return DueMerges(unmerged, expiries, is_coming, knobs).orders(image)


def _arrived(layers: Sequence[LayerInfo], is_coming: IsComing) -> tuple[LayerInfo, ...]:
    """Without the newest, which are on their way: layers arrive in the order of their epochs."""
    return tuple(dropwhile(is_coming, layers))


def _merges(image: Image, chosen: Sequence[Level], bottom: bool, expiry: Expiry | None) -> list[Order]:
    expired = _expired(expiry if bottom else None, chosen[0].upper, image)
    return [_order(held, ranges) | {"bottom": bottom, "expired": expired} for held, ranges in merges_of(chosen)]


def due_folds(image: Image, last: Epoch, parts: Iterable[TraceRange], knobs: Compaction = DEFAULT) -> Iterator[Order]:
    """What keeps the past in few files: for each of these ranges of traces what comes next, and with it what belongs beside that."""
    given: set[tuple[TraceName, HashRange, Epoch]] = set()
    ages, known = Ages(image.times, image.epoch), dict[TraceName, dict[HashRange, list[LayerInfo]]]()
    for trace, held in parts:
        if trace not in known:
            known[trace] = pieces(image.traces[trace])
        ranges = known[trace]
        first = image.begun[trace].epoch if trace in image.begun else FIRST
        chain_in = partial(_chain_in, ranges, image.kept, last, first)
        for range, fold in plan_folds(held, ranges, chain_in, image.kept, knobs, ages):
            if (trace, range, fold.lower) not in given:
                given.add((trace, range, fold.lower))
                yield _fold_order(range, fold, image.kept)


def _chain_in(ranges: Mapping[HashRange, list[LayerInfo]], kept: Kept, last: Epoch, first: Epoch, held: HashRange) -> Chain:
    return chain_of(ranges[held], kept, last, first)


def _fold_order(held: HashRange, fold: Fold, kept: Kept) -> Order:
    among, since = kept.between(fold.lower, Epoch(fold.upper - 2))
    facts = {"lower": fold.lower, "upper": fold.upper, "among": among, "since": since, "blind": fold.blind, "bottom": fold.bottom}
    return _order(held, [(layer, held) for layer in fold.layers]) | facts


def _order(held: HashRange, ranges: Iterable[LayerRange]) -> Order:
    found = [(layer.to_json(), str(part)) for layer, part in ranges]
    return {"layers": [layer for layer, _ in found], "ranges": [part for _, part in found], "range": str(held)}


def _shards(image: Image, covers: Covers) -> Iterable[HashRange]:
    return shard_ranges(image.declared.shards) if image.declared else covers


def _expired(expiry: Expiry | None, upper: Epoch, image: Image) -> Order | None:
    """What no epoch from `upper` on can ask for: those are the epochs that read the merged layer."""
    until = expiry.until(upper, image.seen_before) if expiry else None
    return None if expiry is None or until is None else {"column": expiry.column, "until": until, "chained": expiry.chained}
