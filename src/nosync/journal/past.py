"""What the image has forgotten: read back from the segments of the journal when somebody asks, and, where those were given up (see
`forgetting`), from what is left of them.
"""

import json
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import TypeVar

from nosync.journal.entries import Entry, Opened, RolledBack, from_json
from nosync.journal.image import Image
from nosync.journal.names import OPENINGS, SEGMENTS, Span, numbers_in, openings_name, own, segment_name
from nosync.journal.record import NOT_OURS, Record, decode, left_of, openings_text, unpack
from nosync.model.errors import Corrupt, reading
from nosync.model.identifiers import Epoch, RecordNumber
from nosync.model.source import Slice
from nosync.model.store import Store

T = TypeVar("T")


class TieredReader:
    """Reads from several tiers, in order: the past may lie in the home or, after a loss, only on the remote."""

    def __init__(self, *stores: Store | None) -> None:
        self._stores = [store for store in stores if store is not None]

    def read(self, name: str) -> bytes | None:
        return next(self.contents(name), None)

    def contents(self, name: str) -> Iterator[bytes]:
        """What each of the stores has under a name: the first may be torn."""
        return (content for store in self._stores if (content := store.read(name)) is not None)

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
        with suppress(Corrupt):
            return read(self)
        return read(self)  # a run may have given up, while it was read, what was listed before: what is left is there now


def whole_image(reader: TieredReader, image: Image, base: RecordNumber, records: Iterable[Record]) -> Image:
    """The image with all that it has forgotten of its epochs: what a recovery needs when something old is lost. `records` are those behind
    the roll-up at `base`. Costs O(history).
    """
    past = reader.nearest(lambda some: _folded(stretches(some, base)))
    for record in records:
        _apply(past, record.number, record.entries)
    opened, computed = (past.opened, past.opened_in), (past.computed, past.computed_in)
    return replace(image.copy(), opened=opened[0], opened_in=opened[1], computed=computed[0], computed_in=computed[1], seen=past.seen)


def _folded(parts: Iterable["Stretch"]) -> Image:
    image = Image()
    for part in parts:
        _apply(image, part.last, part.entries)
    return image


@dataclass(frozen=True, slots=True)
class Stretch:
    """Entries of neighbouring records that were rolled up: all of them, or, where those were given up, what is left (see `left_of`)."""

    first: RecordNumber
    last: RecordNumber
    entries: Sequence[Entry]
    whole: bool


def stretches(reader: TieredReader, base: RecordNumber) -> list[Stretch]:
    """All that was rolled up, oldest first."""
    return [_stretch(reader, first, last) for first, last in spans(reader, base)]


def _stretch(reader: TieredReader, first: RecordNumber, last: RecordNumber) -> Stretch:
    records = read_segment(reader, segment_name(first, last))
    if records:
        return Stretch(first, last, [entry for record in records for entry in record.entries], whole=True)
    left = read_openings(reader, first, last)
    if left is None:
        raise _missing(last)
    return Stretch(first, last, left, whole=False)


def spans(reader: TieredReader, base: RecordNumber) -> list[Span]:
    """Which records lie together, as a segment or as what is left of it, oldest first: the numbers of the first and the last."""
    return list(_spans_back(reader, base))[::-1]


def _spans_back(reader: TieredReader, base: RecordNumber) -> Iterator[Span]:
    """The newest first. Found from their end: what was given up may lie about, torn. Of several that are whole the longest counts."""
    beginning: dict[RecordNumber, set[RecordNumber]] = {}
    for first, last in map(numbers_in, (*reader.sizes(SEGMENTS), *reader.sizes(OPENINGS)) if base else ()):
        beginning.setdefault(last, set()).add(first)
    while base:
        firsts = sorted(beginning.get(base, ()))
        whole = firsts if len(firsts) == 1 else [first for first in firsts if _is_whole(reader, first, base)]
        if not whole:
            raise _missing(base)
        yield whole[0], base
        base = RecordNumber(whole[0] - 1)


