"""Rolling up: opening a flow costs the same after a million epochs as after a thousand.

Every so many records, the image is written down and the records before it become one segment of the past. In this order, each step only
when the one before is done on every tier: remember image and number; wait until every tier has the records up to there; write segment and
roll-up; sync; delete the records. Only what every tier has is rolled up, so a tier that lags can always be joined to the others.
"""

from dataclasses import dataclass, field
from itertools import pairwise

from nosync.journal.chain import Rollup
from nosync.journal.journal import Journal
from nosync.journal.names import RECORDS, ROLLUPS, numbers_in, openings_name, own, rollup_name, segment_name
from nosync.journal.past import TieredReader
from nosync.journal.record import openings_text, pack, pack_openings
from nosync.journal.taken import MarksOf, next_tile
from nosync.model.compaction import DEFAULT, Compaction
from nosync.model.estimate import LEAST_RECORDS
from nosync.model.identifiers import RecordNumber
from nosync.model.store import Disk, Remote, Store

ROLL_RECORDS = 1024
MOST_ROLLUPS = 64  # that are deleted at once


@dataclass
class Roller:
    """Rolls up one journal. `step` is called now and then, with the newest record that every tier has."""

    journal: Journal
    disk: Disk
    remote: Remote | None
    every: int = ROLL_RECORDS
    marks_of: MarksOf = field(default_factory=dict)
    candidate: Rollup | None = None
    knobs: Compaction = DEFAULT

    def step(self, everywhere: int) -> bool:
        if self.candidate is None:
            return self._choose()
        if everywhere < self.candidate.number:
            return False
        self.journal.look()
        self._roll(self.candidate)
        self.candidate = None
        return True

    def _choose(self) -> bool:
        journal = self.journal
        with journal.lock:
            if not self._is_full():
                return False
            image = journal.image.copy()
            image.forget_past(image.epoch + 1)
            self.candidate = Rollup(journal.number, journal.digest, journal.origin, image)
            return True

    def _is_full(self) -> bool:
        """Whether the records since the last roll-up are a closed segment. A few are never rolled up: that takes time as well."""
        journal, opened = self.journal, self.journal.image.opened
        count = journal.number - journal.base
        if count >= self.every or count < LEAST_RECORDS or not self.knobs.by_segment or not opened:
            return count >= self.every
        age = opened[max(opened)].at - opened[min(opened)].at
        return self.knobs.closes(journal.recent.record_bytes_after(journal.base), age)

    def _roll(self, rollup: Rollup) -> None:
        records = [record for record in self.journal.after(self.journal.base) if record.number <= rollup.number]
        entries = [entry for record in records for entry in record.entries]
        segment = segment_name(records[0].number, rollup.number)
        summary = rollup_name(rollup.number, rollup.image.epoch)
        taken, content, inside = next_tile(TieredReader(self.disk, self.remote), records, self.marks_of)
        self._write({segment: pack(records), openings_name(segment): pack_openings(openings_text(entries)), taken: content})
        self._write({summary: rollup.content()})
        self.journal.look()
        self._forget(rollup, inside)

    def _write(self, texts: dict[str, bytes]) -> None:
        """On every tier, and synced: what is written next relies on it. What an earlier try has written is not touched: a restart of the
        host could tear the new copy."""
        for name, text in texts.items():
            if self.remote is not None:
                self.remote.replace(name, text)
            if self.disk.read(name) != text:
                self.disk.replace(name, text)
        self.disk.sync_files(texts)
        self.disk.sync_folders(texts)

    def _forget(self, rollup: Rollup, inside: list[str]) -> None:
        for store in (self.disk, self.remote):
            if store is not None:
                for name in [*covered_by_rollup(store, rollup.number), *inside, *older_rollups(store, rollup.number)]:
                    store.delete(name)
        with self.journal.lock:
            self.journal.base = rollup.number
            self.journal.forget(rollup.number)
            self.journal.image.forget_past(rollup.image.epoch + 1)


def covered_by_rollup(store: Store, number: RecordNumber) -> list[str]:
    """Objects all of whose records are in a roll-up at `number`, oldest first. The last object is left: nobody knows where it ends."""
    names = sorted(own(store.sizes(RECORDS)))
    return [name for name, after in pairwise(names) if numbers_in(after)[0] <= number + 1]


def older_rollups(store: Store, number: RecordNumber) -> list[str]:
    """Those before the one that came before a roll-up at `number`: that one is there for when the newest is damaged."""
    return sorted(name for name in own(store.sizes(ROLLUPS)) if numbers_in(name)[0] < number)[:-1][:MOST_ROLLUPS]
