"""What the processes, the home and the remote look like from outside, now and then."""

from __future__ import annotations

import os
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench.measure import memory_of
from nosync.history.usage import by_purpose
from nosync.journal.chain import Chain, read_chain
from nosync.store.disk import LocalDisk
from nosync.store.objects import open_remote


@dataclass(frozen=True)
class Sample:
    """`life`: how often the program was started. `named` are the bytes that the epochs wrote which the ladder keeps."""

    at: float
    life: int
    age: float
    pss: int
    python: int
    threads: int
    handles: int
    mapped: int
    epoch: int
    kept: int
    home: dict[str, tuple[int, int]]
    remote: dict[str, tuple[int, int]]
    most_files: int
    most_files_of: str
    newest: int
    named: int


class Sampler:
    """Of one home and its remote. Remembers what each epoch wrote."""

    def __init__(self, place: Path) -> None:
        self.home, self.remote = LocalDisk(place / "home"), open_remote((place / "remote").as_uri())
        self.chain: Chain | None = None
        self.written: dict[int, int] = {}

    def sample(self, processes: list[psutil.Process], life: int, age: float) -> Sample:
        self.chain = read_chain(self.home, self.chain)
        image = self.chain.image()
        self.written |= {epoch: sum(layer.bytes for layer in entry.layers) for epoch, entry in image.computed.items()}
        self.written = {epoch: size for epoch, size in self.written.items() if epoch in image.kept}
        sizes, far = self.home.sizes(""), self.remote.sizes("")
        files = Counter(name.split("/")[1] for name in sizes if name.startswith("layers/"))
        most = max(files.items(), key=lambda item: item[1], default=("", 0))
        looked = [found for process in processes if (found := _look(process)) is not None]
        newest = sum({layer.path: layer.bytes for layer in image.newest_layers()}.values())
        return Sample(
            time.time(), life, age, *(sum(figures) for figures in zip(*looked, strict=True)) if looked else (0,) * 5, image.epoch,
            image.kept.count(1, image.epoch), _purposes(by_purpose(image, sizes)), _purposes(by_purpose(image, far)), most[1], most[0],
            newest, sum(self.written.values()),
        )  # fmt: skip


def _purposes(found: dict) -> dict[str, tuple[int, int]]:
    return {purpose: (usage.files, usage.bytes) for purpose, usage in found.items()}


def _look(process: psutil.Process) -> tuple[int, int, int, int, int] | None:
    """PSS, that of Python alone, threads, file handles, mapped layers."""
    with suppress(psutil.Error, OSError, KeyError):
        pss, _ = memory_of(process.pid)
        folder = Path(f"/proc/{process.pid}")
        mapped = sum(1 for line in (folder / "maps").open() if "/layers/" in line)
        return pss, pss if "python" in process.name() else 0, process.num_threads(), len(os.listdir(folder / "fd")), mapped
    return None
