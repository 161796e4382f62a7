"""What the image has forgotten: read back from the segments of the journal when somebody asks."""

import json
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import suppress
from itertools import chain
from typing import TypeVar

from nosync.journal.entries import Entry, Opened, RolledBack, from_json
from nosync.journal.image import Image
from nosync.journal.names import SEGMENTS, numbers_in, openings_name, own
from nosync.journal.record import NOT_OURS, Record, decode, unpack
from nosync.model.errors import Corrupt, reading
from nosync.model.identifiers import NO_RECORD, Epoch, RecordNumber
from nosync.model.source import Slice
from nosync.model.store import Store

T = TypeVar("T")


class TieredReader:
    """Reads from several tiers, in order: the past may lie in the home or, after a loss, only on the remote."""

    def __init__(self, *stores: Store | None) -> None:
        self._stores = [store for store in stores if store is not None]

    def read(self, name: str) -> bytes | None:
        return next((content for store in self._stores if (content := store.read(name)) is not None), None)

    def sizes(self, folder: str) -> dict[str, int]:
        found: dict[str, int] = {}
        for store in reversed(self._stores):
            found |= store.sizes(folder)
        return {name: found[name] for name in own(found)}

    def nearest(self, read: "Callable[[TieredReader], T]") -> T:
        """What the first stores have. Farther ones are asked only where these lack something, which they say by `Corrupt`: an outage
        stops nobody who has all he needs at home.
        """
        for count in range(1, len(self._stores)):
            with suppress(Corrupt):
                return read(TieredReader(*self._stores[:count]))
        return read(self)


def whole_image(reader: TieredReader, base: RecordNumber, records: Iterable[Record]) -> Image:
    """Every entry ever, folded: what a recovery needs when something old is lost. Costs O(history)."""
    image = reader.nearest(lambda some: _folded(past_records(some, base)))
    for record in records:
        if record.number > image.number:
            _apply(image, record)
    return image


def _folded(records: Iterable[Record]) -> Image:
    image = Image()
    for record in records:
        _apply(image, record)
    return image


def past_records(reader: TieredReader, base: RecordNumber) -> Iterator[Record]:
    """All records that were rolled up, oldest first."""
    return (record for records in _past(reader, base, NO_RECORD) for record in records)


def _past(reader: TieredReader, base: RecordNumber, after: RecordNumber) -> Iterator[list[Record]]:
    """The records from `after` + 1 to the roll-up at `base`, segment by segment."""
    for name in _segments(reader, base, after):
        records = read_segment(reader, name)
        if not records:
            raise _missing(numbers_in(name)[1])
        yield records


def _segments(reader: TieredReader, base: RecordNumber, after: RecordNumber) -> list[str]:
    """Their names, oldest first."""
    return list(_segments_back(reader, base, after))[::-1]


def _segments_back(reader: TieredReader, base: RecordNumber, after: RecordNumber) -> Iterator[str]:
    """Their names, the newest first. Found from their end: one that was given up may lie about, torn."""
    ending: dict[RecordNumber, list[str]] = {}
    for name in reader.sizes(SEGMENTS) if base > after else ():
        ending.setdefault(numbers_in(name)[1], []).append(name)
    while base > after:
        names = ending.get(base, [])
        whole = names if len(names) == 1 else [name for name in names if read_segment(reader, name)]
        if not whole:
            raise _missing(base)
        yield whole[0]
        base = numbers_in(whole[0])[0] - 1


def whole_segments(reader: TieredReader, base: RecordNumber) -> list[str]:
    """The names of all segments up to the roll-up at `base`, each of them read."""
    names = _segments(reader, base, NO_RECORD)
    for name in names:
        if not read_segment(reader, name):
            raise _missing(numbers_in(name)[1])
    return names


def _missing(number: RecordNumber) -> Corrupt:
    return Corrupt(
        f"records up to {number} of the journal are in no segment",
        hint="The newest state is not touched; epochs before the roll-up cannot be read here.",
    )


def read_segment(reader: TieredReader, name: str) -> list[Record]:
    """Its records; none when it is not whole."""
    first, last = numbers_in(name)
    found = list(decode(unpack(reader.read(name)), first, None))
    return found if len(found) == last - first + 1 else []


def openings(reader: TieredReader, base: RecordNumber, records: Iterable[Record]) -> list[Opened]:
    """Every opening of the one history, oldest first. What was rolled back is left out."""
    found: dict[Epoch, Opened] = {}
    rolled = reader.nearest(lambda some: list(rolled_openings(some, base)))
    for entry in chain(rolled, (entry for record in records for entry in record.entries)):
        if isinstance(entry, Opened):
            found[entry.epoch] = entry
        elif isinstance(entry, RolledBack):
            found = {epoch: opened for epoch, opened in found.items() if epoch <= entry.epoch}
    return [found[epoch] for epoch in sorted(found)]


def rolled_openings(reader: TieredReader, base: RecordNumber) -> Iterator[Entry]:
    """What was opened and rolled back in the records up to the roll-up at `base`, and perhaps more of them."""
    for name in _segments(reader, base, NO_RECORD):
        yield from _openings_in(reader, name)


def _openings_in(reader: TieredReader, segment: str) -> Iterator[Entry]:
    short = unpack(reader.read(openings_name(segment)))
    if short:
        with reading(f'"{openings_name(segment)}"', NOT_OURS):
            entries = [from_json(json.loads(line)) for line in short.split(b"\n")]
        yield from entries
        return
    records = read_segment(reader, segment)
    if not records:
        raise _missing(numbers_in(segment)[1])
    yield from (entry for record in records for entry in record.entries)


def rolled_openings_of(reader: TieredReader, base: RecordNumber, epochs: Container[Epoch], count: int) -> dict[Epoch, Opened]:
    """The openings of `count` epochs that were computed and rolled up, from the newest segment back, as far as needed. An epoch that was
    rolled back and opened again has two: the newer one counts.
    """
    return reader.nearest(lambda some: _rolled_openings_of(some, base, epochs, count))


def _rolled_openings_of(reader: TieredReader, base: RecordNumber, epochs: Container[Epoch], count: int) -> dict[Epoch, Opened]:
    found: dict[Epoch, Opened] = {}
    for name in _segments_back(reader, base, NO_RECORD):
        if len(found) == count:
            break
        here = [entry for entry in _openings_in(reader, name) if isinstance(entry, Opened) and entry.epoch in epochs]
        found = {entry.epoch: entry for entry in here} | found
    return found


def slices(openings: Iterable[Opened], source: str) -> Iterator[Slice]:
    """All that was ever taken from a source, in order."""
    return (entry.slices[source] for entry in openings if source in entry.slices)


def _apply(image: Image, record: Record) -> None:
    with reading("the journal", NOT_OURS):
        for entry in record.entries:
            image.apply(record.number, entry)

