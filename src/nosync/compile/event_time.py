"""Event time in a query's plan: which groups close, and which rows come too late for them.

A source's event time is a mark in the metadata of its column (Spark's own, in a query over one of its streams). Spark passes metadata on,
through projections, joins, `window`, `session_window` and `window_time`, so a grouping key that bears the mark says: this group closes. Its
rows are held against the watermark where they enter the aggregate, not at the source; a row is late when the window it belongs to has ended
by then.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.types import DataType, StructField, StructType, TimestampNTZType, TimestampType

from nosync.bridge.catalyst import Catalyst, Java, data_type, kind
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
TIMED = frozenset((MARK, SPARKS_MARK))
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

    `marked`: it comes from a watermarked source; only sessions are emitted without. `own_gaps`: each row says how long its window is, so
    that only where it begins says which sessions it may still reach.
    """

    attribute: Java
    index: int
    session: bool
    marked: bool = True
    own_gaps: bool = False

    @property
    def words(self) -> str:
        return words_of(self.attribute)

    def end(self, catalyst: Catalyst) -> Java:
        """When it closes, in microseconds."""
        return micros(catalyst, self.attribute, 1)

    def latest(self, catalyst: Catalyst) -> Java:
        """What the watermark must not have passed when a row comes, in microseconds."""
        return micros(catalyst, self.attribute, 0 if self.own_gaps else 1)


def words_of(time: Java) -> str:
    """What people call a time, or the end of a window. One that was never given a name has an expression in its place."""
    name = str(time.name())
    return f"{name if name.isidentifier() else 'window'}.end" if isinstance(data_type(time), StructType) else name


def micros(catalyst: Catalyst, time: Java, field: int) -> Java:
    """A time in microseconds, or the start (0) or end (1) of a window."""
    if isinstance(data_type(time), StructType):
        time = catalyst.expressions.GetStructField(time, field, catalyst.option(("start", "end")[field]))
    return catalyst.expressions.PreciseTimestampConversion(time, time.dataType(), catalyst.types.LongType)


def time_key(keys: Sequence[Java]) -> TimeKey | None:
    """The event time among grouping keys: a window if there is one, else a bare time."""
    found = []
    for place, key in enumerate(keys):
        if kind(key) != "AttributeReference":
            continue
        marks = marks_of(key)
        session, window = SESSION in marks, WINDOW in marks
        if session or (TIMED & marks and (window or is_time(data_type(key)))):
            found.append((not session, not window, TimeKey(key, place, session, bool(TIMED & marks))))
    return min(found, key=lambda one: one[:2])[2] if found else None


def marks_of(attribute: Java) -> frozenset[str]:
    """What Spark, or we, have noted of a column."""
    said = str(attribute.metadata().json())
    return frozenset(mark for mark in (MARK, SPARKS_MARK, SESSION, WINDOW) if f'"{mark}":' in said)


def clock_over(*templates: Template) -> EventClock:
    """The event time of what feeds templates: of all watermarked sources above, as many epochs behind as windows close on the way."""
    nodes = [node for template in templates for node in read_by(template.piece)]
    sources = [node for node in upstream(nodes) if isinstance(node, SourceNode)]
    delays = {source.name: source.delay for source in sources if source.delay is not None}
    return EventClock(tuple(sorted(delays.items())), longest_way(nodes, lambda node: isinstance(node, Operator) and node.time_driven))


def on_time(query: "Query", key: TimeKey, child: Template) -> Template:
    """What enters the operator: the child's rows without the late ones. Those are noted, in case somebody asks for them."""
    clock, latest = clock_over(child), key.latest(query.catalyst)
    query.late.append(late_rows(query.catalyst, child, latest, clock))
    return without_late(query.catalyst, child, latest, clock, " by its start" if key.own_gaps else "")


def without_late(catalyst: Catalyst, child: Template, end: Java, clock: EventClock, said: str = "") -> Template:
    """The child's rows that are not late; `said` is what that depends on besides the clock."""
    everything = catalyst.logical.Filter(catalyst.expressions.Literal.TrueLiteral(), catalyst.nowhere)
    marks = (digest(f"{mark} on time by {clock}{said}") for mark in (child.fingerprint, child.rows))
    return Template(OnTime(everything, [child.piece], end, clock), child.output, child.carried, child.append_only, *marks)


def late_rows(catalyst: Catalyst, child: Template, end: Java, clock: EventClock) -> Template:
    """The child's rows that come too late, and the epoch in which they came."""
    epoch = catalyst.attribute("epoch", catalyst.types.LongType)
    output = [*child.output, epoch]
    nothing = catalyst.project([*child.output, *child.carried], catalyst.nowhere)
    piece = TooLate(nothing, [child.piece], end, clock, output, child.carried)
    return Template(piece, output, child.carried, child.append_only, digest(f"{child.fingerprint} late by {clock}"))
