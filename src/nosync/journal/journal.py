"""The append-only, fenced record of a flow. See docs/epoch-contract.md and `names` for what lies where.

Promise: an append that returns is part of the one history of the flow, and this run was the newest when it was made; `Fenced` means that it
is not, and that this process must stop. Appending creates one small file in the home's page cache and waits for nothing else. What carries
records to other tiers takes them from `after`.
"""

import json
import threading
from collections import deque
from collections.abc import Sequence

from nosync.journal.chain import Chain, common, junk, read_chain
from nosync.journal.entries import Entry, Opened, Reached, Started, check_readable
from nosync.journal.image import Image
from nosync.journal.joining import histories
from nosync.journal.names import RUNS, newest_generation, own, record_name, rollup_name, run_name
from nosync.journal.past import TieredReader
from nosync.journal.recent import Recent
from nosync.journal.record import Record, decode, encode
from nosync.journal.taken import taken_files
from nosync.model.errors import MALFORMED, Conflict, Corrupt, Fenced, OutcomeUnknown, Unavailable
from nosync.model.identifiers import NO_EPOCH, Epoch, RecordNumber
from nosync.model.run import Runner
from nosync.model.store import Disk, Remote, Store, fingerprint

MOST_RECORDS = 512  # in one object: what has gathered in an outage goes in bounded memory
ATTEMPTS = 100  # to join a history that other runs still write to: each of them gets at most a few records in before it is fenced


