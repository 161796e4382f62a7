"""A host that loses its power: what was synced is remembered as it happens, and the rest is torn or gone afterwards."""

import os
import random
import stat
import threading
from collections.abc import Callable
from pathlib import Path


class Power:
    """Takes note of every fsync. A file survives if its content was synced and its name too, in a folder whose own name survives."""

    def __init__(self, fsync: Callable[[int], None] = os.fsync) -> None:
        self._really = fsync
        self._contents: set[int] = set()
        self._names: dict[int, set[tuple[str, int]]] = {}
        self._lock = threading.Lock()

    def fsync(self, descriptor: int) -> None:
        """In the place of `os.fsync`."""
        self._really(descriptor)
        facts = os.fstat(descriptor)
        with self._lock:
            if stat.S_ISDIR(facts.st_mode):
                with os.scandir(descriptor) as entries:
                    self._names.setdefault(facts.st_ino, set()).update((entry.name, entry.inode()) for entry in entries)
            else:
                self._contents.add(facts.st_ino)

    def lose(self, home: Path, chance: random.Random) -> int:
        """The host restarts; says how many files are not as before. What is left is on the disk."""
        torn = self._tear(home, chance, certain=True)
        self._contents.clear()
        self._names.clear()
        self._keep(home)
        return torn

    def _keep(self, folder: Path) -> None:
        names = self._names.setdefault(folder.stat().st_ino, set())
        for path in folder.iterdir():
            inode = path.stat().st_ino
            names.add((path.name, inode))
            if path.is_dir():
                self._keep(path)
            else:
                self._contents.add(inode)

    def _tear(self, folder: Path, chance: random.Random, certain: bool) -> int:
        names = self._names.get(folder.stat().st_ino, set())
        torn = 0
        for path in sorted(folder.iterdir()):
            inode = path.stat().st_ino
            there = certain and (path.name, inode) in names
            if path.is_dir():
                torn += self._tear(path, chance, there)
            elif not there and chance.random() < 0.5:
                path.unlink()
                torn += 1
            elif inode not in self._contents and chance.random() < 0.7:
                os.truncate(path, chance.randrange(path.stat().st_size + 1))
                torn += 1
        return torn
