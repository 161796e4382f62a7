"""Lines of text with a time, as in the evaluation of D-Streams: for counting words over a sliding window, and for Grep.

Words follow Zipf's law. Every file is one second of event time; a line in `RARE` holds the word that Grep looks for.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bench.inputs import FIRST_FILE_AT, Input, made

SCHEMA = "at timestamp, line string"
VOCABULARY = 50_000
WORDS = 5
RARE = 1000
NEEDLE = "needle"
WINDOW_SECONDS, DELAY_SECONDS = 30, 1


def lines(work: Path, files: int, rows: int) -> Input:
    """`rows` lines a second."""
    return made(work, f"lines-{files}x{rows}", "parquet", SCHEMA, lambda: _tables(files, rows), _truth)


def _tables(files: int, rows: int) -> Iterator[pa.Table]:
    weights = 1.0 / np.arange(1, VOCABULARY + 1)
    cumulated = np.cumsum(weights) / weights.sum()
    words = np.array([f"word{number:05d}" for number in range(VOCABULARY)], object)
    for number in range(files):
        generator = np.random.default_rng([13, number])
        drawn = words[np.searchsorted(cumulated, generator.random((rows, WORDS)))]
        drawn[np.arange(rows) % RARE == 0, WORDS // 2] = NEEDLE
        micros = (FIRST_FILE_AT + number) * 1_000_000 + np.sort(generator.integers(0, 1_000_000, rows))
        yield pa.table({"at": pa.array(micros, pa.timestamp("us", tz="UTC")), "line": [" ".join(line) for line in drawn]})


def _truth(tables: Iterator[pa.Table]) -> dict[str, Any]:
    """`matches`: lines with the needle. `counted`: words in windows that are closed at the end, each as often as it is in one."""
    seconds, rows, newest = [], [], 0
    for table in tables:
        micros = table["at"].cast(pa.int64()).to_numpy()
        seconds.append(int(micros[0]) // 1_000_000)
        rows.append(len(table))
        newest = max(newest, int(micros[-1]))
    closed = (newest - DELAY_SECONDS * 1_000_000) // 1_000_000
    windows = [max(0, min(WINDOW_SECONDS, closed - second)) for second in seconds]
    counted = sum(count * WORDS * times for count, times in zip(rows, windows, strict=True))
    return {"matches": sum(-(-count // RARE) for count in rows), "counted": counted}
