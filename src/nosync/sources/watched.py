"""The files that a batch query reads, looked at again: what was added, changed and removed since comes as rows that come and go.

A slice says which files came and which went: `{"added": [[name, size, modified, look], ...], "removed": [...]}`. Rows of a file that is
gone must still be read to be taken back, so the files themselves are kept, by hard links, below the source's own place in the home:

    HOME/input/SOURCE/LOOK/NAME    a file as it was when it was taken at that look

A link costs nothing as long as the file is there. Small files, and those on another disk, are copied. Who writes into a file in place
writes into its link as well: that is noticed, and nothing can tell any more what the file had (`Overwritten`).
"""

import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, reduce
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from nosync.bridge.arrow import arrow_schema
from nosync.bridge.columns import column_named
from nosync.model.columns import DIFF
from nosync.model.errors import Conflict, Unavailable
from nosync.model.source import Slice, Taken
from nosync.sources.footers import footer_of
from nosync.sources.listing import Entry, facts, new_entries
from nosync.sources.options import literal
from nosync.state.private import make_folder, open_private

COPIED = 1 << 20  # bytes up to which a file is copied: then writing into it in place does no harm
SeenFile = tuple[str, int, int, int]  # name, size, modification time, look


class Overwritten(Conflict):
    """A file was written into in place: what it had is not known any more."""


