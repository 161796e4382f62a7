"""Input for the flow: files of rows that follow from their number, a few of them always ahead of the flow."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

AHEAD = 40
USERS, ITEMS, COUNTRIES = 2_000, 200, 20
ROWS, MANY_ROWS, MANY_EVERY = 200, 20_000, 50  # most epochs are narrow, one in fifty is wide
CHANGED_USERS = 20
SECONDS_A_FILE = 1.0
BEGIN = 1_767_225_600  # 2026-01-01, as event time


def events_of(number: int) -> pa.Table:
    chance, rows = np.random.default_rng(number), ROWS if (number + 1) % MANY_EVERY else MANY_ROWS
    seconds = BEGIN + (number + chance.random(rows)) * SECONDS_A_FILE
    return pa.table({
        "user": pa.array(chance.integers(0, USERS, rows), pa.int32()),
        "item": pa.array(chance.integers(0, ITEMS, rows), pa.int32()),
        "amount": pa.array(chance.integers(1, 10_000, rows) / 100),
        "at": pa.array((seconds * 1e6).astype("int64"), pa.timestamp("us", "UTC")),
    })  # fmt: skip


def users_of(number: int) -> pa.Table:
    chance = np.random.default_rng(number)
    chosen = np.arange(USERS) if number == 0 else chance.choice(USERS, CHANGED_USERS, replace=False)
    countries = [f"c{country}" for country in chance.integers(0, COUNTRIES, len(chosen))]
    levels = pa.array(chance.integers(0, 100, len(chosen)), pa.int32())
    return pa.table({"user": pa.array(chosen, pa.int32()), "country": pa.array(countries), "level": levels})


class Feeder:
    """Files `fed` so far. They are moved in whole, in order."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.fed = folder, 0
        for name in ("events", "users"):
            (folder / name).mkdir(parents=True)

    def keep_ahead(self, epoch: int) -> None:
        while self.fed < epoch + AHEAD:
            for name, table in (("users", users_of(self.fed)), ("events", events_of(self.fed))):
                beginning = self.folder / f".{name}"
                pq.write_table(table, beginning)
                beginning.rename(self.folder / name / f"{self.fed:08d}.parquet")
            self.fed += 1