class Journal:
    """The journal of a running flow. Making one takes the flow over: every earlier run is fenced, unless this one could not go on.

    `detached`: the home may have had a remote before, and shall go on without. `follows`: only if that generation is still the newest where
    runs meet, else `Conflict`: of several that would follow it, one does.
    """

    def __init__(self, disk: Disk, remote: Remote | None, runner: Runner, detached: bool = False, follows: int | None = None) -> None:
        self.disk, self.remote = disk, remote
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.fenced: Fenced | None = None
        self.pending: list[Entry] = []
        self.unsure: Record | None = None
        self.waiting: deque[tuple[Entry, ...]] = deque()
        self.known = histories(disk, remote, detached).remote
        self.generation = take_generation([store for store in (remote, disk) if store is not None], runner, follows)
        self.run = f"{self.generation}.{runner.nonce}"
        with disk.alone():
            pass  # an earlier start has put in order what it saw before this generation; from here on it finds out first
        started = Started(self.run, runner.process, runner.host, runner.boot, runner.at, remote.address if remote else "")
        if not any(self._begun(started) for _ in range(ATTEMPTS)):
            raise Corrupt(
                f"the remote has a record {self.number + 1} that does not continue its history",
                hint="`nosync fsck HOME --remote URL` says what is there. Start with an empty remote to copy everything anew.",
            )

    def _begun(self, started: Started) -> bool:
        """Joins the history; False when an earlier run got one more record in before it was fenced."""
        self.chain = chain = self._joined()
        self.image = chain.image()
        self.base, self.number, self.digest, self.origin = chain.base, chain.number, chain.digest, chain.origin
        self.before = self.image.started
        self.recent = Recent(chain.rollup.image if chain.rollup else Image(), chain.records)
        emptied = [Reached("site", NO_EPOCH)] if self.remote is not None and self.image.reached and not self.shipped else []
        record = encode(self.number + 1, self.run, self.digest, [started, *emptied])
        self.look()  # one that was overtaken while it read must not write behind the run that overtook it
        try:
            create(self.disk, record_name(record.number), record.content)
        except Conflict:
            return False
        self.unsure = record
        self.resolve()
        try:
            while self.remote is not None and self.shipped < self.number:
                self.ship()
        except Conflict:
            return False
        return True

    def _joined(self) -> Chain:
        """The history to go on with, written into the home where the home lacks it."""
        while True:
            found = histories(self.disk, self.remote, detached=True, known=self.known)
            self.known = found.remote
            self.shipped = common(found.home, found.remote)
            chosen = found.believed
            if chosen is found.remote:
                with self.disk.alone():
                    self.look_at(self.disk)
                    _copy(self.disk, chosen, self.shipped)
                self.shipped = chosen.number
            if not self._cleared(chosen):
                continue
            return chosen

    def _cleared(self, chain: Chain) -> bool:
        """Removes what lies behind the end of the chain: torn by a restart, or of a run that was fenced. False when a record came in
        meanwhile: then what lies behind that may be part of the history too.
        """
        names = junk(self.disk, chain)
        if names and any(decode(self.disk.read(record_name(chain.number + 1)) or b"", chain.number + 1, chain.digest)):
            return False
        for name in names:
            self.look()
            with self.disk.alone():
                self.look_at(self.disk)  # what a newer run has put in the place of what was torn is not ours to remove
                self.disk.delete(name)
        return True

    def append(self, *entries: Entry) -> RecordNumber:
        """Records the entries at once, with what was `note`d before, and applies them to the image. Gives the record's number.

        When the disk fails the entries stay in line: `resolve` tries again, in order. Only a crash loses them.
        """
        for entry in entries:
            check_readable(entry)
        with self.changed:
            self.waiting.append(entries)
            self.resolve()
            return self.number

    def resolve(self) -> None:
        """Makes sure that all that was appended is there. Idempotent."""
        with self.changed:
            if self.fenced is not None:
                raise self.fenced
            while self.unsure is not None or self.waiting:
                if self.unsure is None:
                    self.unsure = encode(self.number + 1, self.run, self.digest, [*self.pending, *self.waiting.popleft()])
                    self.pending.clear()
                self._write(self.unsure)

    def _write(self, record: Record) -> None:
        try:
            create(self.disk, record_name(record.number), record.content)
        except Conflict:
            raise self._overrun() from None
        if self.disk.exists(run_name(self.generation + 1)):
            raise self._fence()
        self.unsure = None
        self._apply(record)
        self.changed.notify_all()

    def _apply(self, record: Record) -> None:
        self.number, self.digest = record.number, record.digest
        if record.number == 1:
            self.origin = record.digest
        self.recent.append(record)
        for entry in record.entries:
            self.image.apply(record.number, entry)

    def look(self) -> None:
        """`Fenced` when a newer run has taken over, here or at the remote. Called before anything that cannot be undone."""
        self.resolve()
        for store in (self.disk, self.remote):
            if store is not None:
                self.look_at(store)

    def look_at(self, store: Store) -> None:
        """As `look`, at one tier: what was written there before counts, since a run that begins later finds it."""
        if store.exists(run_name(self.generation + 1)):
            self.fence(fenced_by(store, self.generation))
            self.resolve()

    def note(self, entry: Entry) -> None:
        """Goes with the next append: for news that nothing waits for."""
        with self.lock:
            self.pending.append(entry)

    def flush(self) -> None:
        """Records what was noted, if no append has taken it along."""
        with self.changed:
            if self.pending:
                self.append()

    def snapshot(self) -> tuple[Image, RecordNumber]:
        """The flow as of now, and up to where it is rolled up: for readers who take their time, and hold up nobody."""
        with self.lock:
            return self.image.copy(), self.base

    def after(self, number: RecordNumber, most: int | None = None) -> list[Record]:
        """The records behind a number, oldest first, `most` of them."""
        with self.lock:
            return self.recent.after(number, most)

    def computed_by(self, number: RecordNumber) -> Epoch:
        """The newest epoch that the first `number` records make known, with layers that they name."""
        with self.lock:
            return self.recent.computed_by(number, self.image.epoch)

    def opened_by(self, number: RecordNumber) -> Epoch:
        """The newest computed epoch that was opened, with all before it, in the first `number` records."""
        with self.lock:
            return self.recent.opened_by(number, self.image.epoch)

    def ship(self) -> int:
        """Brings records to the remote, one object for all that are new (`MOST_RECORDS` of them), and the input they need before them.
        Gives the bytes.

        `Conflict`: the remote has records of another run there.
        """
        if self.remote is None or self.shipped == self.number:
            return 0
        self.look_at(self.remote)  # what was appended since another run took over is no part of the history: it shall not get there
        sent = self._ship_rollup(self.remote) if self.shipped < self.base else 0
        records = self.after(max(self.shipped, self.base), MOST_RECORDS)
        for entry in [entry for record in records for entry in record.entries if isinstance(entry, Opened)]:
            for name, mark in entry.files.items():
                if fingerprint(self.disk.read(name) or b"") == mark:  # else torn by a restart: recovery will see to it
                    sent += self.remote.upload(name, self.disk)
        content = b"".join(record.content for record in records)
        arrived = self._arrived(self.remote, records, content) if records else self.base
        self.look_at(self.remote)  # only now it counts: a run that begins later finds it there
        self.shipped = arrived
        return sent + len(content)

    def _arrived(self, remote: Remote, records: list[Record], content: bytes) -> RecordNumber:
        """The last record that is there. An earlier attempt of ours may have arrived although it was reported as failed."""
        name = record_name(records[0].number)
        try:
            create(remote, name, content)
            return records[-1].number
        except Conflict:
            found = remote.read(name) or b""
        for count, record in enumerate(records, start=1):
            if found == b"".join(one.content for one in records[:count]):
                return record.number
        raise Conflict("the remote has records of another run", hint="Another run took this flow over.")

    def _ship_rollup(self, remote: Remote) -> int:
        """For a remote that is new to a long history: what sources must know of the past, then the roll-up that this history was read
        from. A newer one in the home may be torn.
        """
        if self.chain.rollup is None or self.chain.rollup.number != self.base:
            raise ValueError(f"rolled up to record {self.base}, which the remote does not have: nothing joins them")
        contents = taken_files(TieredReader(self.disk), self.base)
        contents[rollup_name(self.base, self.chain.rollup.image.epoch)] = self.chain.rollup.content()
        for name, content in contents.items():
            remote.replace(name, content)
        return sum(map(len, contents.values()))

    def forget(self, number: RecordNumber) -> None:
        """Records up to this number are on every tier: they need not be held in memory."""
        with self.lock:
            self.recent.forget(number)

    def _overrun(self) -> Fenced:
        """There is another record: of a newer run, or of an earlier one that was overtaken in the middle of an append and has yet to learn
        it. That one does not count, but a newer run may come while it is removed: so this is for a start to do.
        """
        if not self.disk.exists(run_name(self.generation + 1)):
            words = f"a run that was overtaken has left something where record {self.number + 1} belongs"
            self.fence(Fenced(words, hint="Start again: nothing is lost, and it is removed then."))
        return self._fence()

    def _fence(self) -> Fenced:
        self.fence(fenced_by(self.disk, self.generation))
        assert self.fenced is not None
        return self.fenced

    def fence(self, error: Fenced) -> None:
        """A newer run took over: from here on nothing can be appended."""
        with self.changed:
            self.fenced = self.fenced or error
            self.changed.notify_all()


