"""Beginning a flow with the state of a checkpoint.

Promise: nothing is written before it is known what cannot be carried over, and accepted. The first epoch is the imported state: its opening
names the files that hold it and what sources had taken; from then on it is an epoch as any other, computed, synced, shipped and recovered
by the ordinary ways. Killed before its opening is recorded, nothing has begun: the import is done again. After that, a start goes on.
"""

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from nosync.duties.tending import Tending
from nosync.importing.checkpoint import Checkpoint, read_checkpoint
from nosync.importing.converting import blobs_of
from nosync.importing.matching import Matched, matched
from nosync.importing.stored_state import stored_in
from nosync.journal.entries import Opened, TakenOver
from nosync.journal.names import IMPORTED
from nosync.model.errors import Conflict, Invalid, NosyncError
from nosync.model.identifiers import NO_EPOCH, Epoch
from nosync.model.run import this_process
from nosync.model.slices import as_recorded
from nosync.model.store import fingerprint
from nosync.runtime.program import Program
from nosync.runtime.reporting import ended
from nosync.runtime.starting import Starting, begin, check_start
from nosync.runtime.stepping import Stepping
from nosync.spark.imports import STORED
from nosync.store.disk import LocalDisk
from nosync.store.objects import open_remote

FIRST = Epoch(1)
FILE_BYTES = 64 << 20
DRAIN_SECONDS = 60.0
Say = Callable[[str], None]


@dataclass(frozen=True)
class Import:
    """What is about to be done. `matched` says what is carried and what is not."""

    program: Program
    checkpoint: Checkpoint
    matched: Matched


def planned(program: Program, checkpoint: Path) -> Import:
    """Only reads."""
    found = read_checkpoint(checkpoint)
    return Import(program, found, matched(program, found, stored_in(program.spark, found)))


def check_accepted(wanted: Import, accepted: bool) -> None:
    if wanted.matched.losses and not accepted:
        count = len(wanted.matched.losses)
        raise Invalid(
            f"{count} part{'s' if count > 1 else ''} of the stream cannot be carried over: {'; '.join(wanted.matched.losses)}",
            hint="Nothing was written. Pass --accept-losses to begin without them, or start the flow on a new home with all input.",
        )


def carry_out(wanted: Import, home: Path, remote: str | None, emitted: bool, shards: int | None = None) -> bool:
    """Begins the flow on a new home, and computes the epoch that the imported state is. `emitted`: what sinks write to has what the stream
    has emitted so far, so they get nothing of it. Whether every tier and every sink has the epoch by now; if not, the next run sees to it.
    """
    bucket = open_remote(remote) if remote else None
    chain = check_start(wanted.program, LocalDisk(home.absolute()), bucket, shards, "refuse", False, this_process(time.time()).boot)
    if chain.image().last_opened:
        raise Conflict(f'"{home}" has a history of its own', hint="Import into a new home, or begin there without: nosync run.")
    starting = begin(wanted.program, home, shards, bucket)
    with ExitStack() as closing:
        closing.callback(starting.journal.fence, ended())
        for source in starting.program.sources.values():
            closing.callback(source.close)
        closing.callback(starting.outlet.close)
        _open(wanted, starting, emitted)
        stepping = starting.recover()
        closing.callback(stepping.close)
        stepping.step()
        return _brought_behind(stepping)


def _open(wanted: Import, starting: Starting, emitted: bool) -> None:
    """Records the first epoch, with the state that it is made of."""
    found, files, states = wanted.matched, dict[str, str](), dict[str, list[str]]()
    for carried in found.carried:
        blobs = blobs_of(wanted.program.spark, wanted.checkpoint, carried).toLocalIterator()
        written = dict(_written(starting.disk, (bytes(row.blob) for row in blobs)))
        files |= written
        states[carried.operator] = sorted(written)
    starting.disk.sync_files(files)
    starting.disk.sync_folders(files)
    declared, origin = starting.image.declared, wanted.checkpoint.said
    assert declared is not None
    slices = {name: as_recorded(name, slice) for name, slice in found.slices.items()}
    starting.journal.append(
        replace(declared, origin=origin, imported=sorted(states)),
        Opened(FIRST, starting.clock(), slices, files, origin, states, found.seen),
        TakenOver(NO_EPOCH, (), dict.fromkeys(declared.feeders, FIRST), False, dict.fromkeys(declared.sinks, FIRST) if emitted else {}),
    )


def _written(disk: LocalDisk, blobs: Iterator[bytes]) -> Iterator[tuple[str, str]]:
    """Files of a bearable size, by name with their fingerprints."""
    batch = next(blobs, None)
    while batch is not None:
        buffer = pa.BufferOutputStream()
        with pa.ipc.new_file(buffer, STORED) as writer:
            while batch is not None and buffer.tell() < FILE_BYTES:
                writer.write_batch(pa.RecordBatch.from_arrays([pa.array([batch], pa.binary())], schema=STORED))
                batch = next(blobs, None)
        content, name = buffer.getvalue().to_pybytes(), f"{IMPORTED}/{uuid.uuid4().hex}.arrow"
        disk.create(name, content)
        yield name, fingerprint(content)


def _brought_behind(stepping: Stepping) -> bool:
    """All that goes on behind a run, until every tier and every sink has the epoch."""
    failed: list[NosyncError] = []
    tending = Tending(stepping.journal, stepping.upkeep, failed.append)
    try:
        whole = tending.drain(DRAIN_SECONDS)
    finally:
        tending.stop()
    if failed:
        raise failed[0]
    return whole
