"""What a pipeline keeps in its storage beside the tables: the home of its flow, and how often tables were begun anew.

STORAGE/nosync/pipeline.json    {"home": NUMBER, "generations": {TABLE: NUMBER}, "mark": TEXT}
STORAGE/nosync/home-NUMBER/     the home of the flow; --full-refresh-all takes the next number

A remote has the same below its address, without the mark: a machine that has lost the storage goes on from there. Its tables are written
whole then, since they may show epochs that had not got to the remote: the mark is another one.
"""

import json
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import uuid4

from nosync.journal.joining import NO_REMOTE
from nosync.model.errors import MALFORMED, Corrupt
from nosync.store.lasting import put_private
from nosync.store.objects import open_remote

FILE = "pipeline.json"


@dataclass(frozen=True)
class Storage:
    """Which home is in use. `remote` is the address of the copy, if there is one; `mark` tells this storage from one that was lost."""

    folder: Path
    home: int = 1
    generations: dict[str, int] = field(default_factory=dict)
    remote: str | None = None
    mark: str = field(default_factory=lambda: uuid4().hex[:8])

    @staticmethod
    def of(storage: Path, remote: str | None = None) -> "Storage":
        folder = storage / "nosync"
        remote = remote.rstrip("/") if remote else None
        try:
            text = _text(folder / FILE, remote)
            if text is None:
                return Storage(folder, remote=remote)
            said = json.loads(text)
            generations = {str(name): int(number) for name, number in said["generations"].items()}
            found = Storage(folder, int(said["home"]), generations, remote)
            return replace(found, mark=str(said.get("mark", ""))) if (folder / FILE).is_file() else found
        except MALFORMED:
            hint = "Remove it, and run with --full-refresh-all."
            raise Corrupt(f'"{folder / FILE}" cannot be read', hint=hint) from None

    @property
    def path(self) -> Path:
        return self.folder / f"home-{self.home}"

    @property
    def name(self) -> str:
        """Of the home, as editions have it."""
        return f"{self.path.name}~{self.mark}" if self.mark else self.path.name

    @property
    def copy(self) -> str | None:
        """Where the copy of the home goes."""
        return f"{self.remote}/{self.path.name}" if self.remote and self.remote != NO_REMOTE else self.remote

    def anew(self) -> "Storage":
        return replace(self, home=self.home + 1, generations={})

    def begun_anew(self, tables: Iterable[str]) -> "Storage":
        return replace(self, generations=self.generations | {name: self.generations.get(name, 0) + 1 for name in tables})

    def save(self) -> None:
        said = {"home": self.home, "generations": self.generations}
        put_private(self.folder / FILE, json.dumps(said | {"mark": self.mark}).encode())
        if self.remote and self.remote != NO_REMOTE:
            open_remote(self.remote).replace(FILE, json.dumps(said).encode())

    def tidy(self) -> None:
        """Homes before this one go."""
        for home in self.folder.glob("home-*"):
            if home != self.path:
                shutil.rmtree(home, ignore_errors=True)


def _text(file: Path, remote: str | None) -> bytes | None:
    if file.is_file():
        return file.read_bytes()
    return open_remote(remote).read(FILE) if remote and remote != NO_REMOTE else None
