"""The chain of records on one tier, and what to believe when two tiers disagree.

Promise: `read_chain` gives the longest chain that is whole. What lies behind a missing, torn or foreign record is not part of it.
Nothing is written here.
"""

import json
from dataclasses import dataclass, field

import xxhash

from nosync.journal.image import Image
from nosync.journal.image_text import from_text, to_text
from nosync.journal.names import RECORDS, ROLLUPS, numbers_in, own, rollup_name
from nosync.journal.record import FIRST, NOT_OURS, Record, decode
from nosync.model.errors import Corrupt, Invalid, reading
from nosync.model.identifiers import NO_RECORD, RecordNumber
from nosync.model.store import Store


@dataclass(frozen=True, slots=True)
class Rollup:
    """The flow as of a record. `origin` is the digest of the very first record: it distinguishes histories.

    Stored as one line with the xxh3-64 of the rest in hex, and one JSON object.
    """

    number: RecordNumber
    digest: str
    origin: str
    image: Image

    def content(self) -> bytes:
        facts = {"number": self.number, "digest": self.digest, "origin": self.origin, "image": to_text(self.image)}
        text = json.dumps(facts, separators=(",", ":"), default=str).encode()
        return xxhash.xxh3_64_hexdigest(text).encode() + b"\n" + text


def read_rollup(content: bytes, name: str) -> Rollup | None:
    """None for one that is torn or damaged. `Corrupt` for one that is whole and yet cannot be understood."""
    checksum, _, text = content.partition(b"\n")
    if xxhash.xxh3_64_hexdigest(text).encode() != checksum:
        return None
    with reading(f'"{name}"', NOT_OURS):
        facts = json.loads(text)
        number, digest, origin = RecordNumber(facts["number"]), str(facts["digest"]), str(facts["origin"])
        return Rollup(number, digest, origin, from_text(facts["image"]))


@dataclass(slots=True)
class Chain:
    """A roll-up and the records after it. Empty: number 0."""

    rollup: Rollup | None = None
    records: list[Record] = field(default_factory=list)

    @property
    def base(self) -> RecordNumber:
        return self.rollup.number if self.rollup else NO_RECORD

    @property
    def number(self) -> RecordNumber:
        return self.base + len(self.records)

    @property
    def digest(self) -> str:
        return self.digest_at(self.number)

    @property
    def origin(self) -> str:
        if self.rollup:
            return self.rollup.origin
        return self.records[0].digest if self.records else FIRST

    def digest_at(self, number: RecordNumber) -> str:
        if number == self.base:
            return self.rollup.digest if self.rollup else FIRST
        return self.records[number - self.base - 1].digest

    def image(self) -> Image:
        """What the chain says; `Corrupt` where its entries contradict each other."""
        image = self.rollup.image.copy() if self.rollup else Image()
        with reading("the journal", NOT_OURS):
            for record in self.records:
                for entry in record.entries:
                    image.apply(record.number, entry)
        return image


def read_chain(store: Store, known: Chain | None = None) -> Chain:
    """The newest whole roll-up, and all records that continue it. `known`, on a store where records are never replaced, is what was read
    there before: only what is new since then is read.
    """
    while True:
        rollups = _rollups(store)
        names = {numbers_in(name)[0]: name for name in own(store.sizes(RECORDS))}
        if known is not None and known.number and rollups[:1] == _named(known):
            chain = Chain(known.rollup, list(known.records))
        else:
            chain = Chain(_newest(store, rollups))
            chain.records += _rest(store, names, chain)
        contents = store.read_all([name for number, name in names.items() if number > chain.number])
        while (name := names.get(chain.number + 1)) is not None:
            found = list(decode(contents.get(name, b""), chain.number + 1, chain.digest))
            if not found:
                break
            chain.records += found
        if _rollups(store) == rollups:  # else records may have been rolled up and deleted under our eyes
            return chain


def _named(chain: Chain) -> list[str]:
    return [rollup_name(chain.base, chain.rollup.image.epoch)] if chain.rollup else []


def _rest(store: Store, names: dict[RecordNumber, str], chain: Chain) -> list[Record]:
    """The records behind a roll-up that lie in one object with some before it."""
    first = max((number for number in names if number <= chain.base), default=None)
    if first is None:
        return []
    found = list(decode(store.read(names[first]) or b"", first, None))
    if not any(record.number == chain.base and record.digest == chain.digest for record in found):
        return []
    return [record for record in found if record.number > chain.base]


def _rollups(store: Store) -> list[str]:
    return sorted(own(store.sizes(ROLLUPS)), reverse=True)


def _newest(store: Store, names: list[str]) -> Rollup | None:
    for name in names:
        found = read_rollup(store.read(name) or b"", name)
        if found is not None:
            return found
    return None


def junk(store: Store, chain: Chain) -> list[str]:
    """Records behind the end of the chain, the last first."""
    return sorted((name for name in own(store.sizes(RECORDS)) if numbers_in(name)[0] > chain.number), reverse=True)


def common(home: Chain, remote: Chain) -> RecordNumber:
    """Up to which record two tiers agree; 0 where the home was left behind so long ago that the remote has rolled up what they share, or
    where it has nothing yet: two hosts may begin at the same time. Raises where they belong to different histories.
    """
    if not remote.number:
        return NO_RECORD
    if home.origin != remote.origin:
        if not home.image().last_opened:
            return NO_RECORD
        raise Invalid("the home and the remote belong to different histories", hint="Give each flow a remote of its own.")
    for number in map(RecordNumber, range(min(home.number, remote.number), max(home.base, remote.base) - 1, -1)):
        if home.digest_at(number) == remote.digest_at(number):
            return number
    if remote.base > home.base:
        return NO_RECORD
    raise Corrupt(
        f"the home begins at record {home.base}, the remote ends at record {remote.number}: nothing joins them",
        hint="Start with an empty remote to copy everything anew, or with an empty home to go on from the remote.",
    )


def believed(home: Chain, remote: Chain) -> Chain:
    """The chain to go on with: the longer one where one continues the other, the remote's where they fork."""
    return home if common(home, remote) == remote.number else remote


