"""The two sources of the small flow: one that can be read again, one that cannot."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nosync.journal.names import source_folder
from nosync.model.store import fingerprint

from .places import Cache
from .world import Broken, World


@dataclass
class Lasting:
    """A source that can be read again until it is asked to trim. Shared by all runs, as a real one would be."""

    events: list[int] = field(default_factory=list)
    trimmed: int = 0

    def read(self, first: int, last: int) -> list[int]:
        if first < self.trimmed:
            raise Broken(f"events {first} to {last} were trimmed up to {self.trimmed} and are needed again")
        return self.events[first:last]


@dataclass
class LastingReader:
    """One run's hold of it."""

    world: World
    source: Lasting
    position: int
    check: Callable[[dict[str, Any]], None] = lambda slice: None

    def available(self) -> dict[str, Any] | None:
        return self.world.operation("source", "available", self._take)

    def _take(self) -> dict[str, Any] | None:
        end = min(len(self.source.events), self.position + 3)
        if end == self.position:
            return None
        slice = {"first": self.position, "last": end}
        self.position = end
        return slice

    def files(self, slice: dict[str, Any]) -> dict[str, str]:
        return {}

    def reopen(self, slice: dict[str, Any], unreadable: Mapping[str, str]) -> dict[str, Any]:
        return slice

    def acknowledge(self, slice: dict[str, Any]) -> None:
        """It can be read again anyway."""

    def trim(self, slice: dict[str, Any]) -> None:
        self.world.operation("source", "trim", lambda: self._trim(slice))

    def _trim(self, slice: dict[str, Any]) -> None:
        self.check(slice)
        self.source.trimmed = max(self.source.trimmed, slice["last"])


@dataclass
class Fleeting:
    """A source that cannot be read again: rows go into a file of the home, and leave the source once their epoch is recorded. `written`
    remembers them for checks.
    """

    disk: Cache
    run: str
    written: dict[str, list[int]]
    pending: list[int] = field(default_factory=list)
    offered: list[int] = field(default_factory=list)
    count: int = 0

    def offer(self, row: int) -> None:
        self.pending.append(row)
        self.offered.append(row)

    def available(self) -> dict[str, Any] | None:
        if not self.pending:
            return None
        name, rows = f"{source_folder('fleeting')}/{self.run}-{self.count}", list(self.pending)
        content = json.dumps(rows).encode()
        self.written[name] = rows
        self.disk.replace(name, content)
        self.count += 1
        return {"file": name, "mark": fingerprint(content), "rows": len(rows)}

    def reopen(self, slice: dict[str, Any], unreadable: Mapping[str, str]) -> dict[str, Any]:
        return slice

    def acknowledge(self, slice: dict[str, Any]) -> None:
        del self.pending[: slice["rows"]]

    def files(self, slice: dict[str, Any]) -> dict[str, str]:
        return {slice["file"]: slice["mark"]}

    def trim(self, slice: dict[str, Any]) -> None:
        """Its file is the flow's to delete."""
