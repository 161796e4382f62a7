"""An Iceberg table as a source, by its snapshots: the files that each adds and removes."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)  # fmt: skip

from nosync.clients.iceberg import IcebergTable, pyiceberg, talking
from nosync.model.absent import connector
from nosync.model.arguments import checked
from nosync.model.errors import Failed, Invalid
from nosync.sources.lake import MAX_BYTES, LakeSource
from nosync.sources.lake_task import File, IcebergOpener

PLAIN: dict[str, DataType] = {
    "boolean": BooleanType(), "int": IntegerType(), "long": LongType(), "float": FloatType(), "double": DoubleType(), "date": DateType(),
    "timestamp": TimestampNTZType(), "timestamptz": TimestampType(), "string": StringType(), "binary": BinaryType(),
}  # fmt: skip


@checked(startSnapshotId="Leave it out: a flow begins with the rows of now.")
def iceberg(
    catalog: str | dict[str, str], table: str, appendOnly: bool = False, maxBytesPerTrigger: int = MAX_BYTES,  # noqa: N803 (Spark's names)
) -> "IcebergSource":  # fmt: skip
    """The rows of an Iceberg table: those of now first, then what each later snapshot adds and removes.

    `catalog` is the name of a catalog that pyiceberg is set up for, or its properties (`name` among them, unless it is called "default").
    Rows may go as well as come, unless `appendOnly=True` says that they only come. Snapshots that only move rows are passed over. An epoch
    has whole snapshots, of at most about `maxBytesPerTrigger`, but always one. A snapshot that expires before it was read ends the run.
    Needs the extra: pip install 'nosync[iceberg]'.

    >>> ns.iceberg({"type": "rest", "uri": "http://catalog:8181"}, "shop.orders")
    ns.iceberg("shop.orders")
    """
    what = f'Iceberg table "{table}"'
    pyiceberg("catalog", what)
    return IcebergSource(f'ns.iceberg("{table}")', what, maxBytesPerTrigger, appendOnly, IcebergTable(catalog, table, what))


@connector("source", "iceberg")
class IcebergSource(LakeSource):
    """See `iceberg`. A version is the id of a snapshot; 0 for a table that has none yet."""

    def __init__(self, said: str, what: str, max_bytes: int, appends: bool, lake: IcebergTable) -> None:
        super().__init__(said, what, max_bytes, appends)
        self.lake = lake

    def would_read(self, address: str) -> bool:
        return address == self.lake.address

    def _schema(self) -> StructType:
        if self.lake.table is None and not self.lake.load():
            raise Invalid(f'source "{self.name}": there is no {self.what}', hint="Correct the name, or write the table first.")
        return StructType([StructField(f.name, self._type(f.field_type, f.name)) for f in self.lake.table.schema().fields])

    def _type(self, kind: Any, column: str) -> DataType:
        text = str(kind)
        if text in PLAIN:
            return PLAIN[text]
        if text.startswith("decimal"):
            return DecimalType(kind.precision, kind.scale)
        if text.startswith("list<"):
            return ArrayType(self._type(kind.element_type, column))
        if text.startswith("map<"):
            return MapType(self._type(kind.key_type, column), self._type(kind.value_type, column))
        if text.startswith("struct<"):
            return StructType([StructField(part.name, self._type(part.field_type, column)) for part in kind.fields])
        if text == "uuid" or text.startswith("fixed"):
            return BinaryType()
        raise Invalid(f'source "{self.name}": column "{column}" of {self.what} is of type {text}', hint="Spark has no such type.")

    def _fields(self) -> dict[str, int]:
        return {field.name: field.field_id for field in self.lake.table.schema().fields}

    def _refresh(self) -> int:
        self.lake.load()
        found = self.lake.table.current_snapshot()
        return found.snapshot_id if found is not None else 0

    def _snapshot(self, version: int) -> list[File]:
        if not version:
            return []
        with talking(self.what):
            if self.lake.table.metadata.snapshot_by_id(version) is None:
                raise self.gone(version)
            tasks = list(self.lake.table.scan(snapshot_id=version).plan_files())
        if any(task.delete_files for task in tasks):
            raise self._deletes(version)
        return sorted(File(task.file.file_path, version, 1, task.file.file_size_in_bytes, {}) for task in tasks)

    def _changes(self, version: int) -> tuple[int, list[File]] | None:
        """Of the snapshot whose parent the version is."""
        following: Any = None
        for snapshot in self.lake.history():
            if snapshot.snapshot_id == version:
                break
            following = snapshot
        else:
            if version or (following is not None and following.parent_snapshot_id is not None):
                raise self.gone(version)
        if following is None:
            return None
        if following.summary is not None and following.summary.operation.value == "replace":
            return following.snapshot_id, []
        with talking(self.what):
            return following.snapshot_id, sorted(self._entries(following), key=lambda file: (file.diff, file.path))

    def _entries(self, snapshot: Any) -> list[File]:
        manifest, io = pyiceberg("manifest", self.what), self.lake.table.io
        status, found = manifest.ManifestEntryStatus, list[File]()
        for one in snapshot.manifests(io):
            if one.added_snapshot_id != snapshot.snapshot_id:
                continue
            for entry in one.fetch_manifest_entry(io, discard_deleted=False):
                if entry.status == status.EXISTING or entry.snapshot_id not in (None, snapshot.snapshot_id):
                    continue
                if entry.data_file.content != manifest.DataFileContent.DATA:
                    raise self._deletes(snapshot.snapshot_id)
                diff = -1 if entry.status == status.DELETED else 1
                file = entry.data_file
                found.append(File(file.file_path, snapshot.snapshot_id, diff, file.file_size_in_bytes, {}))
        return found

    def _deletes(self, version: int) -> Failed:
        words = f'source "{self.name}": snapshot {version} of {self.what} has files of deletions, which are not read here'
        hint = "Let its writers copy on write (write.delete.mode, write.update.mode, write.merge.mode), and rewrite it once."
        return Failed(words, hint=hint)

    def _opener(self) -> IcebergOpener:
        properties: Mapping[str, str] = {name: value for name, value in self.lake.table.io.properties.items() if isinstance(value, str)}
        return IcebergOpener(properties, self.lake.table.location())
