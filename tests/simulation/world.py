"""Places that fail in every way a real one can, driven by one seed.

Every storage operation passes through `World.operation`, which decides what becomes of it: done; failed and not done; done but reported as
timed out; not done and reported as timed out; a crash before or after it. A `Cache` forgets, when the host restarts, what was never synced:
contents may be torn, names may be gone, deleted names may be back. `Away` survives everything.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

from nosync.model.errors import Conflict, OutcomeUnknown, Unavailable

T = TypeVar("T")
WRITES = ("create", "replace", "delete", "upload", "download", "sync_files", "sync_folders", "deliver")

SELDOM = {"remote.delete": 12, "remote.replace": 10, "remote.download": 5, "sink.deliver": 5, "home.delete": 3}


class Crash(BaseException):
    """The process is gone, in the middle of whatever it did."""


@dataclass
class World:
    """Chance, and what it may do. `faults` is the chance of a failing operation, `crashes` of a crash at one."""

    seed: int
    faults: float = 0.0
    crashes: float = 0.0
    operations: int = 0
    seen: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    interlude: Callable[[], None] | None = None
    interludes: float = 0.0

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def operation(self, place: str, name: str, act: Callable[[], T]) -> T:
        self.operations += 1
        if self.interlude is not None and self.random.random() < self.interludes:
            self.interlude()
        what, chance = f"{place}.{name}", self.random.random()
        more = SELDOM.get(what, 1)  # what happens seldom shall fail often, or its failures are never seen
        if chance < self.crashes * more:
            return self._crash(what, act)
        if chance < (self.crashes + self.faults) * more:
            return self._fail(what, name, act)
        result = act()
        self.seen[what, "ok", "none"] += 1
        return result

    def _crash(self, what: str, act: Callable[[], T]) -> T:
        side = self.random.choice(("before", "after"))
        if side == "after":
            with suppress(Conflict):
                act()
        self.seen[what, "crash", side] += 1
        raise Crash(what)

    def _fail(self, what: str, name: str, act: Callable[[], T]) -> T:
        if name not in WRITES:
            self.seen[what, "failed", "none"] += 1
            raise Unavailable(f"{what} failed")
        outcome = self.random.choice(("failed", "done, timed out", "not done, timed out"))
        self.seen[what, outcome, "none"] += 1
        if outcome == "done, timed out":
            act()
        if outcome == "failed":
            raise Unavailable(f"{what} failed")
        raise OutcomeUnknown(f"{what} timed out")


@dataclass
class File:
    """`before` is what a restart may bring back, until both content and name are synced."""

    content: bytes
    before: bytes | None = None
    content_synced: bool = False
    name_synced: bool = False


class Away:
    """The remote: names and bytes that survive everything."""

    address = "away"

    def __init__(self, world: World) -> None:
        self.world = world
        self.files: dict[str, bytes] = {}

    def create(self, name: str, content: bytes) -> None:
        self.world.operation("remote", "create", lambda: self._create(name, content))

    def _create(self, name: str, content: bytes) -> None:
        if name in self.files:
            raise Conflict(f"{name} exists")
        self.files[name] = content

    def replace(self, name: str, content: bytes) -> None:
        self.world.operation("remote", "replace", lambda: self.files.__setitem__(name, content))

    def read(self, name: str) -> bytes | None:
        return self.world.operation("remote", "read", lambda: self.files.get(name))

    def read_all(self, names: list[str]) -> dict[str, bytes]:
        return {name: content for name in names if (content := self.read(name)) is not None}

    def exists(self, name: str) -> bool:
        return self.world.operation("remote", "exists", lambda: name in self.files)

    def sizes(self, folder: str) -> dict[str, int]:
        return self.world.operation("remote", "sizes", lambda: _below(self.files, folder, len))

    def sizes_of(self, folders: dict[str, str]) -> dict[str, int]:
        found = {name: size for folder in folders for name, size in self.sizes(folder).items()}
        return {name: size for name, size in found.items() if name > f"{name.rpartition('/')[0]}/{folders[name.rpartition('/')[0]]}"}

    def there(self, names: list[str]) -> set[str]:
        return {name for name in names if self.exists(name)}

    def delete(self, name: str) -> None:
        self.world.operation("remote", "delete", lambda: self.files.pop(name, None))

    def upload(self, name: str, disk: Cache) -> int:
        content = disk.files[name].content if name in disk.files else None
        if content is None:
            return 0
        self.world.operation("remote", "upload", lambda: self.files.__setitem__(name, content))
        return len(content)

    def download(self, name: str, disk: Cache) -> bool:
        content = self.files.get(name)
        if content is None:
            return False
        self.world.operation("remote", "download", lambda: disk.write(name, content, content_synced=True))
        return True

    def download_all(self, names: list[str], disk: Cache) -> Iterator[tuple[str, bool]]:
        return ((name, self.download(name, disk)) for name in names)


class Cache:
    """The home: a page cache over a disk."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.files: dict[str, File] = {}
        self.ghosts: dict[str, bytes] = {}  # deleted, but the deletion is not synced

    def write(self, name: str, content: bytes, content_synced: bool = False) -> None:
        old = self.files.get(name)
        before = self.ghosts.get(name) if old is None else (old.content if old.content_synced and old.name_synced else old.before)
        self.files[name] = File(content, before, content_synced)

    def create(self, name: str, content: bytes) -> None:
        self.world.operation("home", "create", lambda: self._create(name, content))

    def _create(self, name: str, content: bytes) -> None:
        if name in self.files:
            raise Conflict(f"{name} exists")
        self.write(name, content)

    def replace(self, name: str, content: bytes) -> None:
        self.world.operation("home", "replace", lambda: self.write(name, content))

    def read(self, name: str) -> bytes | None:
        return self.world.operation("home", "read", lambda: self.files[name].content if name in self.files else None)

    def read_all(self, names: list[str]) -> dict[str, bytes]:
        return {name: content for name in names if (content := self.read(name)) is not None}

    def exists(self, name: str) -> bool:
        return self.size(name) is not None

    def size(self, name: str) -> int | None:
        return self.world.operation("home", "exists", lambda: len(self.files[name].content) if name in self.files else None)

    def sizes(self, folder: str) -> dict[str, int]:
        return self.world.operation("home", "sizes", lambda: _below(self.files, folder, lambda file: len(file.content)))

    def sizes_of(self, folders: dict[str, str]) -> dict[str, int]:
        found = {name: size for folder in folders for name, size in self.sizes(folder).items()}
        return {name: size for name, size in found.items() if name > f"{name.rpartition('/')[0]}/{folders[name.rpartition('/')[0]]}"}

    def delete(self, name: str) -> None:
        self.world.operation("home", "delete", lambda: self._delete(name))

    def _delete(self, name: str) -> None:
        old = self.files.pop(name, None)
        back = None if old is None else (old.content if old.content_synced and old.name_synced else old.before)
        if back is not None:
            self.ghosts[name] = back

    def sync_files(self, names: Iterable[str]) -> None:
        wanted = list(names)
        if wanted:
            self.world.operation("home", "sync_files", lambda: self._sync(wanted, content=True))

    def sync_folders(self, names: Iterable[str]) -> None:
        wanted = list(names)
        if wanted:
            self.world.operation("home", "sync_folders", lambda: self._sync(wanted, content=False))

    def _sync(self, names: list[str], content: bool) -> None:
        folders = {name.rpartition("/")[0] for name in names}
        if content:
            for name in names:
                if name in self.files:
                    self.files[name].content_synced = True
            return
        for name, file in self.files.items():
            file.name_synced = file.name_synced or name.rpartition("/")[0] in folders
        for name in [name for name in self.ghosts if name.rpartition("/")[0] in folders]:
            del self.ghosts[name]

    def clear_beginnings(self, generation: int) -> int:
        return 0  # here names are whole or not there

    def restart(self) -> None:
        """The host comes back. What was not synced may be there, torn, as it was before, or gone."""
        chance = self.world.random
        left: dict[str, File] = {}
        for name, file in self.files.items():
            content: bytes | None = file.content
            if not file.content_synced and chance.random() < 0.6:
                content = file.content[: chance.randrange(len(file.content) + 1)]
            if not file.name_synced and chance.random() < 0.6:
                content = file.before
            if content is not None:
                left[name] = File(content, None, True, True)
        for name, content in self.ghosts.items():
            if name not in left and chance.random() < 0.5:
                left[name] = File(content, None, True, True)
        self.files, self.ghosts = left, {}

    def wipe(self) -> None:
        """The disk is lost."""
        self.files, self.ghosts = {}, {}


def _below(files: dict[str, T], folder: str, size: Callable[[T], int]) -> dict[str, int]:
    return {name: size(file) for name, file in files.items() if name.startswith(folder + "/")}
