"""The program that is to last: `python -m bench.soak.flow PLACE`, killed and started again by `bench.soak`.

PLACE/in/events, PLACE/in/users  files that somebody feeds; the flow deletes what no failure can ask for again
PLACE/home, PLACE/remote         the flow's home and its remote
PLACE/out                        a folder of Parquet files: the windows that have closed
PLACE/notes                      a line an epoch: when it was done, its number, its milliseconds, its way
PLACE/heap                       a line every few seconds: the JVM's heap
PLACE/trigger                    if this is there, the least time between epochs
PLACE/finish                     once this is there, all input is processed and the program ends

Nothing in it grows by itself but a row a window: users replace one another by key, and sums are by user and by item.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

from pyspark.sql import functions as F

import nosync as ns
from nosync.bridge.heap import heap_of

EVENTS = "user int, item int, amount double, at timestamp"
USERS = "user int, country string, level int"
HEAP_SECONDS = 2.0
LOOK_SECONDS = 0.2


def soaking_flow(place: Path) -> ns.Flow:
    """A join of an aggregate and a table that changes, an aggregate of that, windows, a precise sink and a function."""
    flow = ns.Flow("soak")
    folder = place / "in"
    given = ns.files(folder / "events", format="parquet", schema=EVENTS, maxFilesPerTrigger=1, cleanSource="delete")
    events = flow.source("events", given, watermark=("at", "20 seconds"))
    changes = ns.files(folder / "users", format="parquet", schema=USERS, maxFilesPerTrigger=1, cleanSource="delete")
    users = flow.source("users", changes, key="user")
    spend = flow.view("spend", events.groupBy("user").agg(F.sum("amount").alias("spent"), F.count("*").alias("n")))
    known = flow.view("known", spend.join(users, "user").select("user", "country", "level", "spent", "n"))
    countries = flow.view("countries", known.groupBy("country").agg(F.sum("spent").alias("spent"), F.count("*").alias("users")))
    flow.view("items", events.groupBy("item").agg(F.max("amount").alias("most"), F.avg("amount").alias("mean")))
    minutes = events.groupBy(F.window("at", "30 seconds").alias("w")).agg(F.sum("amount").alias("total"), F.count("*").alias("n"))
    minutes = flow.view("minutes", minutes.select("w.start", "total", "n"), emit="final")
    flow.sink("minutes to files", minutes, ns.parquet(place / "out"))
    flow.sink("countries to a function", countries, ns.foreachEpoch(lambda changes, epoch: changes.collect(), idempotent=True))
    return flow


class Notes:
    """Whole lines, at the end of a file."""

    def __init__(self, file: Path) -> None:
        self.lines = file.open("ab", buffering=0)

    def note(self, facts: dict[str, Any]) -> None:
        self.lines.write(json.dumps(facts).encode() + b"\n")


def main(place: Path) -> None:
    flow = soaking_flow(place)
    epochs, heaps = Notes(place / "notes"), Notes(place / "heap")

    def note(event: Any) -> None:
        if event.kind == "progress":
            done = event.progress
            epochs.note({"at": time.time(), "epoch": done["epoch"], "ms": done["durationMs"]["triggerExecution"], "way": done["way"]})

    def watch() -> None:
        while True:
            heap = heap_of(flow.spark)
            if heap is not None:
                heaps.note({"at": time.time(), "used": heap.used, "live": heap.live})
            time.sleep(HEAP_SECONDS)

    flow.listen(note)
    trigger = (place / "trigger").read_text() if (place / "trigger").exists() else None
    threading.Thread(target=watch, daemon=True).start()
    with flow.start(place / "home", shards=2, trigger=trigger, remote=(place / "remote").absolute().as_uri(), quiet=True) as run:
        while run.isActive and not (place / "finish").exists():
            time.sleep(LOOK_SECONDS)
        run.processAllAvailable()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
