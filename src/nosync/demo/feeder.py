"""Writes the auction's events into folders, a file a stream every moment, in a thread of its own.

Promise: a reader of a folder never sees half a file. Each is written under a name that readers skip and then renamed.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

from nosync.demo.auction import House

STREAMS = ("people", "auctions", "bids")


class Feeder:
    """A source of files that starts on `start` and ends on `stop`; `written` is the number of events that are out."""

    def __init__(self, folder: Path, seed: int, events_per_file: int, pause_seconds: float) -> None:
        self.written = 0
        self._folder = folder
        self._house = House(seed)
        self._events_per_file = events_per_file
        self._pause_seconds = pause_seconds
        self._number = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._feed, name="auction", daemon=True)
        for stream in STREAMS:
            (folder / stream).mkdir(parents=True, exist_ok=True)

    def start(self) -> None:
        """Begin to write, in the background."""
        self._thread.start()

    def stop(self) -> None:
        """Return when the last file is complete."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    def write(self) -> None:
        """One more file in each folder that has events."""
        for stream, lines in self._house.events(self._events_per_file).items():
            if lines:
                hidden = self._folder / stream / f".{self._number:06d}.json"
                hidden.write_text("\n".join(lines) + "\n", encoding="utf-8")
                os.replace(hidden, hidden.with_name(hidden.name[1:]))
        self._number += 1
        self.written += self._events_per_file

    def _feed(self) -> None:
        while not self._stopping.wait(self._pause_seconds):
            self.write()
