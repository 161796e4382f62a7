"""Event time in a query's plan: which groups close, and which rows come too late for them.

A source's event time is a mark in the metadata of its column (Spark's own, in a query over one of its streams). Spark passes metadata on,
through projections, joins, `window`, `session_window` and `window_time`, so a grouping key that bears the mark says: this group closes. Its
rows are held against the watermark where they enter the aggregate, not at the source; a row is late when the window it belongs to has ended
by then.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.types import DataType, StructField, StructType, TimestampNTZType, TimestampType

from nosync.bridge.catalyst import Catalyst, Java, data_type, items, kind
from nosync.compile.fingerprint import digest
from nosync.graph.lateness import OnTime, TooLate
from nosync.graph.nodes import SourceNode
from nosync.graph.operators import Operator
from nosync.graph.templates import Template
from nosync.graph.walk import longest_way, read_by, upstream
from nosync.model.watermark import EventClock

if TYPE_CHECKING:
    from nosync.compile.query import Query

MARK = "nosync.eventTime"
SPARKS_MARK = "spark.watermarkDelayMs"  # in queries that were written over a stream of Spark's
WINDOW, SESSION = "spark.timeWindow", "spark.sessionWindow"


def marked(schema: StructType, column: str) -> StructType:
    """The schema with the event time's column marked."""
    fields = [
        StructField(f.name, f.dataType, f.nullable, {**f.metadata, MARK: True} if f.name == column else f.metadata) for f in schema.fields
    ]
    return StructType(fields)


def is_time(type: DataType) -> bool:
    return isinstance(type, TimestampType | TimestampNTZType)


@dataclass(frozen=True, slots=True)
class TimeKey:
    """The grouping key that closes. `session`: it is the window of a row, to be merged with others into a session.

    `marked`: it comes from a watermarked source; only sessions are emitted without.
    """

    attribute: Java
    index: int
    session: bool
    marked: bool = True

    @property
    def words(self) -> str:
        """What people call the time at which it closes."""
        return f"{self.attribute.name()}.end" if isinstance(data_type(self.attribute), StructType) else str(self.attribute.name())

    def end(self, catalyst: Catalyst) -> Java:
        """When it closes, in microseconds."""
        time, type = self.attribute, data_type(self.attribute)
        if isinstance(type, StructType):
            time = catalyst.expressions.GetStructField(time, 1, catalyst.option("end"))
        return catalyst.expressions.PreciseTimestampConversion(time, time.dataType(), catalyst.types.LongType)


def time_key(plan: Java) -> TimeKey | None:
    """The event time among the grouping keys of an aggregate: a window if there is one, else a bare time."""
    found = []
    for place, key in enumerate(items(plan.groupingExpressions())):
        if kind(key) != "AttributeReference":
            continue
        said = str(key.metadata().json())
        ours, sparks, session, window = (f'"{mark}":' in said for mark in (MARK, SPARKS_MARK, SESSION, WINDOW))
        marked = ours or sparks
        if session or (marked and (window or is_time(data_type(key)))):
            found.append((not session, not window, TimeKey(key, place, session, marked)))
    return min(found, key=lambda one: one[:2])[2] if found else None


def clock_over(template: Template) -> EventClock:
    """The event time of what feeds a template: of all watermarked sources above, as many epochs behind as windows close on the way."""
    nodes = read_by(template.piece)
    sources = [node for node in upstream(nodes) if isinstance(node, SourceNode)]
    delays = {source.name: source.delay for source in sources if source.delay is not None}
    return EventClock(tuple(sorted(delays.items())), longest_way(nodes, lambda node: isinstance(node, Operator) and node.time_driven))


def on_time(query: "Query", key: TimeKey, child: Template) -> Template:
    """What enters the aggregate: the child's rows without the late ones. Those are noted, in case somebody asks for them."""
    clock, end = clock_over(child), key.end(query.catalyst)
    query.late.append(late_rows(query.catalyst, child, end, clock))
    everything = query.catalyst.logical.Filter(query.catalyst.expressions.Literal.TrueLiteral(), query.catalyst.nowhere)
    marks = (digest(f"{mark} on time by {clock}") for mark in (child.fingerprint, child.rows))
    return Template(OnTime(everything, [child.piece], end, clock), child.output, child.carried, child.append_only, *marks)


def late_rows(catalyst: Catalyst, child: Template, end: Java, clock: EventClock) -> Template:
    """The child's rows that come too late, and the epoch in which they came."""
    epoch = catalyst.attribute("epoch", catalyst.types.LongType)
    output = [*child.output, epoch]
    nothing = catalyst.project([*child.output, *child.carried], catalyst.nowhere)
    piece = TooLate(nothing, [child.piece], end, clock, output, child.carried)
    return Template(piece, output, child.carried, child.append_only, digest(f"{child.fingerprint} late by {clock}"))