def take_generation(stores: Sequence[Store], runner: Runner, follows: int | None = None) -> int:
    """The next generation on every tier. Runs that meet here get different ones; the later one wins.

    On each tier generations have no gap, so that a run need only look for the one after its own. `follows`: see `Journal`; the first of
    the stores is the one that all hosts share.
    """
    content = json.dumps(runner.to_json()).encode()
    taken = [newest_generation(store.sizes(RUNS)) for store in stores]
    generation = max(taken) + 1
    if follows is not None and taken[0] != follows:
        raise _followed(follows)
    while not all(_fill(store, last, generation, content) for store, last in zip(stores, taken)):
        if follows is not None:
            raise _followed(follows)
        taken = [generation] * len(taken)
        generation += 1
    return generation


def _followed(follows: int) -> Conflict:
    return Conflict(f"another run has followed the one of generation {follows}", hint="Stand by for that one.")


def _fill(store: Store, last: int, generation: int, content: bytes) -> bool:
    """Creates all generations behind `last`; says whether the final one is ours."""
    mine = False
    for number in range(last + 1, generation + 1):
        try:
            create(store, run_name(number), content)
            mine = True
        except Conflict:
            mine = False
    return mine


def create(store: Store, name: str, content: bytes) -> None:
    """Put-if-absent with a known outcome: done, `Conflict` (the name has another content) or `Unavailable`."""
    try:
        store.create(name, content)
    except (Conflict, OutcomeUnknown) as error:
        found = store.read(name)
        if found == content:
            return
        if found is None:
            raise Unavailable(f'"{name}" could not be created: {error.message}', error.hint) from error
        raise Conflict(f'"{name}" exists already', hint="Another run made it.") from None


def fenced_by(store: Store, generation: int) -> Fenced:
    """The error for a run of this generation, naming the newest one."""
    newest = max(own(store.sizes(RUNS)), default=run_name(generation))
    try:
        facts = Runner.from_json(json.loads(store.read(newest) or b"{}"))
        who = f"process {facts.process} on {facts.host}"
    except MALFORMED:
        who = "another run"
    return Fenced(f"{who} took this flow over", hint="This run has stopped; nothing is lost. Let one process run the flow at a time.")


def _copy(disk: Disk, remote: Chain, agreed: int) -> None:
    """Brings the home to the remote's history, from where they agree on. A roll-up is synced at once: all that follows stands on it."""
    if remote.rollup and remote.base > agreed:
        name = rollup_name(remote.base, remote.rollup.image.epoch)
        disk.replace(name, remote.rollup.content())
        disk.sync_files([name])
        disk.sync_folders([name])
    for record in remote.records:
        if record.number > agreed:
            disk.replace(record_name(record.number), record.content)


def image_of(store: Store) -> Image:
    """The flow as of now, for readers."""
    return read_chain(store).image()