def _is_whole(reader: TieredReader, first: RecordNumber, last: RecordNumber) -> bool:
    return bool(read_segment(reader, segment_name(first, last))) or read_openings(reader, first, last) is not None


def past_files(reader: TieredReader, base: RecordNumber) -> list[str]:
    """The names of files that together say what was opened up to the roll-up at `base`, each of them read."""
    return [_file_of(reader, first, last) for first, last in spans(reader, base)]


def _file_of(reader: TieredReader, first: RecordNumber, last: RecordNumber) -> str:
    segment = segment_name(first, last)
    if read_segment(reader, segment):
        return segment
    if read_openings(reader, first, last) is None:
        raise _missing(last)
    return openings_name(segment)


def _missing(number: RecordNumber) -> Corrupt:
    return Corrupt(
        f"records up to {number} of the journal are in no segment",
        hint="The newest state is not touched; epochs before the roll-up cannot be read here.",
    )


def read_segment(reader: TieredReader, name: str) -> list[Record]:
    """Its records; none when it is not whole."""
    first, last = numbers_in(name)
    for content in reader.contents(name):
        found = list(decode(unpack(content) or b"", first, None))
        if len(found) == last - first + 1:
            return found
    return []


def read_openings(reader: TieredReader, first: RecordNumber, last: RecordNumber) -> list[Entry] | None:
    """What is left of these records once they are given up; None where it is missing or torn."""
    name = openings_name(segment_name(first, last))
    for text in map(unpack, reader.contents(name)):
        if text is not None:
            with reading(f'"{name}"', NOT_OURS):
                return [from_json(json.loads(line)) for line in text.split(b"\n") if line]
    return None


def whole_openings(reader: TieredReader, first: RecordNumber, last: RecordNumber) -> bytes:
    """The same, as it is stored."""
    name = openings_name(segment_name(first, last))
    for content in reader.contents(name):
        if unpack(content) is not None:
            return content
    raise _missing(last)


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
    for first, last in spans(reader, base):
        yield from openings_in(reader, first, last)


def text_of(reader: TieredReader, neighbours: Iterable[Span]) -> bytes:
    """What is left of neighbours, as one; taken from a segment where its openings are torn."""
    return b"\n".join(text for first, last in neighbours if (text := _text_of(reader, first, last)))


def _text_of(reader: TieredReader, first: RecordNumber, last: RecordNumber) -> bytes:
    for text in map(unpack, reader.contents(openings_name(segment_name(first, last)))):
        if text is not None:
            return text
    return openings_text(_stretch(reader, first, last).entries)


def openings_in(reader: TieredReader, first: RecordNumber, last: RecordNumber) -> Sequence[Entry]:
    """What was opened in records that lie together, and perhaps more of them."""
    left = read_openings(reader, first, last)
    return left if left is not None else _stretch(reader, first, last).entries


def rolled_openings_of(reader: TieredReader, base: RecordNumber, epochs: Container[Epoch], count: int) -> dict[Epoch, Opened]:
    """The openings of `count` epochs that were computed and rolled up, from the newest segment back, as far as needed. An epoch that was
    rolled back and opened again has two: the newer one counts.
    """
    return reader.nearest(lambda some: _rolled_openings_of(some, base, epochs, count))


def _rolled_openings_of(reader: TieredReader, base: RecordNumber, epochs: Container[Epoch], count: int) -> dict[Epoch, Opened]:
    found: dict[Epoch, Opened] = {}
    for first, last in _spans_back(reader, base):
        if len(found) == count:
            break
        here = [entry for entry in openings_in(reader, first, last) if isinstance(entry, Opened) and entry.epoch in epochs]
        found = {entry.epoch: entry for entry in here} | found
    return found


def slices(openings: Iterable[Opened], source: str) -> Iterator[Slice]:
    """All that was ever taken from a source, in order."""
    return (entry.slices[source] for entry in openings if source in entry.slices)


def _apply(image: Image, number: RecordNumber, entries: Iterable[Entry]) -> None:
    """What they say of epochs."""
    with reading("the journal", NOT_OURS):
        for entry in left_of(entries):
            image.apply(number, entry)
