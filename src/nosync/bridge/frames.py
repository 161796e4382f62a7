"""What Spark makes of a DataFrame: its plans, its execution, what was observed on the way."""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import StructType, _parse_datatype_string

from nosync.bridge.catalyst import Catalyst, Java, children, items, kind
from nosync.bridge.sessions import settings_in_tasks, unchecked_operations

OBSERVED = "nosync:"  # observations of ours begin with this


def analyzed(frame: DataFrame) -> Java:
    """The logical plan with all names resolved."""
    return frame._jdf.queryExecution().analyzed()


def resolved(frame: DataFrame, name: str) -> Java:
    """The column that Spark finds by a name, quoted, qualified or in other case; AnalysisException where there is none, or several."""
    return frame._jdf.resolve(name)


def optimized(frame: DataFrame) -> Java:
    """The logical plan as Spark's optimiser leaves it."""
    return frame._jdf.queryExecution().optimizedPlan()


def optimized_as_stream(frame: DataFrame) -> Java:
    """The same for queries with what Spark has for streams alone."""
    with unchecked_operations(frame.sparkSession):
        return optimized(frame)


def cached_plan(frame: DataFrame) -> Java:
    """Persists a frame, and gives a plan that reads what it holds as a leaf: whoever stands on it several times need not look below.

    It has a name, since Spark would else name it after all that it is computed from, which takes long where much is.
    """
    catalyst = Catalyst(frame.sparkSession)
    level = catalyst.jvm.org.apache.spark.storage.StorageLevel.MEMORY_AND_DISK()
    manager = frame.sparkSession._jsparkSession.sharedState().cacheManager()
    manager.cacheQuery(frame._jdf, catalyst.option("a change of nosync"), level)
    return frame._jdf.queryExecution().withCachedData()


def plan_now(frame: DataFrame) -> None:
    """Plans the frame without running it: running it is sooner done then."""
    frame._jdf.queryExecution().executedPlan()


def unobserved(frame: DataFrame) -> DataFrame:
    """The same rows, without the counts that are taken on the way: a query has each of them once at most."""
    catalyst = Catalyst(frame.sparkSession)

    def bare(plan: Java) -> Java:
        below = children(plan)
        changed = [bare(child) for child in below]
        if kind(plan) == "CollectMetrics":
            return changed[0]
        same = all(one is other for one, other in zip(below, changed, strict=True))
        return plan if same else catalyst.with_children(plan, changed)

    return catalyst.frame(bare(analyzed(frame)))


def empty(spark: SparkSession, schema: StructType) -> DataFrame:
    """A frame without rows that no optimiser folds: a leaf of its own."""
    java, context = spark._jsparkSession, spark._jsc
    return DataFrame(java.internalCreateDataFrame(context.emptyRDD().rdd(), java.parseDataType(schema.json()), False), spark)


def declared_schema(given: str | StructType) -> StructType:
    """A schema as `createDataFrame` takes it; PySparkException where it is none."""
    found = given if isinstance(given, StructType) else _parse_datatype_string(given)
    return found if isinstance(found, StructType) else StructType().add("value", found)


def placeholder_id(frame: DataFrame) -> int:
    """What an empty frame is known by wherever it stands in a plan."""
    return int(analyzed(frame).rdd().id())


def run(frame: DataFrame) -> dict[str, dict[str, int]]:
    """Runs the frame for what its tasks do, brings no rows back, and gives what was observed: counts by name."""
    execution = frame._jdf.queryExecution()
    with settings_in_tasks(frame.sparkSession):
        execution.executedPlan().executeCollect()
    return observed_metrics(execution)


def observed_metrics(execution: Java) -> dict[str, dict[str, int]]:
    """What was observed in a query that has run: counts by name."""
    metrics = execution.observedMetrics()
    found: dict[str, dict[str, int]] = {}
    for name in items(metrics.keys().toSeq()):
        row = metrics.apply(name)
        found[str(name).removeprefix(OBSERVED)] = {str(f.name()): int(row.getLong(i)) for i, f in enumerate(row.schema().fields())}
    return found


def microseconds_of(frame: DataFrame, column: str) -> Column:
    """A column of times as microseconds since 1970, to the bit."""
    catalyst = Catalyst(frame.sparkSession)
    indexes: Mapping[str, int] = {str(name): index for index, name in enumerate(frame.columns)}
    attribute = analyzed(frame).output().apply(indexes[column])
    expression = catalyst.expressions.PreciseTimestampConversion(attribute, attribute.dataType(), catalyst.types.LongType)
    return Column(getattr(catalyst.jvm, "org.apache.spark.sql.classic.ExpressionUtils").column(expression))
