"""`python -m bench.history`: what it costs to look back, to rescale, to compact, and to open what has a long past.

Look-ups by key as of random epochs, and whole views, old against newest, need no Spark: they run over a home that was written layer by
layer. Rescaling runs a flow: epochs of one size, 2 shards, then 8, then 3; the first epoch after each is set against the ordinary ones.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import nosync as ns
from bench.history.aged import opened_after
from bench.history.compaction import on_and_off
from bench.history.made import make
from bench.inputs import plain
from bench.session import open_session

ORDINARY = 8
BOUNDS = {
    "look-up p50, ms": 50.0,
    "old view / newest": 1.3,
    "next epoch / ordinary, 2 to 8": 2.0,
    "next epoch / ordinary, 8 to 3": 2.0,
    "p95 on / off": 1.2,
    "opening, s": 1.0,
}


def _milliseconds(call: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    call()
    return 1e3 * (time.perf_counter() - begun)


def look_ups(folder: Path, keys: int, epochs: int) -> dict[str, float]:
    """Each of a random key as of a random epoch."""
    make(folder, keys, epochs, touched=1000)
    home, chance = ns.open(folder), random.Random(7)
    first = _milliseconds(lambda: home.view("counts", at=epochs // 2).get(k=1))
    assert all((home.view("counts", at=epochs).get(k=k) or {"n": 0})["n"] > 0 for k in range(0, keys, keys // 20)), "a key is not found"
    asked = [(chance.randrange(1, epochs + 1), chance.randrange(keys)) for _ in range(600)]
    times = [_milliseconds(lambda at=at, k=k: home.view("counts", at=at).get(k=k)) for at, k in asked]  # type: ignore[misc]
    warm = sorted(times[len(times) // 2 :])
    found = {"first look-up, ms": first, "look-up p50, ms": statistics.median(warm), "look-up p95, ms": warm[int(0.95 * len(warm))]}
    return found | {"keys": keys, "epochs": epochs}


def whole_views(folder: Path, keys: int, epochs: int) -> dict[str, float]:
    """Interleaved: the newest, then an old one. Each is opened anew, so that nothing is remembered but pages."""
    make(folder, keys, epochs, touched=1000)
    chance, ratios = random.Random(7), []
    for _ in range(9):
        old = chance.randrange(2, epochs)
        newest = _milliseconds(lambda: ns.open(folder).view("counts").to_arrow())
        ratios.append(_milliseconds(lambda old=old: ns.open(folder).view("counts", at=old).to_arrow()) / newest)  # type: ignore[misc]
    return {"old view / newest": statistics.median(ratios[1:]), "rows": keys}


def rescaling(folder: Path, keys: int, rows: int) -> dict[str, float]:
    """Epoch 1 brings all keys; then epochs of `rows` events, a file each."""
    spark, chance = open_session("nosync", "2g", folder / "scratch"), np.random.default_rng(1)
    (folder / "in").mkdir(parents=True)
    flow = ns.Flow("rescaled", spark)
    events = flow.source("events", ns.files(str(folder / "in"), format="parquet", schema="k bigint", maxFilesPerTrigger=1))
    flow.view("counts", events.groupBy("k").count())
    stepping: list[float] = []

    def feed(values: np.ndarray, number: int) -> None:
        pq.write_table(pa.table({"k": values}), folder / f"{number}.parquet")
        (folder / f"{number}.parquet").rename(folder / "in" / f"{number:04d}.parquet")
        run.processAllAvailable()
        stepping.append(run.lastProgress["durationMs"]["triggerExecution"])  # type: ignore[index]

    with flow.start(folder / "home", shards=2) as run:
        feed(np.arange(keys, dtype=np.int64), 0)
        number, found = 1, {"rescaled keys": float(keys), "rows an epoch": float(rows)}
        for before, after in ((2, 8), (8, 3)):
            for _ in range(ORDINARY):
                feed(chance.integers(0, keys, rows), number)
                number += 1
            ordinary = statistics.median(stepping[-ORDINARY + 2 :])
            run.rescale(after)
            feed(chance.integers(0, keys, rows), number)
            number += 1
            found |= {f"ordinary epoch with {before}, ms": ordinary, f"next epoch / ordinary, {before} to {after}": stepping[-1] / ordinary}
    spark.stop()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.history")
    parser.add_argument("--keys", type=int, default=10_000_000)
    parser.add_argument("--epochs", type=int, default=1_000)
    parser.add_argument("--only", choices=("look-ups", "views", "rescaling", "compaction", "opening"))
    parser.add_argument("--opened-epochs", type=int, default=1_000_000)
    parser.add_argument("--work", type=Path, default=Path("build/bench-history"))
    given = parser.parse_args()
    shutil.rmtree(given.work, ignore_errors=True)
    cases: dict[str, Callable[[Path], dict[str, float]]] = {
        "look-ups": lambda folder: look_ups(folder, given.keys, given.epochs),
        "views": lambda folder: whole_views(folder, given.keys // 10, max(20, given.epochs // 10)),
        "rescaling": lambda folder: rescaling(folder, given.keys, max(1000, given.keys // 100)),
        "compaction": lambda folder: on_and_off(folder, plain(folder / "in", given.epochs // 4, given.keys // 500, given.keys // 100)),
        "opening": lambda folder: opened_after(folder / "home", given.opened_epochs),
    }
    for name, case in cases.items():
        if given.only in (None, name):
            (given.work / name).mkdir(parents=True)
            found = {figure: round(value, 3) for figure, value in case((given.work / name).absolute()).items()}
            print(json.dumps({"case": name, **found, "bounds": {one: BOUNDS[one] for one in found if one in BOUNDS}}), flush=True)
    shutil.rmtree(given.work, ignore_errors=True)


if __name__ == "__main__":
    main()
