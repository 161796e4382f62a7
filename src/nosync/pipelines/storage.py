"""What a pipeline keeps in its storage beside the tables: the home of its flow, and how often tables were begun anew.

STORAGE/nosync/pipeline.json    {"home": NUMBER, "generations": {TABLE: NUMBER}}
STORAGE/nosync/home-NUMBER/     the home of the flow; --full-refresh-all takes the next number
"""

import json
import shutil
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from nosync.model.errors import MALFORMED, Corrupt
from nosync.store.lasting import put

FILE = "pipeline.json"


@dataclass(frozen=True)
class Storage:
    """Which home is in use."""

    folder: Path
    home: int = 1
    generations: dict[str, int] = field(default_factory=dict)

    @staticmethod
    def of(storage: Path) -> "Storage":
        folder = storage / "nosync"
        try:
            said = json.loads((folder / FILE).read_text())
            return Storage(folder, int(said["home"]), {str(name): int(number) for name, number in said["generations"].items()})
        except FileNotFoundError:
            return Storage(folder)
        except MALFORMED:
            hint = "Remove it, and run with --full-refresh-all."
            raise Corrupt(f'"{folder / FILE}" cannot be read', hint=hint) from None

    @property
    def path(self) -> Path:
        return self.folder / f"home-{self.home}"

    def anew(self) -> "Storage":
        return replace(self, home=self.home + 1, generations={})

    def begun_anew(self, tables: Iterable[str]) -> "Storage":
        return replace(self, generations=self.generations | {name: self.generations.get(name, 0) + 1 for name in tables})

    def save(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        said = asdict(self)
        put(self.folder / FILE, json.dumps({"home": said["home"], "generations": said["generations"]}).encode())

    def tidy(self) -> None:
        """Homes before this one go."""
        for home in self.folder.glob("home-*"):
            if home != self.path:
                shutil.rmtree(home, ignore_errors=True)
