"""Everything that is read back, in one table: how a whole one comes about, how a hostile hand changes it, and who reads it.

A reader may return whatever it likes, or raise an error of this library. Anything else is a fault, and so is the end of the process.
"""

import json
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import xxhash

from nosync.history.record import ViewRecord
from nosync.journal.chain import Chain, Rollup, read_rollup
from nosync.journal.entries import (
    Computed,
    Declared,
    Entry,
    GivenUp,
    Keeping,
    Merged,
    Opened,
    Pinned,
    Rescaled,
    Restored,
    RolledBack,
    Skipped,
    Started,
    Swept,
    TakenOver,
    Thinned,
    Trimmed,
    Unpinned,
    to_json,
)
from nosync.journal.image import Image, fold
from nosync.journal.names import openings_name, rollup_name, segment_name, taken_summary_name
from nosync.journal.past import TieredReader, rolled_openings, whole_image
from nosync.journal.record import Record, decode, encode, openings_text, pack, pack_openings
from nosync.journal.taken import from_bytes, gathered, taken_from, to_bytes
from nosync.kernels.accumulate import Accumulation
from nosync.kernels.functions import Result
from nosync.model.errors import MALFORMED, Corrupt
from nosync.model.hash_range import ALL_HASHES
from nosync.model.layers import LayerInfo
from nosync.model.picture import Box, Picture
from nosync.model.shards import shard_ranges
from nosync.observe.text import in_words
from nosync.state.layer import _checksum, _whole_checksum, open_layer, verify, write_layer
from nosync.state.merge import scan
from nosync.state.search import lookup, rows_of
from nosync.store.disk import LocalDisk
from nosync.store.packing import packed, unpacked
from nosync.tiers.host import SYNCED, synced_number
from tests.security.besides import BESIDES
from tests.security.homes import attack_home
from tests.security.mutations import as_json, flipped, mutated, reworded, signed
from tests.security.outputs import OUTPUTS

MARKS_OF = {"files": lambda slice: list(slice["names"])}
LAYER = LayerInfo("v/rows", shard_ranges(2)[0], 1, 2, "diffs", "layers/v%2frows/0-7/1-2-1.ab-cd.arrow", 3, 900, "00ff")
SUMS = Accumulation((pa.string(),), (pa.int64(),), (Result("sum", (0,), pa.int64()), Result("count", (), pa.int64())))
VIEW = ViewRecord(pa.schema([("total", pa.int64()), ("k", pa.string())]), "v/aggregate", "upserts", SUMS, (1, 0))
PICTURE = Picture("shop", (Box("s", "source", "source"), Box("v", "view", "view", inputs=("source s",), traces=("v/rows",))))
ENTRIES: list[Entry] = [
    Started("1.ab", 7, "here", "boot", 1.5),
    Declared("shop", 2, {}, {"v/rows": "f"}, {"v": VIEW.to_json()}, {}, {"v/rows": ["v/rows"]}, PICTURE.to_json()),
    Opened(1, 2.5, {"files": {"names": ["a", "b"]}}, {"input/files/x.arrow": "00"}),
    Computed(1, (LAYER, replace(LAYER, range=shard_ranges(2)[1])), {"files": 2}, {}, {"files": 5}),
    Merged(replace(LAYER, lower=1, upper=2)),
    Opened(2, 3.5, {"files": {"names": ["c"]}}),
    Restored(("gone",), (LAYER,)),
    TakenOver(1, (), {"v/rows": 1}, False, {}, [(1, {"files": 5})]),
    Trimmed("files", 1),
    Swept(1, 1),
    Skipped("files", {"c": 2}, 4.5),
    Keeping("2 epochs"),
    Pinned("before", 1),
    Rescaled(2, 3, 0.0),
    Thinned(2, (1,)),
    Unpinned("before"),
    GivenUp((LAYER.path,)),
    RolledBack(1),
]


def records(entries: list[Entry]) -> list[Record]:
    found, previous = [], "-"
    for number, entry in enumerate(entries, start=1):
        found.append(encode(number, "1.ab", previous, [entry]))
        previous = found[-1].digest
    return found


RECORDS = records(ENTRIES)


@dataclass(frozen=True, slots=True)
class Format:
    """`attack` makes hostile bytes out of chance; `read` reads them. Both may use the folder, which is empty at first."""

    attack: Callable[[Random], bytes]
    read: Callable[[bytes, Path], Any]


