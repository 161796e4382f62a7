"""`session_window`: a key's rows are kept, and Spark merges them into sessions anew whenever the key is touched.

A row opens a window of its own; windows of one key that touch become one. A row is late when its own window has ended. One that is not may
still reach a session that ended within a gap before the watermark, so a session is closed one gap after its end: then no row to come can be
part of it. Where each row has a gap of its own nobody could say that of any session; there a row is late when its window began behind the
watermark, and a session is closed at its end.
"""

from typing import TYPE_CHECKING

from nosync.bridge.catalyst import Catalyst, Java, children, items, kind
from nosync.compile.event_time import SESSION, words_of
from nosync.compile.regrouping import Regrouping, results
from nosync.graph.lateness import OnTime
from nosync.graph.operators import GatheredNode
from nosync.graph.templates import Branch, Hole, Template
from nosync.model.columns import GHOST
from nosync.model.duration import UNITS, microseconds
from nosync.model.errors import Invalid
from nosync.model.watermark import Expiry

if TYPE_CHECKING:
    from nosync.compile.query import Query


def is_session(key: Java) -> bool:
    return kind(key) == "AttributeReference" and bool(key.metadata().contains(SESSION))


def session_of(plan: Java) -> Java | None:
    """The session among an aggregate's grouping keys."""
    return next((key for key in items(plan.groupingExpressions()) if is_session(key)), None)


def sessions(query: "Query", plan: Java, child: Template) -> Template:
    """The sessions' change. The session itself is among the plan's columns."""
    others = [key for key in items(plan.groupingExpressions()) if not is_session(key)]
    regrouping = Regrouping(query, "session", [plan], child, [query.key(key) for key in others], in_order=True)
    return regrouping.template(lambda gathered: evaluation(regrouping, others, gathered))


def evaluation(regrouping: Regrouping, grouping: list[Java], gathered: GatheredNode) -> Branch:
    """Spark's own Aggregate over the gathered rows of groups. A ghost row stands for a group that has become empty."""
    catalyst, plan = regrouping.query.catalyst, regrouping.plan
    ghost = catalyst.attribute(GHOST, catalyst.types.BooleanType, nullable=False)
    keys = [catalyst.alias(key, f"k{i}") for i, key in enumerate(grouping)]
    expressions = [*items(plan.aggregateExpressions()), *keys, ghost]
    seq, below = catalyst.seq, children(plan)[0]
    whole = catalyst.logical.Aggregate(seq([*items(plan.groupingExpressions()), ghost]), seq(expressions), below, plan.hint())
    normal = [catalyst.normalised(key.toAttribute()) for key in keys]
    hole = Hole(gathered, [*regrouping.child.output, ghost])
    return Branch(results(catalyst, normal, regrouping.output, ghost), [Branch(whole, [hole])])


def session_expiries(plan: Java, child: Template, session: Java, gap: int) -> tuple[Expiry, ...]:
    """When rows and results of sessions are of no use any more: the gap after the session's end."""
    assert isinstance(child.piece, OnTime)
    clock, rows, results = child.piece.clock, _place(child.output, session), _place(items(plan.output()), session)
    time = words_of(session)
    return Expiry(rows, clock, gap, chained=True, time=time), Expiry(results, clock, gap, time=time)


def _place(columns: list[Java], attribute: Java) -> str:
    return next(f"c{i}" for i, column in enumerate(columns) if column.exprId().equals(attribute.exprId()))


def gap_of(plan: Java, session: Java) -> int | None:
    """The gap between sessions in microseconds, where it is the same for all rows."""
    below = children(plan)[0]
    if kind(below) != "Project":
        return None
    for column in items(below.projectList()):
        if kind(column) == "Alias" and column.exprId().equals(session.exprId()):
            gaps = [str(literal.toString()) for literal in _intervals(column.child())]
            return _length(gaps[0]) if len(gaps) == 1 else None
    return None


def _intervals(expression: Java) -> list[Java]:
    """What is added to times: a literal, or something that is none and stands for many."""
    if kind(expression) in ("TimeAdd", "TimestampAddInterval"):
        return [children(expression)[1]]
    return [found for child in children(expression) for found in _intervals(child)]


def _length(text: str) -> int | None:
    try:
        length = microseconds(text)
    except Invalid:
        return None  # months differ, and so does what is no literal
    return length + UNITS["hour"] if "day" in text else length  # a day may have 25 hours


def closing_time(catalyst: Catalyst, end: Java, gap: int) -> Java:
    """When a session is closed: one gap after its end."""
    return catalyst.expressions.Add(end, catalyst.long(gap))
