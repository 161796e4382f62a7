"""What `flow.source` is given about time, checked and put into the schema."""

from pyspark.sql.types import StructType, TimestampType

from nosync.compile.event_time import is_time, marked
from nosync.model.duration import microseconds
from nosync.model.errors import Invalid


def schema_in_time(
    source: str, schema: StructType, watermark: tuple[str, str] | None, stamp: str | None
) -> tuple[StructType, int | None]:
    """The schema with the stamp's column and the event time marked, and the delay in microseconds."""
    if stamp is not None:
        if stamp in schema.names or not stamp or stamp.startswith("_"):
            known = ", ".join(schema.names)
            raise Invalid(f'source "{source}": stamp="{stamp}" is no name for a further column', hint=f"There are: {known}.")
        schema = StructType([*schema.fields]).add(stamp, TimestampType())
    if watermark is None:
        return schema, None
    if not isinstance(watermark, tuple | list) or len(watermark) != 2:
        raise Invalid(f'source "{source}": watermark={watermark!r} is not understood', hint='Pass ("column", "10 seconds").')
    column, delay = watermark
    if not isinstance(column, str):
        raise Invalid(f'source "{source}": watermark=({column!r}, {delay!r}) names no column', hint='Pass ("column", "10 seconds").')
    if column not in schema.names or not is_time(schema[column].dataType):
        times = ", ".join(field.name for field in schema.fields if is_time(field.dataType))
        hint = f"Its timestamps are: {times}." if times else f'It has none at all: let its schema say "{column} timestamp".'
        raise Invalid(f'source "{source}" has no timestamp "{column}" for its watermark', hint=hint)
    return marked(schema, column), microseconds(delay, "a delay")
