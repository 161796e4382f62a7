"""What a DataFrame of a flow answers when it is asked for rows outside of a run: where they are.

Sources and views are declared as empty DataFrames, so that queries can be built on them; Spark would answer `collect` and the like with no
rows. So these methods of PySpark's class are replaced, once, by ones that look first whether a source or view of a flow is below; any other
DataFrame is left to Spark.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from pyspark.sql import DataFrame, GroupedData
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from nosync.bridge.placeholders import flow_below
from nosync.flow.frames import check_frame
from nosync.model.errors import Invalid, Refused

LOOK = 'Look at the first rows with flow.preview(df).show(). For all of them: flow.view("name", df), start the flow, run.view("name").'
SEND = 'Send what changes to a sink: flow.sink("name", df, ns.parquet("out")), or ns.foreachBatch(function).'
METHODS = (
    "collect", "show", "count", "toPandas", "toArrow", "isEmpty", "toLocalIterator", "head", "first", "take", "tail", "foreach",
    "foreachPartition", "checkpoint", "localCheckpoint", "toJSON", "pandas_api", "approxQuantile", "corr", "cov", "crosstab", "freqItems",
    "writeTo", "transpose",
)  # fmt: skip
PROPERTIES = ("write", "writeStream", "rdd")
BESIDE = ("join", "crossJoin", "union", "unionAll", "unionByName", "intersect", "intersectAll", "exceptAll", "subtract", "lateralJoin")
_listening: list[str] = []


def listen() -> None:
    """From here on flows answer for their DataFrames."""
    if _listening:
        return
    for name in METHODS:
        setattr(ClassicDataFrame, name, _method(name, getattr(ClassicDataFrame, name)))
    for name in PROPERTIES:
        setattr(ClassicDataFrame, name, _property(name, getattr(ClassicDataFrame, name)))
    for name in BESIDE:
        setattr(ClassicDataFrame, name, _beside(name, getattr(ClassicDataFrame, name)))
    setattr(GroupedData, "pivot", _pivot(GroupedData.pivot))  # noqa: B010 (a method is not assigned to)
    _listening.append("done")


def _method(name: str, sparks_own: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(sparks_own)
    def method(frame: DataFrame, *given: Any, **named: Any) -> Any:
        _check(frame, f"{name}()")
        return sparks_own(frame, *given, **named)

    return method


def _property(name: str, sparks_own: Any) -> Any:
    def get(frame: DataFrame) -> Any:
        _check(frame, name)
        return sparks_own.__get__(frame, type(frame))

    return property(get, doc=sparks_own.__doc__)


def _beside(name: str, sparks_own: Callable[..., Any]) -> Callable[..., Any]:
    """What another DataFrame is combined with: PySpark takes anything, and fails inside."""

    @wraps(sparks_own)
    def method(frame: DataFrame, other: Any, *given: Any, **named: Any) -> Any:
        if not isinstance(other, DataFrame) and flow_below(frame) is not None:
            check_frame(f"what {name}() is given", other, f"Pass a DataFrame: df.{name}(other).")
        return sparks_own(frame, other, *given, **named)

    return method


def _pivot(sparks_own: Callable[..., Any]) -> Callable[..., Any]:
    """Without values, Spark would look for them in the rows: there are none, and so there would be no columns."""

    @wraps(sparks_own)
    def pivot(groups: Any, pivot_col: str, values: Any = None) -> Any:
        if values is None and flow_below(groups._df) is not None:
            words = f'pivot("{pivot_col}") without its values: which columns there are would depend on the rows'
            raise Refused(words, hint=f'Name them: pivot("{pivot_col}", ["a", "b"]).')
        return sparks_own(groups, pivot_col, values)

    return pivot


def _check(frame: DataFrame, action: str) -> None:
    flow = flow_below(frame)
    if flow is not None:
        hint = SEND if action.startswith("write") else LOOK
        raise Invalid(f'{action} outside of a run: this DataFrame stands for rows that flow "{flow}" has only while it runs', hint=hint)
