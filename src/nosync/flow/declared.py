"""What becomes of a source when it is declared: its node in the graph, the DataFrame that stands for it, what it rejects."""

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from nosync.bridge.frames import declared_schema
from nosync.compile.compiler import Compiler
from nosync.compile.ledger import ledger
from nosync.flow.event_time import schema_in_time
from nosync.graph.nodes import SourceNode
from nosync.model.bound import BoundSource
from nosync.model.columns import REASON
from nosync.model.errors import Invalid
from nosync.model.quoting import quoted
from nosync.sources import rejection
from nosync.sources.change_log import ChangeLog

Watermark = tuple[str, str] | None


@dataclass(frozen=True)
class DeclaredSource:
    """`rejected`: the query of what does not fit, where there may be any."""

    bound: BoundSource
    frame: DataFrame
    rejected: DataFrame | None = None


def of_rows(
    compiler: Compiler, name: str, found: BoundSource, given: StructType, watermark: Watermark, stamp: str | None
) -> DeclaredSource:
    """A source whose rows count as they are."""
    schema, delay = schema_in_time(name, given, watermark, stamp)
    node = SourceNode(name, schema, found.append_only, time=watermark[0] if watermark else None, delay=delay, stamp=stamp)
    compiler.graph.sources[name] = node
    frame = compiler.placeholder(schema, node)
    return DeclaredSource(found, frame, _rejected(compiler, f"{name}.rejected") if found.rejecting is not None else None)


def _rejected(compiler: Compiler, name: str) -> DataFrame:
    schema = declared_schema(rejection.SCHEMA)
    node = SourceNode(name, schema, append_only=True)
    compiler.graph.sources[name] = node
    return compiler.placeholder(schema, node)


def of_changes(compiler: Compiler, spark: SparkSession, source: ChangeLog, watermark: Watermark, stamp: str | None) -> DeclaredSource:
    """A source of changes, with the ledger that says which of them count."""
    name = source.name
    if stamp is not None:
        hint = "Stamp a source that only adds rows, or pass checked=False."
        raise Invalid(f'source "{name}" carries changes: stamp="{stamp}" is not possible', hint)
    columns, delay = schema_in_time(name, source.columns, watermark, None)
    node = SourceNode(name, source.schema(spark), append_only=False, time=watermark[0] if watermark else None, delay=delay)
    rows = ledger(compiler, node, source.columns, source.key)
    compiler.graph.sources[name] = node
    kept = [rows[quoted(column.name)].alias(column.name, metadata=column.metadata) for column in columns.fields]
    frame = rows.where(f"{REASON} is null").select(*kept)
    return DeclaredSource(source.bound(), frame, rejection.refused(rows, source.columns.names))
