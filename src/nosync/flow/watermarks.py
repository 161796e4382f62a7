"""`df.withWatermark(column, delay)` on the DataFrame of a source says what `flow.source(..., watermark=)` says.

Spark takes a watermark out of every plan that does not read one of its own streams, as soon as it is said. So the method of PySpark's
class is replaced, once, by one that looks first whether the DataFrame is that of a flow's source, some of its rows or columns left out;
any other is left to Spark. What it returns has the same columns, also for expressions that were made before; only the one of the event
time bears the mark. Event time is that of all rows of the source: so a filter by the event time itself is refused in front of it.
"""

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from nosync.bridge.catalyst import Catalyst, Java, children, items, kind
from nosync.bridge.frames import analyzed
from nosync.bridge.placeholders import owned, owner
from nosync.compile.compiler import Compiler
from nosync.compile.event_time import MARK, is_time
from nosync.compile.ledger import LedgerNode
from nosync.graph.nodes import SourceNode
from nosync.model.errors import Invalid, Refused
from nosync.model.watermark import microseconds

PASSED = ("Project", "Filter", "SubqueryAlias", "View", "Repartition", "RepartitionByExpression")
WAY_OUT = 'Say it right behind flow.source(...), or there: flow.source(..., watermark=("at", "10 seconds")).'
BEFORE = "Say it before the filter: rows that it leaves out move event time on too. Or leave such rows out before they reach the source."
sparks_own: Callable[[DataFrame, str, str], DataFrame] = ClassicDataFrame.withWatermark  # type: ignore[assignment]


def listen() -> None:
    """From here on flows hear of watermarks."""
    ClassicDataFrame.withWatermark = with_watermark  # type: ignore[assignment, method-assign]


def with_watermark(frame: DataFrame, eventTime: str, delayThreshold: str) -> DataFrame:  # noqa: N803 (PySpark's names)
    """PySpark's method, for sources of flows too."""
    plan = analyzed(frame)
    if not any(owner(frame.sparkSession, leaf) for leaf in _leaves(plan)) or eventTime not in frame.columns:
        return sparks_own(frame, eventTime, delayThreshold)
    if not is_time(frame.schema[eventTime].dataType):
        what = frame.schema[eventTime].dataType.simpleString()
        raise Invalid(f'withWatermark("{eventTime}", ...): the column is {what}, not a timestamp', hint="Name a timestamp.")
    source, column = _origin(frame, plan, eventTime)
    delay = microseconds(delayThreshold)
    if source.time is not None and (source.time, source.delay) != (column, delay):
        known = f'"{source.time}", {(source.delay or 0) / 1e6:g} seconds'
        said = f'withWatermark("{eventTime}", "{delayThreshold}")'
        raise Invalid(f'{said}: source "{source.name}" has a watermark already ({known})', hint="Say one column and one delay a source.")
    source.time, source.delay = column, delay
    return _marked(frame, plan, eventTime)


def _leaves(plan: Java) -> list[Java]:
    below = children(plan)
    return [leaf for child in below for leaf in _leaves(child)] if below else [plan]


def _origin(frame: DataFrame, plan: Java, name: str) -> tuple[SourceNode, str]:
    """The source and its column that a column is, whatever it is called by now."""
    said = f'withWatermark("{name}", ...)'
    wanted = next(a for a in items(plan.output()) if str(a.name()) == name).exprId()
    while kind(plan) in PASSED:
        if kind(plan) == "Filter" and any(a.exprId() == wanted for a in items(plan.condition().references().toSeq())):
            raise Refused(f"{said}: rows are left out by their event time, {plan.condition().sql()}", hint=BEFORE)
        if kind(plan) == "Project":
            [found] = [column for column in items(plan.projectList()) if column.exprId() == wanted]
            inner = found.child() if kind(found) == "Alias" else found
            if kind(inner) != "AttributeReference":
                raise Refused(f'{said}: the column is computed, {inner.sql()}', hint="Give the source a column with the time itself.")
            wanted = inner.exprId()
        plan = children(plan)[0]
    compiler = owned(frame.sparkSession, plan)
    if not isinstance(compiler, Compiler):
        raise Refused(f"{said}: the rows are not those of a source any more, but behind {plan.nodeName()}", hint=WAY_OUT)
    node = compiler.leaves[plan.rdd().id()]
    source = compiler.graph.sources[node.view] if isinstance(node, LedgerNode) else node
    if not isinstance(source, SourceNode) or source.static is not None:
        raise Refused(f'{said}: the column is one of view "{source.name}", not of a source', hint=WAY_OUT)
    return source, next(str(a.name()) for a in items(plan.output()) if a.exprId() == wanted)


def _marked(frame: DataFrame, plan: Java, name: str) -> DataFrame:
    catalyst = Catalyst(frame.sparkSession)
    columns: list[Any] = [catalyst.with_mark(a, MARK) if str(a.name()) == name else a for a in items(plan.output())]
    return catalyst.frame(catalyst.project(columns, plan))
