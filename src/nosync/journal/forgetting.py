"""Gives up records of the past: of a segment of which no epoch is kept, what a recovery and a changed program ask for is left (`left_of`).

It lies in `journal/openings/` already, since the segment was rolled up. In this order: make sure that every tier has it whole, and synced;
look whether this run is still the newest; delete the segment. Neighbours become one file, so that there are few (each is rewritten as often
as its size doubles). A crash in between leaves files within the range of a longer one: they go the next time.

Nothing is on record about it: whoever finds no segment reads what is left.
"""

from collections.abc import Sequence

from nosync.journal.entries import Computed, Entry, Opened
from nosync.journal.journal import Journal
from nosync.journal.names import OPENINGS, SEGMENTS, Span, numbers_in, openings_name, own, segment_name
from nosync.journal.past import TieredReader, openings_in, spans, text_of, whole_openings
from nosync.journal.record import pack_openings
from nosync.model.errors import Corrupt
from nosync.model.identifiers import Epoch
from nosync.model.retention import ALL_EPOCHS, Kept
from nosync.model.store import Disk, Remote, Store

LOOKED_AT = 4  # segments in a step: it shares the interpreter with the stream
MOST_RECORDS = 1 << 18  # in one file: at an epoch a second, one a day
MOST_BYTES = 1 << 27  # before they are compressed

Bounds = tuple[int, int]


class Forgetter:
    """Of one journal, on every tier. `step` does one piece of the work, and says whether there was any."""

    def __init__(self, journal: Journal, disk: Disk, remote: Remote | None) -> None:
        self.journal, self.disk = journal, disk
        self.stores: list[Store] = [disk, remote] if remote is not None else [disk]
        self.reader = TieredReader(*self.stores)
        self.looked: object = None
        self.bounds: dict[Span, Bounds] = {}  # the first and the last epoch of segments
        self.given_up = 0  # segments

    def step(self) -> bool:
        with self.journal.lock:
            state = base, kept = self.journal.base, self.journal.image.kept
        if not base or kept == ALL_EPOCHS or state == self.looked:
            return False
        names = [*self.reader.sizes(SEGMENTS), *self.reader.sizes(OPENINGS)]
        try:
            past = spans(self.reader, base)
            if self._left_over(past, names) or self._give_up(past, names, kept):
                return True
        except Corrupt:
            pass  # something of the past is damaged: what is there stays, for whoever mends it
        self.looked = state
        return False

    def _left_over(self, past: Sequence[Span], names: Sequence[str]) -> bool:
        """What a crash has left within a longer one, here or in rolling up."""
        for span in past:
            if any(_within(name, span) and numbers_in(name) != span for name in names):
                if _segment(span) in names:  # synced on every tier before it was rolled up
                    self._delete(span, [_segment(span), _openings(span)])
                else:
                    self._replace(span, whole_openings(self.reader, *span))
                return True
        return False

    def _give_up(self, past: Sequence[Span], names: Sequence[str], kept: Kept) -> bool:
        whole = {span for span in past if _segment(span) in names}
        self.bounds = {span: found for span, found in self.bounds.items() if span in whole}
        unknown = [span for span in past if span in whole and span not in self.bounds]
        for span in unknown[:LOOKED_AT]:
            self.bounds[span] = _bounds(openings_in(self.reader, *span))
        due = next((span for span in past if span in self.bounds and not kept.count(*map(Epoch, self.bounds[span]))), None)
        if due is not None:
            together = neighbours(past, due, whole)
            text = text_of(self.reader, together)
            if len(text) > MOST_BYTES:
                together, text = [due], text_of(self.reader, [due])
            self._replace((together[0][0], together[-1][1]), pack_openings(text))
            self.given_up += 1
        return due is not None or bool(unknown)

    def _replace(self, span: Span, content: bytes) -> None:
        """All that lies within the span, by what is left of it."""
        name = _openings(span)
        self.journal.look()
        for store in self.stores:
            if store.read(name) != content:
                store.replace(name, content)
        self.disk.sync_files([name])
        self.disk.sync_folders([name])
        self._delete(span, [name])

    def _delete(self, span: Span, stay: Sequence[str]) -> None:
        self.journal.look()
        for store in self.stores:
            for name in own([*store.sizes(SEGMENTS), *store.sizes(OPENINGS)]):
                if name not in stay and _within(name, span):
                    store.delete(name)


def neighbours(past: Sequence[Span], due: Span, whole: set[Span]) -> Sequence[Span]:
    """What one file shall hold when a segment is given up: that and those beside it that were given up before, as long as there is no
    `whole` one between, and those before it are not longer than all behind them.
    """
    lower = upper = past.index(due)

    def count() -> int:
        return past[upper][1] - past[lower][0] + 1

    while upper + 1 < len(past) and past[upper + 1] not in whole and past[upper + 1][1] - past[lower][0] < MOST_RECORDS:
        upper += 1
    while lower and past[lower - 1] not in whole and (size := _size(past[lower - 1])) <= count() and size + count() <= MOST_RECORDS:
        lower -= 1
    return past[lower : upper + 1]


def _size(span: Span) -> int:
    return span[1] - span[0] + 1


def _bounds(entries: Sequence[Entry]) -> Bounds:
    """Of the epochs that entries speak of; of none the last comes before the first."""
    found = [entry.epoch for entry in entries if isinstance(entry, Opened | Computed)]
    return min(found, default=1), max(found, default=0)


def _within(name: str, span: Span) -> bool:
    first, last = numbers_in(name)
    return span[0] <= first and last <= span[1]


def _segment(span: Span) -> str:
    return segment_name(*span)


def _openings(span: Span) -> str:
    return openings_name(_segment(span))
