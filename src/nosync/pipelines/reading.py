"""Names of a project's datasets, wherever its queries read them: `spark.table`, `spark.read.table`, `spark.readStream.table`, `spark.sql`.

Definitions call PySpark's own methods, on a session that knows nothing of the project. While one is being asked for its rows, these methods
answer for the names that it defines; any other name is left to Spark. What would change the session is refused, as `spark-pipelines` does.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.catalog import Catalog
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.conf import RuntimeConfig
from pyspark.sql.streaming.readwriter import DataStreamReader
from pyspark.sql.udf import UDFRegistration

from nosync.bridge.catalyst import Catalyst, Java
from nosync.bridge.frames import analyzed
from nosync.bridge.relations import Named, called, name_parts, over_names, parsed
from nosync.model.errors import Invalid

Resolve = Callable[[Named], tuple[DataFrame, tuple[str, ...]] | None]
"""The rows of a dataset, and the whole name that its columns may be called by; None for what the project does not define."""

CHANGING: tuple[tuple[type, str], ...] = (
    (RuntimeConfig, "set"),
    (Catalog, "setCurrentCatalog"),
    (Catalog, "setCurrentDatabase"),
    (Catalog, "dropTempView"),
    (Catalog, "dropGlobalTempView"),
    (ClassicDataFrame, "createTempView"),
    (ClassicDataFrame, "createOrReplaceTempView"),
    (ClassicDataFrame, "createGlobalTempView"),
    (ClassicDataFrame, "createOrReplaceGlobalTempView"),
    (UDFRegistration, "register"),
    (UDFRegistration, "registerJavaFunction"),
    (UDFRegistration, "registerJavaUDAF"),
)
_resolve: ContextVar[Resolve | None] = ContextVar("resolve", default=None)


@contextmanager
def resolving(resolve: Resolve) -> Iterator[None]:
    """Around asking a definition for its rows."""
    token = _resolve.set(resolve)
    try:
        yield
    finally:
        _resolve.reset(token)


def over_plan(catalyst: Catalyst, plan: Java) -> DataFrame:
    """A parsed query over the datasets that it names."""
    resolve = _resolve.get()
    return catalyst.frame(plan if resolve is None else over_names(catalyst, plan, resolve))


@contextmanager
def names_known() -> Iterator[None]:
    """Around all that runs code of a project."""
    own: dict[tuple[type, str], Any] = {
        (SparkSession, "table"): SparkSession.table,
        (SparkSession, "sql"): SparkSession.sql,
        (DataFrameReader, "table"): DataFrameReader.table,
        (DataStreamReader, "table"): DataStreamReader.table,
    }
    instead: dict[tuple[type, str], Any] = {
        (SparkSession, "table"): _table(SparkSession.table, lambda session: session, streaming=False),
        (SparkSession, "sql"): _sql(SparkSession.sql),
        (DataFrameReader, "table"): _table(DataFrameReader.table, lambda reader: reader._spark, streaming=False),
        (DataStreamReader, "table"): _table(DataStreamReader.table, lambda reader: reader._spark, streaming=True),
    }
    try:
        for (owner, name), method in instead.items():
            setattr(owner, name, method)
        yield
    finally:
        for (owner, name), method in own.items():
            setattr(owner, name, method)


@contextmanager
def session_unchanged() -> Iterator[None]:
    """Around running the files of a project: what they change in the session would hold for all of it, or for nothing."""
    own = {(owner, name): getattr(owner, name) for owner, name in CHANGING}
    try:
        for owner, name in CHANGING:
            setattr(owner, name, _refused(f"{owner.__name__}.{name}"))
        yield
    finally:
        for (owner, name), method in own.items():
            setattr(owner, name, method)


@contextmanager
def with_settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Around asking a definition that has settings of its own: Spark reads a query by them."""
    before = {name: spark.conf.get(name, None) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)


def _refused(what: str) -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> Any:
        hint = "Put settings into the project's file, or spark_conf=; name temporary views by @dp.temporary_view."
        raise Invalid(f"{what} changes the session, which no file of a pipeline may do", hint=hint)

    return refuse


def _table(own: Callable[..., DataFrame], session_of: Callable[[Any], SparkSession], streaming: bool) -> Callable[..., DataFrame]:
    def table(self: Any, tableName: str) -> DataFrame:  # noqa: N803 (PySpark's name)
        resolve = _resolve.get()
        spark = session_of(self)
        found = resolve(Named(name_parts(spark, tableName), streaming)) if resolve is not None else None
        if found is None:
            return own(self, tableName)
        catalyst = Catalyst(spark)
        return catalyst.frame(called(catalyst, analyzed(found[0]), found[1]))

    return table


def _sql(own: Callable[..., DataFrame]) -> Callable[..., DataFrame]:
    def sql(self: SparkSession, sqlQuery: str, *given: Any, **named: Any) -> DataFrame:  # noqa: N803 (PySpark's name)
        if _resolve.get() is None or given or named:
            return own(self, sqlQuery, *given, **named)
        return over_plan(Catalyst(self), parsed(self, sqlQuery))

    return sql