def forged_records(random: Random) -> bytes:
    """A chain one of whose entries says something else, with checksums that are right."""
    at = random.randrange(len(ENTRIES))
    content, previous = b"", "-"
    for number, entry in enumerate(ENTRIES, start=1):
        text = json.loads(json.dumps(to_json(entry)))
        line = as_json(reworded(text, random), random) if number == at + 1 else as_json(text, Random(0))
        content += (one := signed([line], number, previous))
        previous = one.partition(b"\n")[0].rpartition(b" ")[2].decode()
    return content


def read_records(content: bytes, folder: Path) -> None:
    chain = Chain(None, list(decode(content, 1, "-")))
    image = chain.image()
    image.copy().forget_past(image.epoch + 1)
    taken = taken_from(["files"], TieredReader(LocalDisk(folder)), 0, chain.records, {})
    _ = list(taken["files"]), taken["files"].latest
    if image.declared is not None:
        with suppress(*MALFORMED):  # `Home` says so
            in_words(Picture.from_json(image.declared.flow, image.declared.picture))


def read_rolled(content: bytes, folder: Path) -> None:
    """As a segment, and as the openings of a whole one."""
    disk = LocalDisk(folder)
    segment = segment_name(1, len(RECORDS))
    disk.replace(segment, content)
    reader = TieredReader(disk)
    for read in (lambda: whole_image(reader, Image(), len(RECORDS), []), lambda: list(rolled_openings(reader, len(RECORDS)))):
        with suppress(Corrupt):
            read()
    disk.replace(segment, pack(RECORDS))
    disk.replace(openings_name(segment), content)
    list(rolled_openings(TieredReader(disk), len(RECORDS)))


ROLLUP = Rollup(len(ENTRIES), "ab", "cd", fold(ENTRIES))


def with_checksum(text: bytes) -> bytes:
    return xxhash.xxh3_64_hexdigest(text).encode() + b"\n" + text


def forged_rollup(random: Random) -> bytes:
    return with_checksum(as_json(reworded(json.loads(ROLLUP.content().partition(b"\n")[2]), random), random))


def read_a_rollup(content: bytes, folder: Path) -> None:
    found = read_rollup(content, rollup_name(1, 1))
    if found is not None:
        image = Chain(found).image()
        image.copy().forget_past(image.epoch + 1)
        Rollup(found.number, found.digest, found.origin, image).content()


TILE = gathered(ENTRIES, MARKS_OF)[0]


def forged_tile(random: Random) -> bytes:
    body = to_bytes(TILE).partition(b"\n")[2]
    head, _, marks = body.partition(b"\n")
    if random.random() < 0.7:
        head = as_json(reworded(json.loads(head), random), random)
    return with_checksum(head + b"\n" + (mutated(marks, random) if random.random() < 0.5 else marks))


def read_tile(content: bytes, folder: Path) -> None:
    disk = LocalDisk(folder)
    disk.replace(segment_name(1, len(RECORDS)), pack(RECORDS))
    disk.replace(taken_summary_name(1, len(RECORDS)), content)
    taken = taken_from(["files"], TieredReader(disk), len(RECORDS), [], MARKS_OF)["files"]
    assert from_bytes(content) is not None or taken.marks.among(["a", "nothing"]) == {"a"}


def batch_of(random: Random, kind: str) -> pa.RecordBatch:
    rows = random.randint(1, 20)
    hashes = pa.array(sorted(random.getrandbits(64) for _ in range(rows)), pa.uint64())
    counts = pa.array([random.randint(1, 3) for _ in range(rows)], pa.int64())
    words = pa.array([random.choice(("", "naïve", None, "w" * 30)) for _ in range(rows)])
    lists = pa.array([random.choice(([], None, [1, None], [3] * 9)) for _ in range(rows)], pa.list_(pa.int64()))
    if kind == "diffs":
        return pa.RecordBatch.from_pydict({"_hash": hashes, "_row": hashes, "c0": words, "c1": lists, "_count": counts})
    return pa.RecordBatch.from_pydict({"_hash": hashes, "k0": words, "n": counts, "value0": lists})


def layer_bytes(random: Random, folder: Path) -> tuple[LayerInfo, bytes]:
    kind: Any = random.choice(("diffs", "upserts"))
    blocks = [batch_of(random, kind)]
    facts: dict[str, Any] = {"trace": "v", "range": ALL_HASHES, "lower": 1, "upper": 2, "kind": kind}
    info = write_layer(folder, "layers/v/0-f/x.arrow", blocks, flow="shop", run="1.ab", **facts)
    return info, (folder / info.path).read_bytes()


