"""`python -m bench.durability.opening`: opening a flow after a thousand, a hundred thousand, a million epochs of one file each.

The journal is grown by its own code, with the entries of a real flow, in memory; what is left of it is written down, and no layer is.
Measured is what a start does before its first epoch: reading the chain, asking what each source has taken, and recognising known files in a
folder from new ones. Each time in a process of its own, whose memory is reported too.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from nosync.journal.chain import read_chain
from nosync.journal.entries import Computed, Merged, Opened
from nosync.journal.journal import Journal
from nosync.journal.past import TieredReader
from nosync.journal.rolling import Roller
from nosync.journal.taken import taken_from
from nosync.model.layers import LayerInfo
from nosync.model.run import this_process
from nosync.store.disk import LocalDisk

SIZES = (1_000, 100_000, 1_000_000)
MARKS_OF = {"events": lambda slice: [entry[0] for entry in slice["files"]]}


def layer(shard: int, lower: int, upper: int) -> LayerInfo:
    path = f"layers/level1%2Faggregate/{shard}/{lower}-{upper}-1.abcdef12-{lower:08x}.arrow"
    return LayerInfo("level1/aggregate", shard, lower, upper, "upserts", path, 1_000, 50_000, "0123456789abcdef")


class Memory(LocalDisk):
    """A home that is written down when it is asked to."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.folders: dict[str, dict[str, bytes]] = defaultdict(dict)

    def _folder(self, name: str) -> dict[str, bytes]:
        return self.folders[name.rpartition("/")[0]]

    def create(self, name: str, content: bytes) -> None:
        self._folder(name)[name] = content

    replace = create

    def read(self, name: str) -> bytes | None:
        return self._folder(name).get(name)

    def exists(self, name: str) -> bool:
        return name in self._folder(name)

    def sizes(self, folder: str) -> dict[str, int]:
        return {name: len(content) for name, content in self.folders[folder].items()}

    def delete(self, name: str) -> None:
        self._folder(name).pop(name, None)

    def sync_files(self, names: object) -> None:
        """Nothing is synced."""

    sync_folders = sync_files

    def write_down(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
        for files in self.folders.values():
            for name, content in files.items():
                LocalDisk.replace(self, name, content)


class Growing:
    """A journal as a flow over files leaves it: two shards, merged every four epochs."""

    def __init__(self, home: Path) -> None:
        self.disk = Memory(home)
        self.journal = Journal(self.disk, None, this_process(0.0))
        self.roller = Roller(self.journal, self.disk, None, marks_of=MARKS_OF)

    def grow(self, epochs: int) -> None:
        """Up to so many."""
        journal = self.journal
        for epoch in range(journal.image.epoch + 1, epochs + 1):
            files = [[f"part-{epoch:08d}.parquet", 1_234_567, 1_700_000_000_000_000_000 + epoch]]
            journal.append(Opened(epoch, 1.7e9, {"events": {"files": files, "bytes": 1_234_567, "rows": 100_000, "plain": True}}))
            journal.append(Computed(epoch, (layer(0, epoch, epoch + 1), layer(1, epoch, epoch + 1)), {"events": 100_000}, {}))
            if epoch % 4 == 0:
                journal.append(Merged(layer(0, 1, epoch + 1)), Merged(layer(1, 1, epoch + 1)))
            if journal.number - journal.base >= self.roller.every or self.roller.candidate:
                self.roller.step(journal.number)
        self.disk.write_down()


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def opened(home: Path) -> dict[str, float]:
    """Seconds, bytes and memory of one opening, in this process."""
    before, cpu = resident(), time.process_time()
    started = time.perf_counter()
    disk = LocalDisk(home)
    chain = read_chain(disk)
    image = chain.image()
    read = time.perf_counter()
    taken = taken_from(["events"], TieredReader(disk), chain.base, chain.records, MARKS_OF)["events"]
    taken = time.perf_counter()
    names = [f"part-{epoch:08d}.parquet" for epoch in range(max(1, image.epoch - 999), image.epoch + 2)]
    known = taken.marks.among(names)
    asked = time.perf_counter()
    assert known == set(names[:-1]) and taken.latest is not None and len(taken.marks) == image.epoch
    return {
        "epochs": image.epoch,
        "chain_s": read - started,
        "taken_s": taken - read,
        "asking_1000_names_s": asked - taken,
        "cpu_s": time.process_time() - cpu,
        "taken_files": len(disk.sizes("journal/taken")),
        "taken_bytes": sum(disk.sizes("journal/taken").values()),
        "journal_bytes": sum(disk.sizes("journal").values()),
        "memory_mib": (resident() - before) / 2**20,
    }


def main(given: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.durability.opening", description=__doc__)
    parser.add_argument("--epochs", type=int, action="append", help=f"how many; may be repeated (default: {SIZES})")
    parser.add_argument("--work", type=Path, default=Path("/dev/shm/nosync-opening"))
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args(given)
    if asked.measure:
        print(json.dumps(opened(asked.measure)))
        return 0
    growing = Growing(asked.work)
    for epochs in sorted(asked.epochs or SIZES):
        started = time.perf_counter()
        growing.grow(epochs)
        print(f"{epochs:,} epochs written in {time.perf_counter() - started:.0f} s", flush=True)
        for _ in range(3):
            subprocess.run([sys.executable, "-m", __spec__.name, "--measure", str(asked.work)], check=True, env=os.environ)
    shutil.rmtree(asked.work)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
