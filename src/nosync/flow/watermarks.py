"""`df.withWatermark(column, delay)` on the DataFrame of a source says what `flow.source(..., watermark=)` says.

Spark takes a watermark out of every plan that does not read one of its own streams, as soon as it is said. So the method of PySpark's
class is replaced, once, by one that looks first whether the DataFrame is that of a flow's source, columns left out or renamed at most;
any other is left to Spark. What it returns has the same columns, also for expressions that were made before; only the one of the event
time bears the mark. All rows of a source move its event time on: a filter in front, where Spark goes by those that pass, is refused.
"""

from collections.abc import Callable
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from nosync.bridge.catalyst import Catalyst, Java, children, data_type, items, kind
from nosync.bridge.frames import analyzed, resolved
from nosync.bridge.placeholders import leaves, owned, owner
from nosync.compile.compiler import Compiler
from nosync.compile.event_time import MARK, is_time
from nosync.compile.ledger import LedgerNode
from nosync.graph.nodes import SourceNode
from nosync.model.duration import microseconds
from nosync.model.errors import Invalid, Refused

PASSED = ("Project", "SubqueryAlias", "View", "Repartition", "RepartitionByExpression")
WAY_OUT = 'Say it right behind flow.source(...), or there: flow.source(..., watermark=("at", "10 seconds")).'
BEFORE = "Say it before the filter: then all rows of the source move event time on, as they would in Spark."
sparks_own: Callable[[DataFrame, str, str], DataFrame] = ClassicDataFrame.withWatermark  # type: ignore[assignment]


def listen() -> None:
    """From here on flows hear of watermarks."""
    ClassicDataFrame.withWatermark = with_watermark  # type: ignore[assignment, method-assign]


def with_watermark(frame: DataFrame, eventTime: str, delayThreshold: str) -> DataFrame:  # noqa: N803 (PySpark's names)
    """PySpark's method, for sources of flows too."""
    plan = analyzed(frame)
    if not any(owner(frame.sparkSession, leaf) for leaf in leaves(plan)):
        return sparks_own(frame, eventTime, delayThreshold)
    return _marked(frame, plan, note(frame, eventTime, delayThreshold))


def note(frame: DataFrame, eventTime: str, delayThreshold: str) -> Java:  # noqa: N803 (PySpark's names)
    """The source of the rows has this watermark from now on. Gives the identity of its column."""
    plan, time = analyzed(frame), _column(frame, eventTime)
    if not is_time(data_type(time)):
        what = data_type(time).simpleString()
        raise Invalid(f'withWatermark("{eventTime}", ...): the column is {what}, not a timestamp', hint="Name a timestamp.")
    source, column = _origin(frame, plan, eventTime, time.exprId())
    delay = microseconds(delayThreshold, "a delay")
    if source.time is not None and (source.time, source.delay) != (column, delay):
        known = f'"{source.time}", {(source.delay or 0) / 1e6:g} seconds'
        said = f'withWatermark("{eventTime}", "{delayThreshold}")'
        raise Invalid(f'{said}: source "{source.name}" has a watermark already ({known})', hint="Say one column and one delay a source.")
    source.time, source.delay = column, delay
    return time.exprId()


def _column(frame: DataFrame, name: str) -> Java:
    """Found as Spark finds it."""
    said = f'withWatermark("{name}", ...)'
    try:
        found = resolved(frame, name)
    except AnalysisException:
        raise Invalid(f"{said}: no such column, or several", hint=f"The columns are: {', '.join(frame.columns)}.") from None
    if kind(found) != "AttributeReference":
        raise Refused(f"{said}: the time is inside of another column", hint="Give the source a column with the time itself.")
    return found



def _origin(frame: DataFrame, plan: Java, name: str, wanted: Java) -> tuple[SourceNode, str]:
    """The source and its column that a column, `wanted` by its id, is, whatever it is called by now."""
    said = f'withWatermark("{name}", ...)'
    while kind(plan) in PASSED:
        if kind(plan) == "Project":
            found = next(column for column in items(plan.projectList()) if column.exprId() == wanted)
            inner = found.child() if kind(found) == "Alias" else found
            if kind(inner) != "AttributeReference":
                raise Refused(f'{said}: the column is computed, {inner.sql()}', hint="Give the source a column with the time itself.")
            wanted = inner.exprId()
        plan = children(plan)[0]
    compiler = owned(frame.sparkSession, plan)
    if kind(plan) == "Filter":
        raise Refused(f"{said}: some rows of the source were left out, {plan.condition().sql()}", hint=BEFORE)
    if not isinstance(compiler, Compiler):
        raise Refused(f"{said}: the rows are not those of a source any more, but behind {plan.nodeName()}", hint=WAY_OUT)
    node = compiler.leaves[plan.rdd().id()]
    source = compiler.graph.sources[node.view] if isinstance(node, LedgerNode) else node
    if not isinstance(source, SourceNode) or source.static is not None:
        raise Refused(f'{said}: the column is one of view "{source.name}", not of a source', hint=WAY_OUT)
    return source, next(str(a.name()) for a in items(plan.output()) if a.exprId() == wanted)


def _marked(frame: DataFrame, plan: Java, time: Java) -> DataFrame:
    catalyst = Catalyst(frame.sparkSession)
    columns: list[Any] = [catalyst.with_mark(a, MARK) if a.exprId() == time else a for a in items(plan.output())]
    return catalyst.frame(catalyst.project(columns, plan))
