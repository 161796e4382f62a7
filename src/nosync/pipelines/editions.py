"""The tables of a pipeline as files that anybody reads, replaced all at once: an edition is every table as of one moment.

    DATABASE/TABLE -> _nosync/PIPELINE/current/TABLE                        what the catalog, Spark and all others read
    DATABASE/_nosync/PIPELINE/current  -> edition-<12 digits>                replaced by renaming: one moment for all tables
    DATABASE/_nosync/PIPELINE/edition-<12 digits>/TABLE -> ../tables/TABLE/<12 digits>
    DATABASE/_nosync/PIPELINE/edition-<12 digits>/_edition.json             {"tables": {TABLE: {"version", "home", "trace", "epoch"}}}
    DATABASE/_nosync/PIPELINE/tables/TABLE/<12 digits>/[COLUMN=VALUE/...]   the files of one version, named after its edition

A version is never changed. A table that stays as it is keeps its version from edition to edition. The editions before the newest stay
for those who are still reading them: three, and all that were current in the last half a minute. DATABASE
is the folder of the project's database, `spark-warehouse` by default.
"""

import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nosync.model.errors import MALFORMED
from nosync.model.identifiers import NO_EPOCH, Epoch, TraceName
from nosync.model.store import is_name
from nosync.store.lasting import point, sync, sync_tree

NO_TRACE = TraceName("")
CURRENT, RECORD, KEPT, KEPT_SECONDS = "current", "_edition.json", 3, 30
PREFIX = "edition-"
NAME = re.compile(PREFIX + "([0-9]{12})")


@dataclass(frozen=True)
class Published:
    """A table in an edition: its version, and the epoch of the view of the home that it shows. A table that is recomputed whole has no
    epoch."""

    version: int
    home: str = ""
    trace: TraceName = NO_TRACE
    epoch: Epoch = NO_EPOCH

    @staticmethod
    def of(said: Mapping[str, Any]) -> "Published":
        return Published(int(said["version"]), str(said["home"]), TraceName(said["trace"]), Epoch(said["epoch"]))


@dataclass(frozen=True)
class Edition:
    """What an edition says of its tables. Number 0 is before the first."""

    number: int = 0
    tables: Mapping[str, Published] | None = None

    def of(self, table: str) -> Published | None:
        return (self.tables or {}).get(table)


class Editions:
    """Those of one pipeline. `folder` is its place in the warehouse."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def newest(self) -> Edition:
        """The current edition; one that cannot be read counts as none: all tables are written anew then."""
        link = self.folder / CURRENT
        if not link.is_symlink():
            return Edition()
        link_name = os.readlink(link)
        try:
            said = json.loads((self.folder / link_name / RECORD).read_text())
            return Edition(_number(link_name), {_table(name): Published.of(one) for name, one in said["tables"].items()})
        except (OSError, *MALFORMED):
            return Edition(self._highest())

    def _highest(self) -> int:
        return max((_number(path.name) for path in self.folder.glob(f"{PREFIX}*") if NAME.fullmatch(path.name)), default=0)

    def version(self, table: str, number: int) -> Path:
        return self.folder / "tables" / table / f"{number:012d}"

    def begin(self, table: str, number: int) -> Path:
        """An empty folder for a new version; what a killed run has left there goes."""
        target = self.version(table, number)
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        return target

    def publish(self, edition: Edition) -> None:
        """From here on readers see this edition. Versions of it that are new are on the disk before."""
        target = self.folder / f"{PREFIX}{edition.number:012d}"
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        tables = dict(edition.tables or {})
        for table, published in tables.items():
            (target / table).symlink_to(os.path.relpath(self.version(table, published.version), target), target_is_directory=True)
            if published.version == edition.number:
                sync_tree(self.version(table, published.version))
        (target / RECORD).write_text(json.dumps({"tables": {table: asdict(one) for table, one in tables.items()}}))
        sync(target / RECORD)
        sync(target)
        point(self.folder / CURRENT, target.name)

    def tidy(self, now: float) -> None:
        """Editions that nobody can be reading any more go, and versions that are in none."""
        editions = sorted(self.folder.glob(f"{PREFIX}*"))
        replaced = [next_one.stat().st_mtime for next_one in editions[1:]]
        kept = [one for one, at in zip(editions, replaced, strict=False) if at > now - KEPT_SECONDS or one in editions[-KEPT:]]
        kept += editions[-1:]
        for old in editions:
            if old not in kept:
                shutil.rmtree(old, ignore_errors=True)
        used = {(edition / table.name).resolve() for edition in kept for table in edition.iterdir() if table.is_symlink()}
        for version in self.folder.glob("tables/*/*"):
            if version.resolve() not in used:
                shutil.rmtree(version, ignore_errors=True)


def _table(name: str) -> str:
    """`ValueError` where it leads out of the folder of an edition."""
    if not is_name(name) or "/" in name:
        raise ValueError(f"{name!r} is no table")
    return name


def _number(name: str) -> int:
    """Of the edition whose folder is called so; `ValueError` where that is none."""
    found = NAME.fullmatch(name)
    if found is None:
        raise ValueError(f"{name!r} is no edition")
    return int(found[1])
