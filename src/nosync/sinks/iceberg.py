"""An Iceberg table as the target of a sink (see `lake`).

Each snapshot of ours says in its summary, and in the same commit in the table's properties, what it is:

    nosync.flow, nosync.sink, nosync.history    whose the table is
    nosync.generation                           the run that writes now
    nosync.epoch                                the newest epoch
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from nosync.clients.iceberg import IcebergTable, pyiceberg, talking
from nosync.model.arguments import checked
from nosync.model.errors import Failed, Invalid, Unavailable
from nosync.model.identifiers import NO_EPOCH, Epoch
from nosync.model.sink import Identity
from nosync.sinks.lake import FILE_BYTES, FOLD_AFTER, LakeSink, TableMode, checked_mode, checked_pace, names
from nosync.sinks.replacing import row_ids
from nosync.sinks.row_id_cache import RowIdCache


@checked(partition_by="Pass partitionBy=.", outputMode='Pass mode="state", "changes" or "append".', uri="Pass catalog= and table=.")
def to_iceberg(
    catalog: str | dict[str, str], table: str, key: str | Sequence[str] | None = None, mode: TableMode = "state",
    partitionBy: str | Sequence[str] = (), file_bytes: int = FILE_BYTES, fold_after: int = FOLD_AFTER,  # noqa: N803
    fold_every: str | None = None,
) -> LakeSink:  # fmt: skip
    """Keeps an Iceberg table equal to the query's result, precisely: an epoch is one snapshot of the table.

    `catalog` is the name of a catalog that pyiceberg is set up for, or its properties (`name` among them,
    unless it is called "default"); `table` is "namespace.name". The rest is as for
    `ns.to_delta`. The table is made by the sink, and is its own; everybody may read it, fold its files and expire snapshots. Needs the
    extra: pip install 'nosync[iceberg]'.

    >>> ns.to_iceberg({"type": "rest", "uri": "http://catalog:8181"}, "shop.spend", key="user").promise.guarantee
    'precise'
    """
    if not table.rpartition(".")[0] or not table.rpartition(".")[2]:
        raise Invalid(f'ns.to_iceberg: "{table}" is no name of a table', hint='Pass "namespace.name".')
    target = IcebergTarget(catalog, table)
    pyiceberg("catalog", target.what)
    how, sizes = checked_mode("to_iceberg", mode, key), (file_bytes, fold_after, checked_pace("to_iceberg", fold_every))
    return LakeSink(f'ns.to_iceberg("{table}", mode="{mode}")', target, names(key), how, names(partitionBy), *sizes)


class IcebergTarget:
    """One table, as `lake.Table` has it."""

    odd_names = True

    def __init__(self, catalog: str | Mapping[str, str], name: str) -> None:
        self.what = f'Iceberg table "{name}"'
        self.lake = IcebergTable(catalog, name, self.what)
        self.addresses: Sequence[str] = (self.lake.address,)
        self.schema = pa.schema([])
        self.file_bytes = FILE_BYTES
        self._files: dict[str, Any] = {}
        self._row_ids = RowIdCache()

    def stored(self, schema: pa.Schema) -> pa.Schema:
        """There are no whole numbers of one or two bytes."""
        return pa.schema([pa.field(column.name, _wide(column.type)) for column in schema])

    def load(self) -> bool:
        return self.lake.load()

    def create(self, schema: pa.Schema, partition_by: Sequence[str], properties: dict[str, str]) -> None:
        self.lake.create(schema, partition_by, properties)

    def begin(self, schema: pa.Schema, partition_by: Sequence[str], file_bytes: int) -> None:
        wanted = pyiceberg("schema", self.what).assign_fresh_schema_ids(
            pyiceberg("io.pyarrow", self.what)._pyarrow_to_schema_without_ids(schema)
        )
        found = self.lake.table.schema()
        spec = [found.find_column_name(field.source_id) for field in self.lake.table.spec().fields]
        if wanted.as_struct() != found.as_struct() or spec != list(partition_by):
            words = f"{self.what} has other columns than the query's result"
            raise Failed(words, hint="Write to another table: what is there was made of another query, or partitioned otherwise.")
        self.schema, self.file_bytes = schema, file_bytes

    def properties(self) -> Mapping[str, str]:
        return dict(self.lake.table.properties)

    def epoch(self, owner: Identity) -> Epoch:
        return Epoch(self.properties().get("nosync.epoch", 0))

    def generation(self, owner: Identity) -> int:
        return int(self.properties().get("nosync.generation", 0))

    def check_foreign(self, owner: Identity) -> None:
        """Walks back from the newest snapshot to the last of ours, which must have the newest epoch."""
        for snapshot in self.lake.history():
            said = snapshot.summary.additional_properties if snapshot.summary else {}
            if said.get("nosync.history") == owner.history:
                if int(said.get("nosync.epoch", 0)) != self.epoch(owner):
                    words = f"{self.what}: somebody has put it back to epoch {said.get('nosync.epoch', 0)} from {self.epoch(owner)}"
                    raise Failed(words, hint="Make the newest snapshot the current one again, or write to another table.")
                return
            if snapshot.summary is None or snapshot.summary.operation.value != "replace":
                how = snapshot.summary.operation.value if snapshot.summary else "a change"
                hint = "Make the snapshot before it the current one again, or write to another table."
                raise Failed(f"{self.what}: snapshot {snapshot.snapshot_id} changed its rows, and is none of ours: {how}", hint=hint)

    def live(self) -> Mapping[str, int]:
        with talking(self.what):
            self._files = {task.file.file_path: task.file for task in self.lake.table.scan().plan_files()}
        return {path: int(file.record_count) for path, file in self._files.items()}

    def _read(self, path: str, columns: Sequence[str] | None = None) -> pa.Table:
        wanted = self.schema if columns is None else pa.schema([self.schema.field(name) for name in columns])
        with talking(self.what), self.lake.table.io.new_input(path).open() as opened:
            found = pq.ParquetFile(opened, coerce_int96_timestamp_unit="us").read(wanted.names).select(wanted.names)
        return found.cast(wanted).replace_schema_metadata()

    def ranges(self, path: str) -> Mapping[str, tuple[Any, Any]]:
        file, columns = self._files[path], {field.field_id: field for field in self.lake.table.schema().fields}
        read = pyiceberg("conversions", self.what).from_bytes
        plain = {number: column for number, column in columns.items() if str(column.field_type) in ("int", "long")}
        return {
            column.name: (read(column.field_type, file.lower_bounds[number]), read(column.field_type, file.upper_bounds[number]))
            for number, column in plain.items()
            if number in file.lower_bounds and number in file.upper_bounds
        }

    def row_ids(self, path: str, columns: Sequence[str]) -> pa.Array:
        return self._row_ids.get(path, lambda: row_ids(self._read(path, columns), columns))

    def rows(self, path: str) -> pa.Table:
        return self._read(path)

    def write(self, epoch: Epoch, rows: pa.Table) -> list[Any]:
        io = pyiceberg("io.pyarrow", self.what)
        if not rows.num_rows:
            return []
        with talking(self.what):
            return list(io._dataframe_to_data_files(self._sized(), rows, self.lake.table.io))

    def _sized(self) -> Any:
        """The table's metadata, with our size of files."""
        found = self.lake.table.metadata
        return found.model_copy(update={"properties": {**found.properties, "write.target-file-size-bytes": str(self.file_bytes)}})

    def commit(self, removed: Sequence[str], new: Sequence[Any], owner: Identity, run: str, epoch: Epoch | None) -> bool:
        said = self._said(owner, run, self.epoch(owner) if epoch is None else epoch)
        return self.lake.commit([self._files[path] for path in removed], new, said)

    def fold(self, owner: Identity, run: str, after: int) -> None:
        """Whoever is faster goes first."""
        self.live()
        small: dict[Any, list[str]] = {}
        for path, file in self._files.items():
            if file.file_size_in_bytes < self.file_bytes // 2:
                small.setdefault(repr(file.partition), []).append(path)
        paths = [path for found in small.values() if len(found) >= after for path in found]
        if not paths:
            return
        with suppress(Unavailable):
            new = self.write(NO_EPOCH, pa.concat_tables([self.rows(path) for path in paths]))
            removed = [self._files[path] for path in paths]
            self.lake.commit(removed, new, self._said(owner, run, self.epoch(owner)), moves_only=True)

    def _said(self, owner: Identity, run: str, epoch: Epoch) -> dict[str, str]:
        said = {"flow": owner.flow, "sink": owner.sink, "history": owner.history, "generation": run.partition(".")[0], "epoch": str(epoch)}
        return {f"nosync.{name}": value for name, value in said.items()}


def _wide(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_int8(kind) or pa.types.is_int16(kind):
        return pa.int32()
    if pa.types.is_map(kind):
        return pa.map_(_wide(kind.key_type), _wide(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _wide(kind.value_type)))
    return pa.struct([pa.field(field.name, _wide(field.type)) for field in kind]) if pa.types.is_struct(kind) else kind

