"""Which columns a table of a lake can have: the types that Delta and Iceberg know, and names that all their readers take. Pure."""

from collections.abc import Sequence

import pyarrow as pa

from nosync.model.columns import DIFF, EPOCH
from nosync.model.errors import Invalid, Refused

ODD = set(" ,;{}()\n\t=")


def table_schema(
    sink: str, schema: pa.Schema, with_changes: bool, key: Sequence[str], partition_by: Sequence[str], odd_names: bool
) -> pa.Schema:
    """The columns of the table of a query. `Refused` where one has no place there, `Invalid` where key or partition name none."""
    for column in schema:
        if (odd := _unknown(column.type)) is not None:
            words = f'sink "{sink}": column "{column.name}" has no place in the table: there is no {odd}'
            raise Refused(words, hint=f'Cast it in the query, for example: CAST(`{column.name}` AS STRING).')
        if not odd_names and (ODD & set(column.name) or not column.name):
            words = f'sink "{sink}": the column "{column.name}" has a name that readers of such tables refuse'
            raise Refused(words, hint="Give it a name without spaces and without any of ,;{}()= : SELECT ... AS name.")
    names = list(schema.names)
    for said, columns in (("key", key), ("partitionBy", partition_by)):
        missing = next((column for column in columns if column not in names), None)
        if missing is not None:
            raise Invalid(f'sink "{sink}": {said}="{missing}" is no column of the query', hint=f"There are: {', '.join(names)}.")
    if partition_by and len(set(partition_by)) >= len(names):
        raise Invalid(f'sink "{sink}": partitionBy= names all columns', hint="Leave one to be written into the files.")
    for column in partition_by:
        kind = schema.field(column).type
        if pa.types.is_nested(kind) or pa.types.is_floating(kind) or pa.types.is_binary(kind):
            raise Invalid(f'sink "{sink}": partitionBy="{column}" is of type {kind}', hint="Use texts, whole numbers, days or the like.")
    behind = [pa.field(EPOCH, pa.int64()), pa.field(DIFF, pa.int64())] if with_changes else []
    return pa.schema([pa.field(column.name, _plain(column.type)) for column in schema] + behind)


def _unknown(kind: pa.DataType) -> str | None:
    """The type that such tables lack, in this one or within."""
    if pa.types.is_map(kind):
        return _unknown(kind.key_type) or _unknown(kind.item_type)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _unknown(kind.value_type)
    if pa.types.is_struct(kind):
        return next((odd for field in kind if (odd := _unknown(field.type))), None)
    if pa.types.is_duration(kind) or pa.types.is_interval(kind):
        return "interval"
    if pa.types.is_time(kind):
        return "time of day"
    return "type of nothing but null" if pa.types.is_null(kind) else None


def _plain(kind: pa.DataType) -> pa.DataType:
    """Nullable throughout, with the names of parts that Parquet has."""
    if pa.types.is_map(kind):
        return pa.map_(_plain(kind.key_type), _plain(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(pa.field("element", _plain(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _plain(field.type)) for field in kind])
    if pa.types.is_large_string(kind):
        return pa.string()
    return pa.binary() if pa.types.is_large_binary(kind) else kind
