"""`python -m bench.scale`: what an epoch costs the driver where there are as many shards as a hundred nodes have.

Everything but the tasks is real. The executors are made up: for each trace and shard a task's receipt, pickled as Spark sends it, with a
layer that nobody has written. The driver takes the receipts in, holds attempts against each other, records the epoch, says what is to
be merged and folded, records what was merged, rolls its journal up, and puts the covers of every shard into the closures of the next job.
Measured is CPU of the driver by part, after a third of the epochs; bytes of what it sends and of what it writes.
"""

from __future__ import annotations

import argparse
import json
import pickle
import resource
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from pyspark.cloudpickle import dumps

from nosync.duties.merging import AT_ONCE, DueMerges, due_folds, due_merges
from nosync.journal.entries import Computed, Declared, Merged, Opened
from nosync.journal.journal import Journal
from nosync.journal.names import layer_path, record_name
from nosync.journal.rolling import Roller
from nosync.model.hash_range import HashRange
from nosync.model.identifiers import Epoch, RecordNumber, Shard, TraceName
from nosync.model.layers import LayerInfo
from nosync.model.run import this_process
from nosync.model.shards import shard_ranges
from nosync.spark.receipts import Receipt, agreed
from nosync.spark.task import Work
from nosync.state.cover import pieces
from nosync.store.disk import LocalDisk

SHARDS = (16, 100, 1_000, 10_000)
ROWS = 1_000  # of each layer


class Driver:
    """A run of a flow with so many traces in so many shards, from whose tasks every epoch brings a layer each."""

    def __init__(self, home: Path, shards: int, traces: int) -> None:
        shutil.rmtree(home, ignore_errors=True)
        self.disk, self.ranges = LocalDisk(home), shard_ranges(shards)
        self.journal = Journal(self.disk, None, this_process(0.0))
        self.roller = Roller(self.journal, self.disk, None)
        self.traces = [TraceName(f"view{number}/aggregate") for number in range(traces)]
        self.journal.append(Declared("scale", shards, {}, {}, {}))
        self.due, self.seconds, self.bytes = DueMerges(), Counter[str](), Counter[str]()

    @contextmanager
    def _part(self, name: str) -> Iterator[None]:
        begun = time.process_time()
        yield
        self.seconds[name] += time.process_time() - begun

    def layer(self, trace: TraceName, held: HashRange, lower: int, upper: int, rows: int = ROWS) -> LayerInfo:
        path = layer_path(trace, held, Epoch(lower), Epoch(upper), self.journal.run)
        return LayerInfo(trace, held, Epoch(lower), Epoch(upper), "upserts", path, rows, rows * 50, "0123456789abcdef")

    def epoch(self, number: Epoch) -> None:
        journal, shards = self.journal, len(self.ranges)
        arriving = [
            pickle.dumps([Receipt(trace, Shard(shard), number, ROWS, self.layer(trace, held, number, number + 1), 1.0, None, held)])
            for trace in self.traces
            for shard, held in enumerate(self.ranges)
        ]
        with self._part("covers into closures"):
            work = (
                Work(str(self.disk.root), "scale", journal.run, trace, number, Epoch(number + 1), shards, "upserts", covers, None)  # type: ignore[arg-type]
                for trace in self.traces
                for covers in [journal.image.covers(trace, Epoch(number - 1))]
            )
            self.bytes["closures"] += sum(len(dumps(one)) for one in work)
        with self._part("receipts"):
            receipts = agreed(receipt for one in arriving for receipt in pickle.loads(one))
        last = journal.number
        with self._part("recording the epoch"):
            journal.append(Opened(number, 0.0, {"s": {"first": number}}))
            layers = tuple(receipt.layer for receipt in receipts if receipt.layer)
            journal.append(Computed(number, layers, {"s": ROWS * shards}, {}))
        with self._part("what to merge and to fold"):
            self.due.orders(journal.image, AT_ONCE)
            parts = [(trace, held) for trace in self.traces for held in pieces(journal.image.traces[trace])]
            list(islice(due_folds(journal.image, number, parts), AT_ONCE))
        self.bytes["receipts"] += sum(map(len, arriving))
        self._merge()
        written = [record_name(RecordNumber(one)) for one in range(last + 1, journal.number + 1)]
        self.bytes["records"] += sum(map(len, self.disk.read_all(written).values()))
        with self._part("rolling up"):
            self.roller.step(journal.number)

    def _merge(self) -> None:
        """As if merging kept up: all that is due, each layer recorded by itself."""
        merged = []
        for order in [order for group in due_merges(self.journal.image) for order in group]:
            layers = [LayerInfo.from_json(text) for text in order["layers"]]  # type: ignore[attr-defined]
            held, rows = HashRange.parse(str(order["range"])), sum(layer.rows for layer in layers)
            merged.append(Merged(self.layer(layers[0].trace, held, layers[-1].lower, layers[0].upper, rows)))
        with self._part("recording merges"):
            for one in merged:
                self.journal.append(one)

    def forget(self) -> None:
        """What the first epochs took: nothing was there yet."""
        self.seconds.clear()
        self.bytes.clear()


def measured(home: Path, shards: int, traces: int, epochs: int) -> dict[str, float]:
    """Milliseconds of the driver's CPU and bytes of an epoch, by part."""
    driver, first = Driver(home, shards, traces), epochs // 3
    for number in range(1, epochs + 1):
        driver.epoch(Epoch(number))
        if number == first:
            driver.forget()
    found = {f"{name}, ms": 1e3 * seconds / (epochs - first) for name, seconds in driver.seconds.items()}
    found["together, ms"] = sum(found.values())
    found |= {f"{name}, bytes": float(size) / (epochs - first) for name, size in driver.bytes.items()}
    return found | {"peak memory, MiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    parser.add_argument("--shards", type=int, action="append", help=f"may be repeated (default: {SHARDS})")
    parser.add_argument("--traces", type=int, default=4, help="states of operators, and views that keep rows")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--home", type=Path, default=Path("/dev/shm/nosync-scale"))
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    for shards in asked.shards or SHARDS:
        found = measured(asked.home, shards, asked.traces, asked.epochs)
        if asked.json:
            print(json.dumps({"shards": shards, "traces": asked.traces, **found}), flush=True)
            continue
        print(f"\n{shards:,} shards, {asked.traces} traces: an epoch takes the driver {found['together, ms']:,.1f} ms of CPU")
        for name, value in found.items():
            print(f"  {name:32}{value:14,.1f}", flush=True)
    shutil.rmtree(asked.home, ignore_errors=True)


if __name__ == "__main__":
    main()
