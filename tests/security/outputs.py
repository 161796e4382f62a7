"""What sinks and pipelines find again of what they have written, what comes from elsewhere, and the rows that a home keeps of its input."""

import json
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.types import LongType, StringType, StructField, StructType

from nosync.clients.delta import Lake, changes_data
from nosync.importing.checkpoint import read_checkpoint
from nosync.model.sink import Identity
from nosync.pipelines.editions import RECORD, Edition, Editions, Published
from nosync.pipelines.storage import FILE, Storage
from nosync.pipelines.table_files import write_next
from nosync.sinks.current import Current
from nosync.sinks.delta import _history
from nosync.sinks.marked import MARKER, MarkedFolder
from nosync.sources.input_log import InputLog
from nosync.store.disk import LocalDisk
from tests.security.besides import Attack, Read, noted
from tests.security.mutations import mutated

OWNER = Identity("shop", "out", "1.ab")
ROWS = pa.table({"k": pa.array(["a", "bc", None]), "n": pa.array([1, 2, 3], pa.int64())})
CHANGES = pa.table({"k": pa.array(["a", "d"]), "n": pa.array([1, 4], pa.int64()), "_diff": pa.array([-1, 1], pa.int64())})
LINKS = (
    "..", ".", "version-x", "version-000000000009", "edition-x", "edition-000000000009", "/etc", "version--00000000001", "\udcff", "é" * 90,
)  # fmt: skip
ACTION = {"path": "a.parquet", "size": 9, "partitionValues": {"day": "1"}, "dataChange": True}
LOG = [{"commitInfo": {"operation": "WRITE", "nosync": asdict(OWNER)}}, {"add": ACTION}, {"remove": ACTION}, {"cdc": ACTION}]
COMMIT = {"nextBatchWatermarkMs": 5}
OFFSETS = {"batchWatermarkMs": 5}
OFFSET, SEEN = b'{"logOffset":0}', b'{"path":"file:///in/a.json","timestamp":1,"batchId":0}'
VERSION = b"version-000000000001"


def parquet() -> bytes:
    buffer = pa.BufferOutputStream()
    pq.write_table(ROWS, buffer)
    return bytes(buffer.getvalue().to_pybytes())


def logged() -> bytes:
    buffer, table = pa.BufferOutputStream(), ROWS.append_column("_diff", pa.array([1, 1, 1], pa.int64()))
    with pa.ipc.new_file(buffer, table.schema) as writer:
        writer.write_table(table)
    return bytes(buffer.getvalue().to_pybytes())


def damaged(whole: bytes) -> Attack:
    return lambda random: mutated(whole, random)


def linked(random: Random) -> bytes:
    """What a link says instead: no text for the name of a file has a null."""
    name = random.choice(LINKS) if random.random() < 0.5 else mutated(b"version-000000000001", random).decode(errors="replace")
    return (name.replace("\0", "") or ".").encode(errors="surrogateescape")[:200]


def lines_of(values: list[Any]) -> Attack:
    """Lines of which one says something else."""

    def attack(random: Random) -> bytes:
        at = random.randrange(len(values))
        return b"\n".join(noted(value)(random) if number == at else json.dumps(value).encode() for number, value in enumerate(values))

    return attack


def read_marker(content: bytes, folder: Path) -> None:
    (folder / MARKER).write_bytes(content)
    marked = MarkedFolder(folder, "epoch-*")
    marked.open("2.ab", OWNER)
    marked.check_run()


def current(folder: Path, version: bytes, link: bytes) -> None:
    LocalDisk(folder).replace("version-000000000001/part-000000000001.parquet", version)
    (folder / "current").symlink_to(link.decode(errors="surrogateescape"), target_is_directory=True)
    Current(folder, "parquet", []).advance(2, CHANGES)


def read_edition(content: bytes, folder: Path, link: bytes = b"edition-000000000001") -> None:
    LocalDisk(folder).replace(f"out/edition-000000000001/{RECORD}", content)
    (folder / "out" / "current").symlink_to(link.decode(errors="surrogateescape"), target_is_directory=True)
    editions = Editions(folder / "out")
    found = editions.newest()
    (editions.version("t", found.number + 1)).mkdir(parents=True)
    editions.publish(Edition(found.number + 1, {**(found.tables or {}), "t": Published(found.number + 1)}))
    editions.tidy(now=2e10)
    assert {path.name for path in folder.iterdir()} == {"out"}


def read_storage(content: bytes, folder: Path) -> None:
    LocalDisk(folder).replace(f"nosync/{FILE}", content)
    found = Storage.of(folder)
    assert found.begun_anew(["t"]).anew().path.parent == folder / "nosync"


def read_table_file(content: bytes, folder: Path) -> None:
    LocalDisk(folder).replace("before/part-000000000001-0000.parquet", content)
    (folder / "next").mkdir()
    write_next(folder / "before", folder / "next", 2, CHANGES, [])


def read_input(content: bytes, folder: Path) -> None:
    source: Any = None
    schema = StructType([StructField("k", StringType()), StructField("n", LongType())])
    (folder / "a.arrow").write_bytes(content)
    log = InputLog(source, "s", schema, None, folder)  # type: ignore[arg-type]
    assert log.raw_events({"file": "a.arrow", "rows": 3}).validate(full=True) is None


def checkpoint(folder: Path, commit: bytes = json.dumps(COMMIT).encode(), offset: bytes = OFFSET, files: bytes = SEEN) -> None:
    disk = LocalDisk(folder)
    disk.replace("commits/0", b"v1\n" + commit)
    disk.replace("offsets/0", b"v1\n" + json.dumps(OFFSETS).encode() + b"\n" + offset + b"\n-")
    disk.replace("sources/0/0", b"v1\n" + files)
    read_checkpoint(folder)


def read_log(content: bytes, folder: Path) -> None:
    LocalDisk(folder).replace("_delta_log/00000000000000000001.json", content)
    actions = Lake(str(folder), "Delta table").log(1)
    _history(actions)
    changes_data(actions)


WHOLE = parquet()
INPUT = logged()
OUTPUTS: dict[str, tuple[Attack, Read]] = {
    "mark of a sink": (noted({**asdict(OWNER), "run": "1.ab"}), read_marker),
    "newest rows of a sink": (damaged(WHOLE), lambda content, folder: current(folder, content, VERSION)),
    "link to the newest rows": (linked, lambda content, folder: current(folder, WHOLE, content)),
    "edition": (noted({"tables": {"t": asdict(Published(1, "home-1", "v", 3))}}), read_edition),
    "link to the newest edition": (linked, lambda content, folder: read_edition(b'{"tables":{}}', folder, content)),
    "storage of a pipeline": (noted({"home": 1, "generations": {"t": 2}, "mark": "ab"}), read_storage),
    "files of a table": (damaged(WHOLE), read_table_file),
    "input log": (damaged(INPUT), read_input),
    "commit of a checkpoint": (noted(COMMIT), lambda content, folder: checkpoint(folder, commit=content)),
    "offset of a checkpoint": (noted(json.loads(OFFSET)), lambda content, folder: checkpoint(folder, offset=content)),
    "files of a checkpoint": (noted(json.loads(SEEN)), lambda content, folder: checkpoint(folder, files=content)),
    "log of a Delta table": (lines_of(LOG), read_log),
}
