"""Places that fail in every way a real one can.

A `Cache` forgets, when its host restarts, what was never synced: contents may be torn or hold other bytes, names may be gone, deleted
names may be back. `Away` survives everything that was synced there; each host reaches it through a `Link` of its own, which may be cut.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from nosync.model.errors import Conflict, Corrupt, Unavailable

from .rot import spoiled
from .tasks import Lock
from .world import FILLS, World

T = TypeVar("T")
RESTART_OPERATIONS = 40  # within so many, the machine of a remote restarts that has failed to sync


@dataclass(slots=True)
class File:
    """`before` is what a restart may bring back, until both content and name are synced."""

    content: bytes
    before: bytes | None = None
    content_synced: bool = False
    name_synced: bool = False

    def copy(self) -> File:
        return File(self.content, self.before, self.content_synced, self.name_synced)


class Host:
    """A machine: a disk, the time since it was started, a link to the remote."""

    def __init__(self, world: World, boot: str, cut: bool = False, full: bool = False) -> None:
        self.disk = Cache(world, self)
        self.boot, self.cut, self.full = boot, cut, full
        self.cut_until = self.full_until = 0

    def refuses(self, place: str, name: str, now: int) -> bool:
        if place == "remote":
            return self.cut or now < self.cut_until
        return name in FILLS and (self.full or now < self.full_until)

    def fails_until(self, place: str, until: int) -> None:
        if place == "remote":
            self.cut_until = until
        else:
            self.full_until = until

    def heal(self) -> None:
        self.cut = self.full = False
        self.cut_until = self.full_until = 0


class Away:
    """The remote: names and bytes. `folder`: it is one on another machine, where a name may be seen before it is synced; a restart of that
    machine forgets it. `unsynced` are such names, with what was there before.
    """

    def __init__(self, files: dict[str, bytes] | None = None, folder: bool = False) -> None:
        self.files: dict[str, bytes] = files or {}
        self.folder = folder
        self.unsynced: dict[str, bytes | None] = {}

    def copy(self) -> Away:
        other = Away(dict(self.files), self.folder)
        other.unsynced = dict(self.unsynced)
        return other

    def restart(self, world: World) -> None:
        world.events["remote restarts"] += bool(self.unsynced)
        for name, before in self.unsynced.items():
            if world.random.random() < 0.6:
                self.files.pop(name, None)
                if before is not None:
                    self.files[name] = before
        self.unsynced.clear()

    def create(self, name: str, content: bytes) -> None:
        if name in self.files:
            raise Conflict(f"{name} exists")
        self.files[name] = content

    def replace(self, name: str, content: bytes) -> None:
        self.files[name] = content

    def delete(self, name: str) -> None:
        self.files.pop(name, None)


class Link:
    """The remote as one host reaches it."""

    address = "away"

    def __init__(self, world: World, away: Away, host: Host) -> None:
        self.world, self.away, self.host = world, away, host

    def _put(self, operation: str, name: str, act: Callable[[], None]) -> None:
        def loosely() -> None:
            before = self.away.unsynced.get(name, self.away.files.get(name))
            act()
            self.away.unsynced[name] = before
            self.world.later(lambda: self.away.restart(self.world), RESTART_OPERATIONS)

        def whole() -> None:
            act()
            self.away.unsynced.pop(name, None)  # what ends well is synced

        others = {"done, not synced": loosely} if self.away.folder else {}
        self.world.operation("remote", operation, whole, self.host, others)

    def _ask(self, operation: str, act: Callable[[], T]) -> T:
        def asked() -> T:
            self.trust()
            return act()

        return self.world.operation("remote", operation, asked, self.host)

    def trust(self) -> None:
        """As the store promises: what is not synced is synced now, or nothing is said."""
        if self.away.unsynced:
            self.world.events["not synced"] += 1
            if self.world.faults and self.world.random.random() < 0.5:
                raise Unavailable("the remote could not sync what it has")
            self.away.unsynced.clear()

    def create(self, name: str, content: bytes) -> None:
        self._put("create", name, lambda: self.away.create(name, content))

    def replace(self, name: str, content: bytes) -> None:
        self._put("replace", name, lambda: self.away.replace(name, content))

    def read(self, name: str) -> bytes | None:
        return self._ask("read", lambda: self.away.files.get(name))

    def read_all(self, names: list[str]) -> dict[str, bytes]:
        return {name: content for name in names if (content := self.read(name)) is not None}

    def exists(self, name: str) -> bool:
        return self._ask("exists", lambda: name in self.away.files)

    def sizes(self, folder: str) -> dict[str, int]:
        return self._ask("sizes", lambda: _below(self.away.files, folder, len))

    def sizes_of(self, folders: dict[str, str]) -> dict[str, int]:
        return _behind(folders, self.sizes)

    def there(self, names: list[str]) -> set[str]:
        return {name for name in names if self.exists(name)}

    def delete(self, name: str) -> None:
        self.world.operation("remote", "delete", lambda: self.away.delete(name), self.host)

    def upload(self, name: str, disk: Cache) -> int:
        file = disk.files.get(name)
        if file is None:
            raise Corrupt(f"{name} is not there")
        content = file.content
        self._put("upload", name, lambda: self.away.replace(name, content))
        return len(content)

    def download(self, name: str, disk: Cache) -> bool:
        def fetch() -> bool:
            content = self.away.files.get(name)
            if content is not None:
                disk.write(name, content, content_synced=True)
            return content is not None

        return self._ask("download", fetch)

    def download_all(self, names: list[str], disk: Cache) -> Iterator[tuple[str, bool]]:
        return ((name, self.download(name, disk)) for name in names)


class Cache:
    """The home: a page cache over a disk."""

    def __init__(self, world: World, host: Host) -> None:
        self.world, self.host = world, host
        self.files: dict[str, File] = {}
        self.ghosts: dict[str, bytes] = {}  # deleted, but the deletion is not synced
        self.lock = Lock(world.tasks, again=False)

    def alone(self) -> Lock:
        return self.lock

    def copy(self, world: World, host: Host) -> Cache:
        other = Cache(world, host)
        other.files = {name: file.copy() for name, file in self.files.items()}
        other.ghosts = dict(self.ghosts)
        return other

    def write(self, name: str, content: bytes, content_synced: bool = False) -> None:
        old = self.files.get(name)
        before = self.ghosts.get(name) if old is None else (old.content if old.content_synced and old.name_synced else old.before)
        self.files[name] = File(content, before, content_synced)

    def create(self, name: str, content: bytes) -> None:
        self.world.operation("home", "create", lambda: self._create(name, content), self.host)

    def _create(self, name: str, content: bytes) -> None:
        if name in self.files:
            raise Conflict(f"{name} exists")
        self.write(name, content)

    def replace(self, name: str, content: bytes) -> None:
        self.world.operation("home", "replace", lambda: self.write(name, content), self.host)

    def read(self, name: str) -> bytes | None:
        return self.world.operation("home", "read", lambda: self.files[name].content if name in self.files else None, self.host)

    def read_all(self, names: list[str]) -> dict[str, bytes]:
        return {name: content for name in names if (content := self.read(name)) is not None}

    def exists(self, name: str) -> bool:
        return self.size(name) is not None

    def size(self, name: str) -> int | None:
        return self.world.operation("home", "exists", lambda: len(self.files[name].content) if name in self.files else None, self.host)

    def sizes(self, folder: str) -> dict[str, int]:
        return self.world.operation("home", "sizes", lambda: _below(self.files, folder, lambda file: len(file.content)), self.host)

    def sizes_of(self, folders: dict[str, str]) -> dict[str, int]:
        return _behind(folders, self.sizes)

    def delete(self, name: str) -> None:
        self.world.operation("home", "delete", lambda: self._delete(name), self.host)

    def _delete(self, name: str) -> None:
        old = self.files.pop(name, None)
        back = None if old is None else (old.content if old.content_synced and old.name_synced else old.before)
        if back is not None:
            self.ghosts[name] = back

    def sync_files(self, names: Iterable[str]) -> None:
        self._operate("sync_files", list(names), self._sync_contents)

    def sync_folders(self, names: Iterable[str]) -> None:
        folders = sorted({name.rpartition("/")[0] for name in names})
        self._operate("sync_folders", folders, self._sync_names)

    def _operate(self, name: str, wanted: list[str], act: Callable[[list[str]], None]) -> None:
        def partly() -> None:
            act([one for one in wanted if self.world.random.random() < 0.5])

        if wanted:
            self.world.operation("home", name, lambda: act(wanted), self.host, {"done in part": partly})

    def _sync_contents(self, names: list[str]) -> None:
        for name in names:
            if name in self.files:
                self.files[name].content_synced = True

    def _sync_names(self, folders: list[str]) -> None:
        for name, file in self.files.items():
            file.name_synced = file.name_synced or name.rpartition("/")[0] in folders
        for name in [name for name in self.ghosts if name.rpartition("/")[0] in folders]:
            del self.ghosts[name]

    def clear_beginnings(self, generation: int) -> int:
        return 0  # here names are whole or not there

    def restart(self) -> None:
        """The host comes back. What was not synced may be there, torn, of its length with other bytes, as it was before, or gone."""
        chance = self.world.random
        left: dict[str, File] = {}
        for name, file in self.files.items():
            content: bytes | None = file.content
            if not file.content_synced and chance.random() < 0.6:
                whole = file.content[: chance.randrange(len(file.content) + 1)]
                content = whole if chance.random() < 0.5 else spoiled(whole, file.content)
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


class Peek:
    """What a store holds, for checks: no chance, no failures."""

    def __init__(self, place: Away | Cache) -> None:
        self.place = place

    def _content(self, name: str) -> bytes | None:
        found = self.place.files.get(name)
        return found.content if isinstance(found, File) else found

    def read(self, name: str) -> bytes | None:
        return self._content(name)

    def exists(self, name: str) -> bool:
        return name in self.place.files

    def read_all(self, names: list[str]) -> dict[str, bytes]:
        return {name: content for name in names if (content := self._content(name)) is not None}

    def sizes(self, folder: str) -> dict[str, int]:
        return {name: len(self._content(name) or b"") for name in self.place.files if name.startswith(folder + "/")}

    def sizes_of(self, folders: dict[str, str]) -> dict[str, int]:
        return _behind(folders, self.sizes)


class Both:
    """A home, and for what it lacks a remote: for those who only read."""

    def __init__(self, disk: Cache, remote: Peek) -> None:
        away = {name: File(content) for name in remote.place.files if (content := remote.read(name)) is not None}
        self.files = away | disk.files


def _below(files: dict[str, T], folder: str, size: Callable[[T], int]) -> dict[str, int]:
    return {name: size(file) for name, file in files.items() if name.startswith(folder + "/")}


def _behind(folders: dict[str, str], sizes: Callable[[str], dict[str, int]]) -> dict[str, int]:
    """What some folders hold behind a name in each."""
    found = {name: size for folder in folders for name, size in sizes(folder).items()}
    return {name: size for name, size in found.items() if name > f"{name.rpartition('/')[0]}/{folders[name.rpartition('/')[0]]}"}


def facts_of(text: bytes) -> dict[str, Any]:
    """Of a run, unless its file was torn."""
    with suppress(ValueError):
        return dict(json.loads(text))
    return {}
