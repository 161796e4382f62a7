"""Records of the journal as bytes: what was appended at once, chained to what was appended before.

    record   a header line, then one line of JSON per entry
    header   "nosync", format 1, number, run, digest of the record before ("-" for the first), number of entries, digest; between spaces
    digest   xxh3-64 in hex of the header up to it and of the entry lines

Several records may follow one another in one object.
"""

import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import xxhash

from nosync.journal.entries import Computed, Entry, Opened, RolledBack, TakenOver, from_json, to_json
from nosync.model.errors import reading
from nosync.model.identifiers import RecordNumber

FIRST = "-"
LARGEST = 1 << 30  # bytes that a packed object may hold
NOT_OURS = "Its checksum is right: another version of nosync wrote it, or somebody else did. Use that version, or another copy."


@dataclass(frozen=True, slots=True)
class Record:
    """Entries that were appended at once. `content` is the record as it is stored."""

    number: RecordNumber
    run: str
    entries: tuple[Entry, ...]
    digest: str
    content: bytes


def encode(number: RecordNumber, run: str, previous: str, entries: Sequence[Entry]) -> Record:
    lines = b"".join(json.dumps(to_json(entry), separators=(",", ":"), default=str).encode() + b"\n" for entry in entries)
    head = f"nosync 1 {number} {run} {previous} {len(entries)} ".encode()
    digest = xxhash.xxh3_64_hexdigest(head + lines)
    return Record(number, run, tuple(entries), digest, head + digest.encode() + b"\n" + lines)


def decode(content: bytes, number: RecordNumber, previous: str | None) -> Iterator[Record]:
    """The records that continue a chain at `number`; stops at the first that is torn, damaged or of another chain.

    `previous` is the digest before it; None where nobody knows it. `Corrupt` for one that is whole and yet cannot be understood.
    """
    start = 0
    while start < len(content):
        found = _decode_one(content, start, number, previous)
        if found is None:
            return
        yield found
        start, number, previous = start + len(found.content), number + 1, found.digest


def _decode_one(content: bytes, start: int, number: RecordNumber, previous: str | None) -> Record | None:
    head, newline, _ = content[start : start + 400].partition(b"\n")
    parts = head.split(b" ")
    if not newline or len(parts) != 7 or parts[:3] != [b"nosync", b"1", b"%d" % number] or not parts[5].isdigit():
        return None
    if previous is not None and parts[4] != previous.encode():
        return None
    body = start + len(head) + 1
    end = body
    for _ in range(int(parts[5])):
        end = content.find(b"\n", end) + 1
        if not end:
            return None
    digest = xxhash.xxh3_64_hexdigest(content[start : body - 1 - len(parts[6])] + content[body:end])
    if digest.encode() != parts[6]:
        return None
    with reading(f"record {number} of the journal", NOT_OURS):
        entries = tuple(from_json(json.loads(line)) for line in content[body:end].split(b"\n")[:-1])
        return Record(number, parts[3].decode(), entries, digest, content[start:end])


def pack(records: Sequence[Record]) -> bytes:
    """Many records for the past: compressed, with a checksum of zlib's own."""
    return zlib.compress(b"".join(record.content for record in records), level=1)


def left_of(entries: Iterable[Entry]) -> Iterator[Entry]:
    """What stays of entries for good: from what epochs were made, and up to which event time they came, which is what a recovery needs to
    make them again; and how many rows they had.
    """
    for entry in entries:
        if isinstance(entry, Computed | TakenOver):
            yield replace(entry, layers=())
        elif isinstance(entry, Opened | RolledBack):
            yield entry


def openings_text(entries: Iterable[Entry]) -> bytes:
    """What is left of them, one JSON object a line."""
    return b"\n".join(json.dumps(to_json(entry), separators=(",", ":"), default=str).encode() for entry in left_of(entries))


def pack_openings(text: bytes) -> bytes:
    """Compressed, with a checksum of zlib's own."""
    return zlib.compress(text, level=1)


def unpack(content: bytes) -> bytes | None:
    """What was packed; None for what is torn, or holds more than anybody packs."""
    stream = zlib.decompressobj()
    try:
        found = stream.decompress(content, LARGEST)
    except zlib.error:
        return None
    return found if stream.eof else None