@dataclass(eq=False)
class WatchedFiles:
    """Files below `roots`, each a folder or one file. With `append_only`, what changes or goes after it was taken is passed over, as
    Spark's own streams of files do.
    """

    roots: tuple[Path, ...]
    format: str
    schema: StructType
    options: Mapping[str, str]
    append_only: bool = False
    fits: Callable[[str], bool] = lambda name: True
    place: Path = field(default_factory=Path)
    there: dict[str, SeenFile] = field(default_factory=dict)
    look: int = 0

    def __repr__(self) -> str:
        return f"files of {', '.join(map(str, self.roots))}"

    def declare(self, name: str, spark: SparkSession) -> StructType:
        self.name = name
        self.expected = arrow_schema(self.schema, f'source "{name}"')
        return self.schema

    def start(self, folder: Path, taken: Taken) -> None:
        self.place, self.there, self.look = folder, {}, 0
        for slice in taken:
            self._take(slice)
        for kept in self.there.values():
            self._keep_again(kept)

    def _take(self, slice: Slice) -> None:
        for entry in slice["removed"]:
            self.there.pop(entry[0], None)
        for entry in slice["added"]:
            self.there[entry[0]] = (entry[0], entry[1], entry[2], entry[3])
            self.look = max(self.look, entry[3])

    def available(self) -> Slice | None:
        now = {entry.name: entry for entry in self._listed()}
        gone = [] if self.append_only else [kept for name, kept in self.there.items() if kept[1:3] != tuple(now.get(name, ("", 0, 0)))[1:3]]
        left = {kept[0] for kept in gone}
        come = sorted((entry for name, entry in now.items() if name not in self.there or name in left), key=lambda entry: entry.name)
        if not come and not gone:
            return None
        for kept in gone:
            self._check(kept)
        added = [[*entry, self.look + 1] for entry in come if self._keep(entry, self.look + 1)]
        slice: Slice = {"added": added, "removed": [list(kept) for kept in gone]} | self._counted(added, gone)
        self._take(slice)
        return slice

    def _listed(self) -> Iterable[Entry]:
        for number, root in enumerate(self.roots):
            if root.is_dir():
                found = new_entries(root, set(), lambda names: set(), self.fits)
            else:
                one = facts(root.parent, root.name)
                found = [one] if one is not None else []
            for entry in found:
                yield Entry(f"{number}/{entry.name}", entry.size, entry.modified)

    def _original(self, name: str) -> Path:
        number, _, below = name.partition("/")
        root = self.roots[int(number)]
        return root / below if root.is_dir() else root

    def _kept(self, kept: SeenFile) -> Path:
        return self.place / str(kept[3]) / kept[0]

    def _keep(self, entry: Entry, look: int) -> bool:
        """Whether the file was still there to be kept."""
        original, target = self._original(entry.name), self.place / str(look) / entry.name
        make_folder(target.parent)
        target.unlink(missing_ok=True)
        try:
            if entry.size <= COPIED or not _linked(original, target):
                _copied(original, target)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise Unavailable(f'"{original}" cannot be kept: {error}', hint="Make room or restore access: it is tried again.") from error
        found = target.stat()
        return (found.st_size, found.st_mtime_ns) == (entry.size, entry.modified)  # else it is being written: the next look has it

    def _check(self, kept: SeenFile) -> None:
        found = facts(self.place / str(kept[3]), kept[0])
        if found is None:
            hint = "The file has changed or gone since. Compute everything anew: nosync pipelines run --full-refresh-all."
            raise Overwritten(f'what "{self._original(kept[0])}" had was lost with the storage', hint=hint)
        if (found.size, found.modified) != kept[1:3]:
            name = self._original(kept[0])
            hint = "Compute everything anew: nosync pipelines run --full-refresh-all. Replace files whole (write elsewhere, then rename)."
            raise Overwritten(f'"{name}" was written into in place: the rows that it had are gone', hint=hint)

    def _keep_again(self, kept: SeenFile) -> None:
        """What a lost home had of a file that is still there as it was."""
        if not self._kept(kept).exists():
            original = self._original(kept[0])
            now = facts(original.parent, original.name)
            if now is not None and (now.size, now.modified) == kept[1:3]:
                self._keep(Entry(*kept[:3]), kept[3])

    def _counted(self, added: list[list[Any]], gone: list[SeenFile]) -> Slice:
        """Rows by Parquet's own account, and whether all columns can be read without Spark."""
        if self.format != "parquet":
            return {}
        footers = [footer_of(self._kept((*entry,)), self.expected, lambda column: True) for entry in added]
        known = [footer for footer in footers if footer is not None and not footer.wrong]
        plain = len(known) == len(added) and all(footer.plain for footer in known) and not gone and not self.options.get("mergeSchema")
        return {"rows": sum(footer.rows for footer in known), "plain": plain}

    def read(self, spark: SparkSession, slice: Slice) -> DataFrame:
        parts = [(slice["added"], 1), (slice["removed"], -1)]
        frames = [self._rows(spark, entries, diff) for entries, diff in parts if entries]
        if not frames:
            return spark.createDataFrame([], self.schema).withColumn(DIFF, F.lit(1).cast("bigint"))
        return reduce(DataFrame.unionAll, frames)

    def _rows(self, spark: SparkSession, entries: list[list[Any]], diff: int) -> DataFrame:
        """Of each root of each look: folders named `column=value` mean something below that alone."""
        groups: dict[Path, list[str]] = {}
        for entry in entries:
            self._check((entry[0], entry[1], entry[2], entry[3]))
            groups.setdefault(self.place / str(entry[3]) / entry[0].partition("/")[0], []).append(str(self._kept((*entry,))))
        frames = [self._scan(spark, base, paths) for base, paths in sorted(groups.items())]
        return reduce(DataFrame.unionAll, frames).select("*", F.lit(diff).cast("bigint").alias(DIFF))

    def _scan(self, spark: SparkSession, base: Path, paths: list[str]) -> DataFrame:
        reader = spark.read.format(self.format).options(**self._settings).schema(self.schema).option("basePath", str(base))
        return reader.load([literal(path) for path in paths]).select(*(column_named(name) for name in self.schema.names))

    @cached_property
    def _settings(self) -> dict[str, str]:
        return {name: value for name, value in self.options.items() if name.lower() not in ("path", "paths", "basepath")}

    def rows(self, slice: Slice) -> int | None:
        return slice.get("rows") if not slice["removed"] else None

    def weight(self, slice: Slice) -> int:
        return sum(entry[1] for entry in (*slice["added"], *slice["removed"]))

    def direct(self, slice: Slice) -> list[str]:
        """The files, where all their rows come and Parquet has the very columns."""
        if not slice.get("plain") or slice["removed"]:
            return []
        for entry in slice["added"]:
            self._check((entry[0], entry[1], entry[2], entry[3]))
        return [str(self._kept((*entry,))) for entry in slice["added"]]


def _copied(original: Path, target: Path) -> None:
    with open(original, "rb") as file, open(target, "xb", opener=open_private) as copy:
        shutil.copyfileobj(file, copy)
        found = os.fstat(file.fileno())
    os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))


def _linked(original: Path, target: Path) -> bool:
    try:
        os.link(original, target)
    except FileNotFoundError:
        raise
    except OSError:  # another disk, or one without links
        return False
    return True
