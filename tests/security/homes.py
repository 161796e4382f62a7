"""A small home that has one of everything, changed by a hostile hand and then asked by every command that reads homes."""

import atexit
import json
import shutil
import tempfile
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
from click.testing import CliRunner

from nosync.cli.main import main
from nosync.history.record import ViewRecord
from nosync.journal.chain import Chain, read_chain
from nosync.journal.entries import Computed, Declared, Merged, Opened, Released, to_json
from nosync.journal.journal import Journal
from nosync.journal.names import layer_path
from nosync.journal.rolling import Roller
from nosync.kernels.accumulate import Accumulation, Result
from nosync.model.errors import NosyncError
from nosync.model.hash_range import ALL_HASHES
from nosync.model.layers import LayerInfo
from nosync.model.picture import Box, Picture
from nosync.model.run import this_process
from nosync.model.store import fingerprint
from nosync.state.layer import write_layer
from nosync.store.disk import LocalDisk
from tests.security.mutations import as_json, mutated, reworded, signed

SUMS = Accumulation((pa.string(),), (pa.int64(),), (Result("sum", (0,), pa.int64()), Result("count", (), pa.int64())))
VIEWS: dict[str, Any] = {
    "rows": ViewRecord(pa.schema([("x", pa.int64())]), "rows/rows", "diffs"),  # type: ignore[arg-type]
    "sums": ViewRecord(pa.schema([("total", pa.int64()), ("k", pa.string())]), "sums/aggregate", "upserts", SUMS, (1, 0)),  # type: ignore[arg-type]
}
PICTURE = Picture("shop", (
    Box("s", "source", "source"),
    Box("sums/aggregate", "operator", "accumulate", inputs=("source s",), traces=("sums/aggregate",)),
    Box("sums", "view", "view", inputs=("operator sums/aggregate",)),
    Box("rows", "view", "view", inputs=("source s",), traces=("rows/rows",)),
))  # fmt: skip
COMMANDS = (
    ("status",), ("status", "--rows"), ("status", "--json"), ("show", "rows"), ("show", "sums", "--json"), ("show", "rows", "--at", "2"),
    ("explain",), ("explain", "--json"), ("fsck",), ("fsck", "--quick", "--json"),
)  # fmt: skip


def layer(home: Path, run: str, trace: str, lower: int, upper: int, more: int = 0) -> LayerInfo:
    numbers = pa.array(range(1, 5), pa.uint64())
    values = pa.array(range(1 + more, 5 + more), pa.int64())
    if trace == "rows/rows":
        kind, batch = "diffs", pa.RecordBatch.from_pydict({"_hash": numbers, "_row": numbers, "c0": values, "_count": values})
    else:
        keys = pa.array(list("abcd"))
        kind, batch = "upserts", pa.RecordBatch.from_pydict({"_hash": numbers, "k0": keys, "n": values, "sum0.0": values})
    facts: dict[str, Any] = {"trace": trace, "range": ALL_HASHES, "lower": lower, "upper": upper, "kind": kind}
    return write_layer(home, layer_path(trace, ALL_HASHES, lower, upper, run), [batch], flow="shop", run=run, **facts)  # type: ignore[arg-type]


def make_home(home: Path) -> None:
    """Five epochs; the first three are rolled up."""
    disk = LocalDisk(home, fsync=lambda descriptor: None)
    journal: Any = Journal(disk, None, this_process(0.0))
    feeders: Any = {"rows/rows": ["rows/rows"], "sums/aggregate": ["sums/aggregate"]}
    views = {name: view.to_json() for name, view in VIEWS.items()}
    sinks = {"out": {"trace": "rows/rows", "release": "safe"}}
    journal.append(Declared("shop", 1, {}, dict.fromkeys(feeders, "f"), views, sinks, feeders, PICTURE.to_json()))
    roller = Roller(journal, disk, None, every=6)
    for epoch in range(1, 6):
        name = f"input/s/{epoch}.arrow"
        disk.replace(name, b"rows")
        journal.append(Opened(epoch, 0.0, {"s": {"file": f"{epoch}.arrow"}}, {name: fingerprint(b"rows")}))  # type: ignore[arg-type]
        layers = tuple(layer(home, journal.run, trace, epoch, epoch + 1) for trace in feeders)
        journal.append(Computed(epoch, layers, {"s": 4}, {}))  # type: ignore[arg-type]
        if epoch == 3:
            journal.append(Merged(layer(home, journal.run, "rows/rows", 1, 4)), Released("out", 1))  # type: ignore[arg-type]
            while roller.step(journal.number):
                pass
    disk.replace("synced", f"{journal.number} {journal.digest}".encode())


def another_epoch(home: Path) -> None:
    """By a run of its own: each sum is one more."""
    journal: Any = Journal(LocalDisk(home, fsync=lambda descriptor: None), None, this_process(0.0))
    layers = (layer(home, journal.run, "sums/aggregate", 6, 7, more=1),)
    journal.append(Opened(6, 0.0, {}), Computed(6, layers, {"s": 4}, {}))  # type: ignore[arg-type]


@cache
def whole_home() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="nosync-fuzz-home-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    make_home(folder / "home")
    return folder / "home"


def attack_home(random: Random, folder: Path) -> None:
    """One to three files are changed, lost or forged; every command must still answer, or say what is wrong."""
    home = folder / "home"
    shutil.copytree(whole_home(), home)
    files = sorted(file for file in home.rglob("*") if file.is_file())
    for file in random.sample(files, random.randint(0, 3)):
        if random.random() < 0.2:
            file.unlink()
        else:
            file.write_bytes(mutated(file.read_bytes(), random))
    if random.random() < 0.7:
        forge(home, random)
    for command, *arguments in COMMANDS:
        result = CliRunner().invoke(main, [command, str(home), *arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert "Traceback" not in result.output and "\x1b" not in result.output, result.output


def forge(home: Path, random: Random) -> None:
    """One more record, whose checksum is right and whose entry was tampered with."""
    disk = LocalDisk(home)
    chain = read_chain_or_none(disk)
    if chain is None or not chain.records:
        return
    entry = random.choice([entry for record in chain.records for entry in record.entries] + [chain.image().declared])
    if entry is None:
        return
    text = reworded(json.loads(json.dumps(to_json(entry))), random)
    content = signed([as_json(text, random)], chain.number + 1, chain.digest)
    disk.replace(f"journal/records/{chain.number + 1:016d}", content)


def read_chain_or_none(disk: LocalDisk) -> Chain | None:
    try:
        return read_chain(disk)
    except NosyncError:
        return None

