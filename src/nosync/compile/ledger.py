"""The ledger behind a source that carries changes: an operator that says which of them count.

What comes from the source: its columns, `_raw`, `_reason`, `_file` of rows that are no changes at all, the sequence if it has one, the
place in the input, and the diff. What goes on: columns, `_raw`, `_reason`, `_file`, `_epoch`; a reason marks a row that was refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import LongType, StringType, StructField, StructType

from nosync.bridge.arrow import arrow_schema, arrow_type
from nosync.bridge.catalyst import Catalyst, Java, data_type, items
from nosync.bridge.frames import analyzed, empty
from nosync.compile.compiler import Compiler
from nosync.compile.fingerprint import digest
from nosync.compile.refusal import check_key
from nosync.graph.nodes import SourceNode
from nosync.graph.operators import Operator
from nosync.graph.templates import Branch, Hole, Template
from nosync.model.columns import DIFF, EPOCH, HASH, POSITION, REJECTION, SEQUENCE
from nosync.model.picture import Description

REJECTED = [StructField(name, StringType()) for name in REJECTION]
POSITIONS = [StructField(name, LongType()) for name in POSITION]


@dataclass(eq=False, slots=True, kw_only=True)
class LedgerNode(Operator):
    """What is there, of one source. Without `keys` all columns are the key."""

    keys: pa.Schema
    columns: pa.Schema
    sequence: pa.Schema

    @property
    def stepwise(self) -> bool:
        return True

    @property
    def description(self) -> Description:
        if len(self.keys):
            why, kept = "what replaces or removes a row takes the old one out", "for ever, because any key may come again"
            return Description("the newest row by key", why, kept=kept)
        kept = "until it is removed, because only the source says when that is"
        return Description("how often each row occurs", "only what is there can be removed", kept=kept)


def incoming(columns: StructType, sequence: StructField | None) -> StructType:
    """What a source gives to its ledger, apart from the diff."""
    order = [StructField(SEQUENCE, sequence.dataType)] if sequence else []
    return StructType([*columns.fields, *REJECTED, *order, *POSITIONS])


def ledger(compiler: Compiler, source: SourceNode, columns: StructType, key: Sequence[str]) -> DataFrame:
    """Adds the source's ledger to the graph and returns a placeholder of what goes on."""
    catalyst, what = compiler.catalyst, f'source "{source.name}"'
    plan = catalyst.read(analyzed(empty(catalyst.spark, source.schema)))
    attributes = items(plan.output())
    diff = catalyst.attribute(DIFF, catalyst.types.LongType, nullable=False)
    keys = [_key(catalyst, attributes[columns.names.index(name)], what) for name in key]
    project = catalyst.feed(_feed(catalyst, attributes, len(columns), keys), [diff])
    feed = Template(Branch(project, [Hole(source, [*attributes, diff])]), [], [], append_only=False)
    feed.fingerprint = digest(f"ledger of {source.name} {source.schema.simpleString()} by {list(key)}")
    numbered = StructType([StructField(f"c{i}", column.dataType) for i, column in enumerate(columns.fields)])
    sequence = [(SEQUENCE, arrow_type(source.schema[SEQUENCE].dataType, what))] if SEQUENCE in source.schema.names else []
    schema = StructType([*numbered.fields, *REJECTED, StructField(EPOCH, LongType())])
    node = LedgerNode(
        name=f"{source.name}/ledger", feed=feed, schema=schema, view=source.name,
        keys=pa.schema([(f"k{i}", arrow_type(data_type(k), what)) for i, k in enumerate(keys)]),
        columns=arrow_schema(numbered, what), sequence=pa.schema(sequence),
    )  # fmt: skip
    compiler.graph.operators.append(node)
    named = [StructField(column.name, column.dataType) for column in columns.fields]
    return compiler.placeholder(StructType([*named, *schema.fields[len(named) :]]), node)


def _key(catalyst: Catalyst, attribute: Java, what: str) -> Java:
    check_key(data_type(attribute), str(attribute.name()), what)
    return catalyst.normalised(attribute)


def _feed(catalyst: Catalyst, attributes: list[Java], columns: int, keys: list[Java]) -> list[tuple[Java, str]]:
    """What goes to the shards. Rows that are no changes have no key: they are spread by what they are."""
    own, rest = attributes[:columns], attributes[columns:]
    raw, reason, file = rest[:3]
    spread_by = catalyst.expressions.If(catalyst.expressions.IsNull(reason), catalyst.hash(keys or own), catalyst.hash([raw, file]))
    named = [(key, f"k{i}") for i, key in enumerate(keys)] + [(attribute, f"c{i}") for i, attribute in enumerate(own)]
    return [*named, *((attribute, str(attribute.name())) for attribute in rest), (spread_by, HASH)]
