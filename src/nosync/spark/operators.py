"""The table of operators: which rules read which nodes of Spark's plan, and which step runs the operators that they make.

A new kind of operator has its node and its rule in `compile/rules`, its step in `spark/steps`, its kernel in `kernels`, and lines here.
"""

from collections.abc import Callable

from pyspark.sql import DataFrame

from nosync.compile.conditional_joins import MatchNode
from nosync.compile.final_results import FinalNode
from nosync.compile.ledger import LedgerNode
from nosync.compile.query import Rules
from nosync.compile.rules.aggregate import aggregated
from nosync.compile.rules.batch_map import batch_mapped
from nosync.compile.rules.expand import expanded
from nosync.compile.rules.fold import FoldNode, folded
from nosync.compile.rules.group_map import group_mapped
from nosync.compile.rules.join import JoinNode, joined
from nosync.compile.rules.limit import limited
from nosync.compile.rules.order import unordered
from nosync.compile.rules.project import projected
from nosync.compile.rules.relation import read
from nosync.compile.rules.row_by_row import row_by_row
from nosync.compile.rules.union import united
from nosync.compile.rules.window import windowed
from nosync.compile.rules.within_watermark import WithinNode, first_of_each_key
from nosync.compile.sliding_windows import PaneNode, SlidingNode
from nosync.graph.operators import AccumulateNode, Operator, RegroupNode
from nosync.spark.steps import accumulate, final, fold, join, ledger, match, panes, regroup, within_watermark

RULES: Rules = {
    "Project": (projected,),
    "Filter": (windowed, row_by_row),
    "Generate": (row_by_row,),
    "BatchEvalPython": (row_by_row,),
    "ArrowEvalPython": (row_by_row,),
    "MapInPandas": (batch_mapped,),
    "MapInArrow": (batch_mapped,),
    "Expand": (expanded,),
    "Union": (united,),
    "Window": (windowed,),
    "WindowGroupLimit": (windowed,),
    "Aggregate": (aggregated,),
    "Join": (joined,),
    "DeduplicateWithinWatermark": (first_of_each_key,),
    "GlobalLimit": (limited,),
    "Offset": (limited,),
    "FlatMapGroupsInPandas": (group_mapped,),
    "FlatMapGroupsInArrow": (folded, group_mapped),
    "FlatMapCoGroupsInPandas": (group_mapped,),
    "FlatMapCoGroupsInArrow": (group_mapped,),
    "Sort": (unordered,),
    "LocalLimit": (unordered,),
    "Repartition": (unordered,),
    "RepartitionByExpression": (unordered,),
    "RebalancePartitions": (unordered,),
    "LogicalRDD": (read,),
    "LocalRelation": (read,),
    "LogicalRelation": (read,),
    "HiveTableRelation": (read,),
    "Range": (read,),
    "OneRowRelation": (read,),
    "InMemoryRelation": (read,),
    "DataSourceV2ScanRelation": (read,),
}

STEPS: dict[type[Operator], Callable[..., DataFrame]] = {
    AccumulateNode: accumulate.step,
    RegroupNode: regroup.step,
    JoinNode: join.step,
    MatchNode: match.step,
    LedgerNode: ledger.step,
    FoldNode: fold.step,
    FinalNode: final.step,
    PaneNode: panes.step,
    SlidingNode: panes.sliding_step,
    WithinNode: within_watermark.step,
}
