"""Empty DataFrames that stand for sources and views in queries, and whose they are.

A placeholder is known by the id of its RDD, wherever it stands in a plan. All of a process are remembered: one that comes from another
flow, or from an earlier declaration, would else be taken for a table without rows.
"""

import weakref
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from nosync.bridge.catalyst import Java, children, items, kind
from nosync.bridge.frames import analyzed, placeholder_id


@dataclass(frozen=True)
class _Owner:
    flow: str
    keeper: weakref.ref[Any]


_owners: dict[tuple[str, int], _Owner] = {}


def register(frame: DataFrame, flow: str, keeper: object) -> int:
    """Remembers whose placeholder it is, and gives its id. `keeper` is what `owned` gives, as long as there is one."""
    number = placeholder_id(frame)
    _owners[str(frame.sparkSession.sparkContext.applicationId), number] = _Owner(flow, weakref.ref(keeper))
    return number


def owner(spark: SparkSession, leaf: Java) -> str | None:
    """The flow whose placeholder a leaf is, also inside of something cached; None for anything else."""
    if kind(leaf) == "InMemoryRelation":
        return next((flow for inner in leaves(leaf.cacheBuilder().logicalPlan()) if (flow := owner(spark, inner))), None)
    found = _found(spark, leaf)
    return found.flow if found else None


def flow_below(frame: DataFrame) -> str | None:
    """The flow that a DataFrame reads placeholders of, if any. A call to the JVM and some for each leaf: any DataFrame is asked."""
    if not _owners:
        return None
    leaves = items(analyzed(frame).collectLeaves())
    return next((flow for leaf in leaves if kind(leaf) == "LogicalRDD" and (flow := owner(frame.sparkSession, leaf))), None)


def owned(spark: SparkSession, leaf: Java) -> object | None:
    """The keeper of a placeholder."""
    found = _found(spark, leaf)
    return found.keeper() if found else None


def _found(spark: SparkSession, leaf: Java) -> _Owner | None:
    if kind(leaf) != "LogicalRDD":
        return None
    return _owners.get((str(spark.sparkContext.applicationId), int(leaf.rdd().id())))


def leaves(plan: Java) -> list[Java]:
    below = children(plan)
    return [leaf for child in below for leaf in leaves(child)] if below else [plan]
