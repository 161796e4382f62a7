"""The newest rows as files that anybody reads, replaced whole: whoever opens `FOLDER/current` sees the rows as of one epoch.

    FOLDER/version-<12 digits>/[COLUMN=VALUE/...]part-<12 digits>.<format>    as of the epoch of the folder; the file's is when it changed
    FOLDER/version-<12 digits>/.../_rows-<12 digits>.parquet                  the same rows with their types, where the format has not
    FOLDER/current -> version-<12 digits>                                     the newest, replaced by renaming

Partitions that an epoch does not touch are linked, not copied. The version before stays for those who are reading it.
"""

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from nosync.model.columns import DIFF
from nosync.model.errors import Corrupt
from nosync.model.identifiers import Epoch
from nosync.sinks.formats import WRITERS, rows_in
from nosync.sinks.rows import consolidated, partitions
from nosync.store.lasting import point, sync, sync_tree

CURRENT = "current"
KEPT = 2  # versions
VERSION = re.compile("version-[0-9]{12}")


class Current:
    """The rows below one folder."""

    def __init__(self, folder: Path, format: str, columns: Sequence[str]) -> None:
        self.folder, self.format, self.columns = folder, format, columns

    def advance(self, epoch: Epoch, changes: pa.Table) -> None:
        """Puts the changes of an epoch on top; one that is there already changes nothing."""
        before = self._newest()
        if before is not None and _epoch_of(before) >= epoch:
            return
        target = self.folder / f"version-{epoch:012d}"
        shutil.rmtree(target, ignore_errors=True)  # begun by a run that was killed
        target.mkdir()
        touched = dict(partitions(changes, self.columns))
        for name in self._parts(before):
            if name not in touched:
                _link(before / name if before else target, target / name)
        for name, part in touched.items():
            self._write(before, target, name, epoch, part)
        sync_tree(target, files=False)
        point(self.folder / CURRENT, target.name)
        for old in sorted(self.folder.glob("version-*"))[:-KEPT]:
            shutil.rmtree(old, ignore_errors=True)

    def _newest(self) -> Path | None:
        link = self.folder / CURRENT
        if not link.is_symlink():
            return None
        name = os.readlink(link)
        if not VERSION.fullmatch(name) or not (self.folder / name).is_dir():
            raise Corrupt(f'"{link}" leads to "{name}", which is no version', hint="Let it lead to the newest version beside it.")
        return self.folder / name

    def _parts(self, version: Path | None) -> Iterator[str]:
        """The partitions that there are."""
        if version is None:
            return
        for place, _, files in os.walk(version):
            if any(file.startswith("part-") for file in files):
                yield "" if Path(place) == version else str(Path(place).relative_to(version))

    def _write(self, before: Path | None, target: Path, name: str, epoch: Epoch, changes: pa.Table) -> None:
        kept = "_rows-" if self.format != "parquet" else "part-"
        old = next((before / name).glob(f"{kept}*.parquet"), None) if before is not None else None
        schema = changes.schema.remove(changes.schema.get_field_index(DIFF))
        rows = consolidated(rows_in(old).cast(schema) if old else schema.empty_table(), changes)
        if not rows.num_rows and name:
            return
        (target / name).mkdir(parents=True, exist_ok=True)
        for prefix, format in {"part-": self.format, kept: "parquet"}.items():
            path = target / name / f"{prefix}{epoch:012d}.{format}"
            WRITERS[format](path, schema, rows.to_batches())
            sync(path)


def _epoch_of(version: Path) -> Epoch:
    return Epoch(version.name.removeprefix("version-"))


def _link(source: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for file in source.iterdir():
        if file.is_file():
            os.link(file, target / file.name)