def read_layer(info: LayerInfo, content: bytes, folder: Path) -> None:
    (folder / info.path).write_bytes(content)
    layer = open_layer(folder, replace(info, bytes=len(content)))
    layer.doubt()
    hashes = np.unique(layer.hashes(0)[:3]) if layer.blocks else np.zeros(0, np.uint64)
    if info.kind == "diffs":
        rows_of([layer], hashes)
    elif layer.blocks and (keys := layer.column(0, "k0")) is not None:
        lookup([layer], hashes, [keys.slice(0, len(hashes))])
    for batch in scan([verify(layer)], info.kind):
        batch.to_pylist()


def attack_layer(random: Random, folder: Path) -> None:
    """A layer whose bytes have changed; half of the time every checksum of it is made right again."""
    info, content = layer_bytes(random, folder)
    hostile = flipped(content, random) if random.random() < 0.8 else mutated(content, random)
    if random.random() < 0.5:
        hostile, info = resigned(hostile, info)
    read_layer(info, hostile, folder)


def resigned(content: bytes, info: LayerInfo) -> tuple[bytes, LayerInfo]:
    """The layer with the checksums that its changed blocks have now, where Arrow can make anything of it at all."""
    try:
        reader = pa.ipc.open_file(pa.py_buffer(content))
        checksums = []
        for number in range(reader.num_record_batches):
            block, metadata = reader.get_batch_with_custom_metadata(number)
            block.validate()
            checksums.append(_checksum(block))
            content = content.replace(metadata[b"checksum"], checksums[-1].encode())
        rows = sum(reader.get_batch(number).num_rows for number in range(reader.num_record_batches))
        return content, replace(info, rows=rows, checksum=_whole_checksum(reader.schema.remove_metadata(), checksums))
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError):
        return content, info


def attack_view(random: Random, folder: Path) -> None:
    text = reworded(json.loads(json.dumps(VIEW.to_json())), random)
    with suppress(*MALFORMED):  # `Home` says so
        ViewRecord.from_json(text)


def read_synced(content: bytes, folder: Path) -> None:
    disk = LocalDisk(folder)
    disk.replace(SYNCED, content)
    assert 0 <= synced_number(disk, Chain(None, RECORDS)) <= len(RECORDS)


def read_packed(content: bytes, folder: Path) -> None:
    with suppress(OSError):  # `Objects` says so
        assert all(len(part) <= 4 << 20 for part in unpacked([content[:50], content[50:]]))


def bytes_of(content: bytes) -> Callable[[Random], bytes]:
    return lambda random: mutated(content, random)


def compressed(attack: Callable[[Random], bytes]) -> Callable[[Random], bytes]:
    return lambda random: zlib.compress(attack(random))


def seeded(attack: Callable[[Random, Path], None]) -> Callable[[bytes, Path], None]:
    return lambda seed, folder: attack(Random(seed), folder)


def a_seed(random: Random) -> bytes:
    return random.randbytes(8)


PLAIN = b"".join(record.content for record in RECORDS)
OPENINGS = b"\n".join(json.dumps(to_json(entry)).encode() for entry in ENTRIES if isinstance(entry, Opened | RolledBack))
FORMATS: dict[str, Format] = {
    "record": Format(bytes_of(PLAIN), read_records),
    "record with a right checksum": Format(forged_records, read_records),
    "segment": Format(bytes_of(pack(RECORDS)), read_rolled),
    "segment of changed records": Format(compressed(bytes_of(PLAIN)), read_rolled),
    "segment with right checksums": Format(compressed(forged_records), read_rolled),
    "openings": Format(bytes_of(pack_openings(openings_text(ENTRIES))), read_rolled),
    "openings that are whole": Format(compressed(bytes_of(OPENINGS)), read_rolled),
    "roll-up": Format(bytes_of(ROLLUP.content()), read_a_rollup),
    "roll-up with a right checksum": Format(forged_rollup, read_a_rollup),
    "tile": Format(bytes_of(to_bytes(TILE)), read_tile),
    "tile with a right checksum": Format(forged_tile, read_tile),
    "synced": Format(bytes_of(b"3 " + RECORDS[2].digest.encode()), read_synced),
    "packed layer": Format(bytes_of(packed(b"abc" * 1000) + packed(bytes(5000))), read_packed),
    "layer": Format(a_seed, seeded(attack_layer)),
    "view": Format(a_seed, seeded(attack_view)),
    "home": Format(a_seed, seeded(attack_home)),
    **{name: Format(*one) for name, one in (BESIDES | OUTPUTS).items()},
}
