"""What is read back besides journal and layers: notes of runs and readers, what hosts ask of each other, state that was imported."""

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
from pyarrow import flight

from nosync.duties.leading import Leading
from nosync.duties.troubles import Troubles
from nosync.journal.journal import fenced_by
from nosync.journal.names import READERS, STANDBYS, lease_name, run_name
from nosync.model.errors import reading
from nosync.model.estimate import Effort, Estimate, Pace, seconds_for
from nosync.model.lease import Lease, Standby, Watch
from nosync.model.run import Runner, this_process
from nosync.model.safety import Problem, Standing
from nosync.model.status import Live, Recovery
from nosync.peers.server import LayerServer, _layer_named, _names
from nosync.peers.serving import _listening
from nosync.spark.imports import STORED, blob_in, places_of
from nosync.spark.receipts import left_in
from nosync.store.disk import LocalDisk
from nosync.tiers.reader_leases import Leases
from tests.security.mutations import mutated, reworded

Read = Callable[[bytes, Path], Any]
Attack = Callable[[Random], bytes]

LAYER = {"path": "layers/v/0-7/000000000001-2-1.ab-cd.arrow"}
LIVE = Live(
    "1.ab", "running", "Processing", (Standing("site", 7, 3, 100, 2, 300, Problem("away", 1.5)),), {"out": 3},
    recovery=Recovery("fetching", shards=3), estimate=Estimate(1.5, 2.0, True, Effort(1, 2, 3, 4), Pace()),
    standbys=(Standby(7, "there"),), next_at={"out": 9.5},
)  # fmt: skip
RECEIPT = {"trace": "v", "shard": 1, "epoch": 2, "rows": 3, "layer": None, "range": "0-7"}


def noted(facts: Any) -> Attack:
    """Bytes of a JSON object that says something else, or is none."""

    def attack(random: Random) -> bytes:
        if random.random() < 0.05:
            return random.choice((b"[", b'{"a":')) * 100_000
        text = json.loads(json.dumps(facts))
        return json.dumps(reworded(text, random)).encode() if random.random() < 0.5 else mutated(json.dumps(text).encode(), random)

    return attack


def read_lease(content: bytes, folder: Path) -> None:
    watch = Watch()
    for second in range(3):
        watch.over(content, float(second), float(second))
    if (lease := Lease.from_bytes(content)) is not None:
        lease.to_bytes()


def read_announcement(content: bytes, folder: Path) -> None:
    disk = LocalDisk(folder)
    disk.replace(f"{STANDBYS}/0123abcd", content)
    disk.replace(lease_name(1), content)
    journal: Any = SimpleNamespace(run="2.ab", generation=2, look=lambda: None, fenced=None)
    times = [0.0]
    leading = Leading(journal, disk, this_process(0.0), Troubles(), lambda: times[0])
    for _ in range(3):
        leading.step()
        times[0] += 20.0
    _ = [f"{one.process} {one.host}" for one in leading.standbys]


def read_reader(content: bytes, folder: Path) -> None:
    disk = LocalDisk(folder)
    disk.replace(f"{READERS}/{'0' * 32}", content)
    held = Leases(disk, lambda: 5.0).oldest()
    assert held is None or isinstance(held, int)


def read_pace(content: bytes, folder: Path) -> None:
    assert seconds_for(Effort(1, 2, 3, 4), Pace.from_bytes(content)) >= 0


def read_status(content: bytes, folder: Path) -> None:
    if (live := Live.from_bytes(content)) is not None:
        live.to_bytes()


def read_run(content: bytes, folder: Path) -> None:
    disk = LocalDisk(folder)
    disk.replace(run_name(2), content)
    assert fenced_by(disk, 1).message


def read_request(content: bytes, folder: Path) -> None:
    """None of these leads out of the folder, whoever asks."""
    server: Any = SimpleNamespace(root=folder / "home")
    with suppress(flight.FlightError):
        assert (folder / _layer_named(content)).resolve().is_relative_to(folder / "layers")
    with suppress(flight.FlightError):
        assert all((folder / name).resolve().is_relative_to(folder / "layers") for name in _names(content))
    with suppress(flight.FlightError):
        LayerServer._leave(server, content)
    assert all(path.name == "home" for path in folder.iterdir())


def read_announced(content: bytes, folder: Path) -> None:
    (folder / "server").write_bytes(content)
    _listening(folder / "server")


def read_receipt(content: bytes, folder: Path) -> None:
    (folder / "receipt").write_bytes(content)
    left_in(str(folder))


def imported() -> bytes:
    blob, file = pa.BufferOutputStream(), pa.BufferOutputStream()
    rows = pa.RecordBatch.from_pydict({"k": ["a", "bc", None], "n": [1, 2, 3], "l": [[1], [], [2, 3]]})
    with pa.ipc.new_stream(blob, rows.schema) as stream:
        stream.write_batch(rows)
    with pa.ipc.new_file(file, STORED) as stored:
        for _ in range(2):
            stored.write_batch(pa.RecordBatch.from_arrays([pa.array([blob.getvalue().to_pybytes()], pa.binary())], schema=STORED))
    return bytes(file.getvalue().to_pybytes())


def read_imported(content: bytes, folder: Path) -> None:
    (folder / "a.arrow").write_bytes(content)
    for path, number in places_of(str(folder), ["a.arrow"]):
        with reading("imported state", "Import it again."):
            assert blob_in(path, number).to_pylist() is not None


IMPORTED = imported()
BESIDES: dict[str, tuple[Attack, Read]] = {
    "lease": (noted(json.loads(Lease("1.ab", 7, "there", 3).to_bytes())), read_lease),
    "announcement": (noted(json.loads(Standby(7, "there").announcement(3))), read_announcement),
    "reader's lease": (noted({"record": 3, "until": 9.5}), read_reader),
    "pace": (noted(json.loads(Pace().to_bytes())), read_pace),
    "status": (noted(json.loads(LIVE.to_bytes())), read_status),
    "run": (noted(Runner(7, "there", "boot", 1.5, "ab").to_json()), read_run),
    "request for a layer": (noted(LAYER), read_request),
    "names of layers": (noted([LAYER["path"]] * 3), read_request),
    "receipt of another host": (noted({"folder": "1.ab-0123abcd", "facts": RECEIPT}), read_request),
    "receipt": (noted(RECEIPT), read_receipt),
    "layer server": (noted({"process": 7, "place": "there:1"}), read_announced),
    "imported state": (lambda random: mutated(IMPORTED, random), read_imported),
}
