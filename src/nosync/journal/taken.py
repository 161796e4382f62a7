"""A summary of what was ever taken from each source: opening a flow after a million epochs reads a few files, not a million slices.

    journal/taken/<first>-<last>   a *tile*: of the openings among these records, without what was rolled back
        one line with the xxh3-64 of the rest in hex
        one line of JSON: the highest epoch opened, each source's latest slice, and how many marks each has
        the marks, 16 bytes each (xxh3-128 of the text), ascending, one source after the other

A *mark* is what a source must never take twice, such as the name of a file; its `marks` method says which a slice has. A tile is written
when the journal is rolled up. It takes in those before it that are not longer than itself, so there are O(log n) of them, and a mark is
rewritten O(log n) times. Tiles are a function of the records: where one is missing or torn, or epochs of it were rolled back since, the
records are read instead, and the next roll-up makes one tile of everything.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
import numpy.typing as npt
import xxhash

from nosync.journal.entries import Entry, Opened, RolledBack
from nosync.journal.names import TAKEN, numbers_in, taken_summary_name
from nosync.journal.past import TieredReader, openings, past_files, rolled_openings, slices
from nosync.journal.record import Record
from nosync.model import source
from nosync.model.errors import MALFORMED
from nosync.model.identifiers import NO_EPOCH, Epoch, RecordNumber
from nosync.model.source import Slice

WIDTH = 16
MarksOf = Mapping[str, Callable[[Slice], Iterable[str]]]
Digests = npt.NDArray[np.bytes_]


@dataclass(frozen=True, slots=True)
class TakenSummary:
    """What some neighbouring records took."""

    highest: Epoch = NO_EPOCH
    latest: dict[str, Slice] = field(default_factory=dict)
    marks: dict[str, Digests] = field(default_factory=dict)


def gathered(entries: Iterable[Entry], marks_of: MarksOf) -> tuple[TakenSummary, Epoch | None]:
    """What the entries took, without what they rolled back themselves; and the lowest epoch that they roll back to, if any."""
    opened: dict[Epoch, Opened] = {}
    floor: Epoch | None = None
    for entry in entries:
        if isinstance(entry, Opened):
            opened[entry.epoch] = entry
        elif isinstance(entry, RolledBack):
            opened = {epoch: known for epoch, known in opened.items() if epoch <= entry.epoch}
            floor = entry.epoch if floor is None else min(floor, entry.epoch)
    left = [opened[epoch] for epoch in sorted(opened)]
    latest = {name: slice for entry in left for name, slice in entry.slices.items()}
    marks = {name: digests(mark for slice in slices(left, name) for mark in of(slice)) for name, of in marks_of.items()}
    return TakenSummary(max(opened, default=NO_EPOCH), latest, {name: found for name, found in marks.items() if len(found)}), floor


def joined(older: TakenSummary, newer: TakenSummary) -> TakenSummary:
    """Neighbours as one."""
    marks = {name: _union(older.marks.get(name), newer.marks.get(name)) for name in sorted(older.marks.keys() | newer.marks.keys())}
    return TakenSummary(max(older.highest, newer.highest), older.latest | newer.latest, marks)


def digests(texts: Iterable[str]) -> Digests:
    """The marks of some texts, ascending and each once."""
    found: Digests = np.unique(_hashed(texts))
    return found


def _hashed(texts: Iterable[str]) -> Digests:
    return np.array([xxhash.xxh3_128_digest(text.encode(errors="surrogatepass")) for text in texts], dtype=f"S{WIDTH}")


def _union(one: Digests | None, other: Digests | None) -> Digests:
    found: Digests = np.unique(np.concatenate([digests for digests in (one, other) if digests is not None]))
    return found


def to_bytes(tile: TakenSummary) -> bytes:
    counts = {name: len(found) for name, found in sorted(tile.marks.items())}
    facts = {"highest": tile.highest, "latest": tile.latest, "counts": counts}
    head = json.dumps(facts, separators=(",", ":"), default=str).encode() + b"\n"
    body = head + b"".join(tile.marks[name].tobytes() for name in counts)
    return xxhash.xxh3_64_hexdigest(body).encode() + b"\n" + body


def from_bytes(content: bytes | None) -> TakenSummary | None:
    """None for what is missing, torn or damaged."""
    checksum, _, body = (content or b"").partition(b"\n")
    if xxhash.xxh3_64_hexdigest(body).encode() != checksum:
        return None
    head, _, rest = body.partition(b"\n")
    try:
        facts = json.loads(head)
        return TakenSummary(Epoch(int(facts["highest"])), _slices_in(facts["latest"]), _marks_in(facts["counts"], rest))
    except MALFORMED:
        return None  # whole, and yet not understood: the records are read instead


def _slices_in(latest: dict[str, Slice]) -> dict[str, Slice]:
    if not all(isinstance(slice, dict) for slice in latest.values()):
        raise TypeError("what was taken last is no slice")
    return latest


def _marks_in(counts: dict[str, int], content: bytes) -> dict[str, Digests]:
    """The marks of each source. `ValueError` where there are more or fewer bytes than the counts say."""
    if not all(type(count) is int and count > 0 for count in counts.values()) or sum(counts.values()) * WIDTH != len(content):
        raise ValueError("the marks are cut off")
    every = np.frombuffer(content, dtype=f"S{WIDTH}")
    ends = np.cumsum(list(counts.values()))
    return {name: every[end - count : end] for (name, count), end in zip(counts.items(), ends.tolist())}


def tiles(names: Iterable[str], base: RecordNumber) -> list[str] | None:
    """The fewest tiles that together cover all records up to `base`, the newest first; None where some are missing."""
    ending: dict[RecordNumber, str] = {}
    for name in sorted(names, reverse=True):
        ending[numbers_in(name)[1]] = name  # of those with one end, the longest
    found: list[str] = []
    while base:
        if base not in ending:
            return None
        found.append(ending[base])
        base = numbers_in(ending[base])[0] - 1
    return found


def taken_files(reader: TieredReader, base: RecordNumber) -> dict[str, bytes]:
    """Files, with their contents, that say all that was taken in the records up to `base`: tiles, or the past itself."""
    names = tiles(reader.sizes(TAKEN), base)
    contents = {name: reader.read(name) or b"" for name in names or ()}
    if names is not None and all(from_bytes(content) is not None for content in contents.values()):
        return contents
    return {name: reader.read(name) or b"" for name in past_files(reader, base)}


def next_tile(reader: TieredReader, records: Sequence[Record], marks_of: MarksOf) -> tuple[str, bytes, list[str]]:
    """For records that are about to be rolled up: the name and content of their tile, and the tiles that it takes in."""
    return reader.nearest(lambda some: _next_tile(some, records, marks_of))


def _next_tile(reader: TieredReader, records: Sequence[Record], marks_of: MarksOf) -> tuple[str, bytes, list[str]]:
    first, last = records[0].number, records[-1].number
    found, floor = gathered(_entries(records), marks_of)
    names = tiles(reader.sizes(TAKEN), first - 1)
    inside: list[str] = []
    for name in names or ():
        lower, upper = numbers_in(name)
        if floor is not None or upper - lower > last - first:
            break
        older = from_bytes(reader.read(name))
        if older is None:
            names = None
            break
        found, first = joined(older, found), lower
        inside.append(name)
    if names is None or floor is not None:
        everything = chain(rolled_openings(reader, records[0].number - 1), _entries(records))
        return taken_summary_name(RecordNumber(1), last), to_bytes(gathered(everything, marks_of)[0]), names or []
    return taken_summary_name(first, last), to_bytes(found), inside


def _entries(records: Iterable[Record]) -> Iterator[Entry]:
    return (entry for record in records for entry in record.entries)


class Marks:
    """Marks of one source, for asking."""

    def __init__(self, parts: Iterable[Digests] = ()) -> None:
        self._parts = [part for part in parts if len(part)]

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def among(self, texts: Sequence[str]) -> set[str]:
        """Which of the texts were taken."""
        asked = _hashed(texts)
        found = np.zeros(len(texts), dtype=np.bool_)
        for part in self._parts:
            at = np.minimum(np.searchsorted(part, asked), len(part) - 1)
            found |= part[at] == asked
        return {text for text, known in zip(texts, found.tolist(), strict=True) if known}


class Taken(Iterable[Slice]):
    """All that was taken from one source: what `Source.start` gets. Reading the slices themselves costs O(history)."""

    def __init__(
        self, slices: Callable[[], Iterable[Slice]], latest: Slice | None, marks: source.Marks, skipped: Iterable[str] = ()
    ) -> None:
        self._slices, self.latest, self.marks, self.skipped = slices, latest, marks, frozenset(skipped)

    def __iter__(self) -> Iterator[Slice]:
        return iter(self._slices())


def taken_from(
    sources: Iterable[str],
    reader: TieredReader,
    base: RecordNumber,
    records: Sequence[Record],
    marks_of: MarksOf,
    skipped: Mapping[str, Mapping[str, Epoch]] | None = None,
) -> dict[str, Taken]:
    """By source, all that was taken in the records up to `base` and in those behind it. `skipped`: what was set aside."""
    parts = reader.nearest(lambda some: _parts(some, base, records, marks_of))

    def taken(name: str) -> Taken:
        latest = next((part.latest[name] for part in reversed(parts) if name in part.latest), None)
        marks = Marks(part.marks[name] for part in parts if name in part.marks)
        return Taken(lambda: slices(openings(reader, base, records), name), latest, marks, (skipped or {}).get(name, ()))

    return {name: taken(name) for name in sources}


def _parts(reader: TieredReader, base: RecordNumber, records: Sequence[Record], marks_of: MarksOf) -> list[TakenSummary]:
    """Oldest first; a single one, made of everything, where the tiles do not suffice."""
    names = tiles(reader.sizes(TAKEN), base)
    rolled = [from_bytes(reader.read(name)) for name in reversed(names or [])]
    known = [tile for tile in rolled if tile is not None]
    newest, floor = gathered(_entries(records), marks_of)
    overtaken = floor is not None and any(tile.highest > floor for tile in known)
    if names is None or len(known) < len(rolled) or overtaken:
        return [gathered(chain(rolled_openings(reader, base), _entries(records)), marks_of)[0]]
    return [*known, newest]
