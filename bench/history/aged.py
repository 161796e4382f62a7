"""Opening a home of very many epochs of which the default ladder keeps few, as a reader does: in a process of its own, each time.

The journal is grown by its own code, with an epoch a second, as a flow with two shards leaves it that folds and gives up what it may: every
epoch of ten minutes, one a minute of a day, one an hour of thirty days. What is left of it is written down, and no layer is.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import nosync as ns
from bench.durability.opening import Growing
from bench.history.made import TRACE, VIEW
from nosync.journal.entries import Computed, Declared, GivenUp, Keeping, Merged, Opened, Thinned
from nosync.journal.forgetting import Forgetter
from nosync.model.identifiers import Epoch
from nosync.model.ladder import DEFAULT
from nosync.model.layers import LayerInfo
from nosync.model.shards import shard_ranges

FOLDED, THINNED = 8, 60  # epochs between folds, and between looks at the ladder
BEGIN = 1.7e9
KEPT_FOLDS = 75  # of eight epochs each: ten minutes
SHARDS = shard_ranges(2)
FOLDERS = ("journal/openings", "journal/taken", "journal")


def written(lower: int, upper: int, versions: int = 0) -> tuple[LayerInfo, ...]:
    """A layer in each shard."""
    folder, name = "layers/counts%2faggregate", f"{lower:012d}-{upper}-1.abcdef12-{versions:08x}.arrow"
    facts = 1_000, 50_000, "0123456789abcdef", versions
    return tuple(LayerInfo(TRACE, held, lower, upper, "upserts", f"{folder}/{held}/{name}", *facts) for held in SHARDS)


class Aged(Growing):
    """With folds in the place of leaf layers, and one base in the place of the older folds."""

    def grow(self, epochs: int) -> None:
        self.journal.append(Declared("aged", 2, {}, {}, {"counts": VIEW.to_json()}), Keeping(DEFAULT.said))
        self.folds: list[tuple[LayerInfo, ...]] = []
        self.forgetter = Forgetter(self.journal, self.disk, None)
        self.base: tuple[LayerInfo, ...] = ()
        leaves: list[LayerInfo] = []
        for epoch in range(1, epochs + 1):
            self.journal.append(Opened(epoch, BEGIN + epoch, {"events": {"files": [[f"part-{epoch:08d}.parquet", 1, epoch]]}}))
            leaves += (computed := written(epoch, epoch + 1))
            self.journal.append(Computed(epoch, computed, {"events": 100_000}, {}))
            if epoch % FOLDED == 0:
                self._fold(epoch, leaves)
                leaves = []
            if epoch % THINNED == 0:
                self._thin(epoch)
            if self.journal.number - self.journal.base >= self.roller.every or self.roller.candidate:
                self.roller.step(self.journal.number)
            self.forgetter.step()
        self.disk.write_down()

    def _fold(self, epoch: int, leaves: list[LayerInfo]) -> None:
        folded = written(epoch - FOLDED + 1, epoch + 1, FOLDED)
        base, gone = written(1, epoch + 1), [*leaves, *self.base]
        self.folds, self.base = [*self.folds, folded], base
        if len(self.folds) > KEPT_FOLDS:
            gone += self.folds.pop(0)
        self.journal.append(*(Merged(one) for one in (*folded, *base)), GivenUp(tuple(one.path for one in gone)))

    def _thin(self, epoch: int) -> None:
        image = self.journal.image
        kept = image.kept.of(DEFAULT.kept(Epoch(epoch), image.times, BEGIN + epoch, ()))
        if kept != image.kept:
            new = tuple(one for one in kept.among if one >= image.kept.since)
            self.journal.append(Thinned(kept.since, new, tuple(one for one in image.kept.among if one not in kept)))


def opened_after(folder: Path, epochs: int) -> dict[str, float]:
    """The best of three openings, and of what is there."""
    Aged(folder).grow(epochs)
    found = [json.loads(subprocess.check_output([sys.executable, "-m", __spec__.name, str(folder)])) for _ in range(3)]
    return min(found, key=lambda one: one["opening, s"]) | {"epochs": float(epochs)}


def main(folder: Path) -> None:
    begun, cpu = time.perf_counter(), time.process_time()
    home = ns.open(folder)
    image = home.image
    print(json.dumps({
        "opening, s": time.perf_counter() - begun,
        "opening, s of CPU": time.process_time() - cpu,
        "epochs kept": image.kept.count(Epoch(1), image.epoch),
        "layers named": image.kept_layers,
        "files": len(home.disk.sizes("")),
        **{f"{folder}, bytes an epoch": sum(home.disk.sizes(folder).values()) / image.epoch for folder in FOLDERS},
    }))  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]))
