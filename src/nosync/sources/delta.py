"""A Delta table as a source, by its log: files that are added and removed, or the table's own feed of changes where a version has one."""

import json
from pathlib import Path
from urllib.parse import unquote

from pyspark.sql.types import StructType

from nosync.clients.delta import Action, Lake, address_of, deltalake
from nosync.model.absent import connector
from nosync.model.arguments import checked
from nosync.model.errors import Failed, Invalid, Unavailable
from nosync.sources.lake import MAX_BYTES, LakeSource
from nosync.sources.lake_task import DeltaOpener, File

UNKNOWN = ("columnMapping", "variantType", "typeWidening")  # features that say how files are read, in a way that is not done here


@checked(startingVersion="Leave it out: a flow begins with the rows of now.", readChangeFeed="Leave it out: it is read where there is one.")
def delta(uri: str | Path, appendOnly: bool | None = None, maxBytesPerTrigger: int = MAX_BYTES) -> "DeltaSource":  # noqa: N803
    """The rows of a Delta table: those of now first, then what each later version adds and removes.

    Rows may go as well as come, unless the table's property `delta.appendOnly`, or `appendOnly=True`, says that they only come; queries
    that never take back what they gave need that. Versions that only move rows (`optimize`) are passed over. An epoch has whole versions,
    of at most about `maxBytesPerTrigger`, but always one. What `vacuum` takes before it was read ends the run. Needs the extra:
    pip install 'nosync[delta]'.

    >>> ns.delta("s3://lake/orders")
    ns.delta("s3://lake/orders")
    """
    address = address_of(uri)
    what = f'Delta table "{address}"'
    deltalake(what)
    return DeltaSource(f'ns.delta("{address}")', what, maxBytesPerTrigger, bool(appendOnly), Lake(address, what), appendOnly is not None)


@connector("source", "delta")
class DeltaSource(LakeSource):
    """See `delta`."""

    def __init__(self, said: str, what: str, max_bytes: int, appends: bool, lake: Lake, decided: bool) -> None:
        super().__init__(said, what, max_bytes, appends)
        self.lake, self.decided = lake, decided

    def would_read(self, address: str) -> bool:
        return address == self.lake.address

    def _schema(self) -> StructType:
        if self.lake.table is None and not self.lake.load():
            raise Invalid(f'source "{self.name}": there is no {self.what}', hint="Correct the address, or write the table first.")
        if not self.decided:
            said = dict(self.lake.table.metadata().configuration).get("delta.appendOnly", "")
            self.appends, self.decided = said == "true", True
        features = self.lake.table.protocol().reader_features or ()
        if odd := [feature for feature in features if feature in UNKNOWN]:
            raise Invalid(f'source "{self.name}": {self.what} uses {odd[0]}, which is not read here', hint="Write it without that feature.")
        return StructType.fromJson(json.loads(self.lake.table.schema().to_json()))

    def _refresh(self) -> int:
        self.lake.load()
        return self.lake.version

    def _snapshot(self, version: int) -> list[File]:
        try:
            table = self.lake.at(version) if version != self.lake.version else self.lake.table
        except Unavailable:
            if not self.lake.log(version):
                raise self.gone(version) from None
            raise
        if pa_rows(table.deletion_vectors()):
            raise self._vectors(version)
        parts = list(table.metadata().partition_columns)
        found = table.get_add_actions(flatten=True)
        columns = {name: found.column(name).to_pylist() for name in found.column_names}
        entries = [
            File(unquote(path), version, 1, int(size), {part: _said(columns[f"partition.{part}"][row]) for part in parts})
            for row, (path, size) in enumerate(zip(columns["path"], columns["size_bytes"]))
        ]
        return sorted(entries)

    def _changes(self, version: int) -> tuple[int, list[File]] | None:
        if version >= self.lake.version:
            return None
        actions = self.lake.log(version + 1)
        if not actions:
            raise self.gone(version)
        feed = [action["cdc"] for action in actions if "cdc" in action]
        if feed:
            return version + 1, [self._file(action, version + 1, 0) for action in feed]
        return version + 1, [
            self._file(action[kind], version + 1, diff)
            for kind, diff in (("remove", -1), ("add", 1))
            for action in actions
            if kind in action and action[kind].get("dataChange", True)
        ]

    def _file(self, action: Action, version: int, diff: int) -> File:
        if action.get("deletionVector"):
            raise self._vectors(version)
        values = action.get("partitionValues")
        if values is None and self.lake.table.metadata().partition_columns:
            words = f'source "{self.name}": version {version} of {self.what} removes files without saying of which partition'
            raise Failed(words, hint="Its writer leaves that out: begin on a new home, or let another write it.")
        return File(unquote(action["path"]), version, diff, int(action.get("size") or 0), values or {})

    def _vectors(self, version: int) -> Failed:
        words = f'source "{self.name}": version {version} of {self.what} has deletion vectors, which are not read here'
        hint = "Set delta.enableDeletionVectors to false and purge them, or enable the table's change data feed before rows are deleted."
        return Failed(words, hint=hint)

    def _opener(self) -> DeltaOpener:
        return DeltaOpener(self.lake.address, self.what, {} if self.lake.local is not None else dict(self.lake.environment))


def pa_rows(reader: object) -> bool:
    """Whether a reader has rows."""
    return any(len(batch) for batch in reader)  # type: ignore[attr-defined]


def _said(value: object) -> str | None:
    """A value of a partition, as the log says it."""
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


