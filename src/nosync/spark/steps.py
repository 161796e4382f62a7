"""How each kind of operator runs within an epoch's job: rows to their shards, the kernel's task, the change.

A new kind adds a function to `STEPS`. What they share (input, exchange, covers, receipts) is the job's.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType, IntegerType, LongType, StructField, StructType

from nosync.bridge.arrow import arrow_schema
from nosync.compile.final import FinalNode
from nosync.compile.folding import FoldNode
from nosync.compile.ledger import LedgerNode
from nosync.compile.panes import PaneNode, SlidingNode
from nosync.graph.nodes import Branch, Node, Operator, Piece, SourceNode, ViewNode, holes
from nosync.graph.operators import AccumulateNode, JoinNode, MatchNode, RegroupNode
from nosync.spark.accumulate import AccumulateTask
from nosync.spark.direct import FEW_SHARDS, DirectTask
from nosync.spark.final import calling, final_change
from nosync.spark.fold import FoldTask, RecordTask, fold_input
from nosync.spark.join import JoinTask, MatchTask
from nosync.spark.ledger import LedgerTask
from nosync.spark.panes import PaneTask, SlidingTask
from nosync.spark.retain import GatherTask, SettleTask
from nosync.state.expiry import Expired

if TYPE_CHECKING:
    from nosync.spark.job import EpochJob

NOTHING = StructType([StructField("_nothing", IntegerType())])
BLOBS = StructType([StructField("_shard", IntegerType()), StructField("blob", BinaryType())])


def change_of(job: "EpochJob", node: Operator) -> DataFrame:
    """The operator's change in this epoch."""
    return STEPS[type(node)](job, node)


def changing(schema: StructType, placed: bool = True) -> StructType:
    """The schema of a change."""
    carried = ("_hash", "_diff") if placed else ("_diff",)
    return StructType(list(schema.fields) + [StructField(name, LongType()) for name in carried])


def direct_task(job: "EpochJob", node: Node) -> DirectTask | None:
    """The operator's task if it can read its input itself."""
    if not isinstance(node, AccumulateNode) or node.plain is None or node.plain.source not in job.direct or job.targets is not None:
        return None
    task = _accumulate_task(job, node)
    return None if task.unborn else DirectTask(task, node.plain, job.direct[node.plain.source])


def _accumulate_task(job: "EpochJob", node: AccumulateNode) -> AccumulateTask:
    read = bool(job.consumers.get(id(node)))
    output = arrow_schema(changing(node.schema), node.name) if read else None
    work = job.work(node.trace, "upserts")
    if isinstance(node, SlidingNode):
        return SlidingTask(work, node.spec, output, node.panes, job.moment.watermark(node.clock))
    return AccumulateTask(work, node.spec, output)


def _accumulate(job: "EpochJob", node: AccumulateNode) -> DataFrame:
    task, direct = _accumulate_task(job, node), direct_task(job, node)
    declared = NOTHING if task.output is None else changing(node.schema)
    if direct is not None:
        return _directly(job, direct, declared)
    rows = job.rows(node.feed.piece)
    if task.unborn:
        rows = rows.unionAll(job.marker(rows))
    if _is_wide(job, node.feed.piece):
        blobs = rows.mapInArrow(task.combine_rows, BLOBS).repartitionById(job.setting.shards, job.setting.blob_shard)
        return blobs.mapInArrow(task.reduce_blobs, declared)
    return job.exchange(rows, node).mapInArrow(task.reduce_rows, declared)


def _directly(job: "EpochJob", task: DirectTask, declared: StructType) -> DataFrame:
    session, shards = job.setting.session, job.setting.shards
    if shards <= FEW_SHARDS:
        return session.range(0, shards, 1, shards).mapInArrow(task.by_shard, declared)
    shares = session.range(0, len(task.paths), 1, len(task.paths))
    blobs = shares.mapInArrow(task.by_share, BLOBS).repartitionById(shards, job.setting.blob_shard)
    return blobs.mapInArrow(task.accumulate.reduce_blobs, declared)


def _is_wide(job: "EpochJob", piece: Piece) -> bool:
    if isinstance(piece, Branch):
        return any(_is_wide(job, child) for child in piece.children)
    if isinstance(piece.node, ViewNode):
        return _is_wide(job, piece.node.body.piece)
    return isinstance(piece.node, SourceNode) and piece.node.name in job.wide


def _regroup(job: "EpochJob", node: RegroupNode) -> DataFrame:
    gathered = arrow_schema(node.gathered.schema, node.name)
    kept, _ = node.traces
    gather = GatherTask(job.work(kept, "diffs"), node.payload, gathered, node.announced, node.limit)
    touched = job.exchange(job.rows(node.feed.piece), node).mapInArrow(gather, node.gathered.schema)
    if sum(1 for _ in holes(node.evaluate)) > 1:  # or each reader would gather anew
        job.persisted.append(touched.persist())
    job.provide(node.gathered, touched)
    results = job.rows(node.evaluate)
    schema = changing(node.schema)
    empty = job.setting.empties.get(node.name)
    work = job.work(node.trace, "diffs")
    settle = SettleTask(work, node.settled, arrow_schema(schema, node.name), empty, _closed(job, node))
    if empty is not None and not settle.work.covers:
        results = results.unionAll(job.marker(results))
    return job.exchange(results).mapInArrow(settle, schema)


def _closed(job: "EpochJob", node: RegroupNode) -> Expired | None:
    """Results that are settled for good."""
    expiry = node.expiries[node.traces.index(node.name)] if node.expiries else None
    until = expiry.until(job.lower, job.seen) if expiry else None
    return Expired(expiry.column, until) if expiry and until is not None else None


def _join(job: "EpochJob", node: JoinNode) -> DataFrame:
    assert isinstance(node.feed.piece, Branch)
    sides = [side for side in node.feed.piece.children if job.piece_moves(side)]
    rows = job.rows(sides[0] if len(sides) == 1 else node.feed.piece)
    left, right = node.traces
    works = job.work(left, "diffs"), job.work(right, "diffs")
    schema = changing(node.schema, node.placed)
    task = JoinTask(works, node.spec, node.payloads, arrow_schema(schema, node.name))
    return job.exchange(rows, node).mapInArrow(task, schema)


def _match(job: "EpochJob", node: MatchNode) -> DataFrame:
    schema = changing(node.schema)
    task = MatchTask(job.work(node.trace, "upserts"), node.spec, node.columns, arrow_schema(schema, node.name))
    return job.exchange(job.rows(node.feed.piece), node).mapInArrow(task, schema)


def _ledger(job: "EpochJob", node: LedgerNode) -> DataFrame:
    schema = changing(node.schema)
    task = LedgerTask(job.work(node.trace, "upserts"), node.keys, node.columns, node.sequence, arrow_schema(schema, node.name))
    return job.exchange(job.rows(node.feed.piece), node).mapInArrow(task, schema)


def _fold(job: "EpochJob", node: FoldNode) -> DataFrame:
    schema = changing(node.schema)
    shapes = node.keys, node.columns, node.state, arrow_schema(schema, node.name)
    record = None if node.record is None else job.work(node.record, "diffs")
    if record is not None and job.targets is not None:
        return job.setting.session.range(0, job.setting.shards, 1, job.setting.shards).mapInArrow(RecordTask(record, shapes[-1]), schema)
    rows, timing = fold_input(job, node)
    task = FoldTask(job.work(node.trace, "upserts"), node.view, node.folding, *shapes, record, timing)
    return job.exchange(rows, node).mapInArrow(task, schema)


def _final(job: "EpochJob", node: FinalNode) -> DataFrame:
    schema = changing(node.schema)
    rows, task = final_change(job, node, arrow_schema(schema, node.name), job.work(node.trace, "diffs"))
    return job.exchange(rows, node).mapInArrow(task, schema)


def _panes(job: "EpochJob", node: PaneNode) -> DataFrame:
    schema = changing(node.schema)
    since, until = job.moment.watermark_before(node.clock), job.moment.watermark(node.clock)
    work, output = job.work(node.trace, "upserts"), arrow_schema(schema, node.name)
    task = PaneTask(work, node.spec, output, node.panes, since, until)
    rows = job.rows(node.feed.piece)
    calls = calling(job, rows.schema)
    rows = rows.unionAll(calls) if job.piece_moves(node.feed.piece) else calls
    if _is_wide(job, node.feed.piece):
        blobs = rows.mapInArrow(task.combine_rows, BLOBS).repartitionById(job.setting.shards, job.setting.blob_shard)
        return blobs.mapInArrow(task.reduce_blobs, schema)
    return job.exchange(rows, node).mapInArrow(task.reduce_rows, schema)


STEPS: dict[type[Operator], Callable[["EpochJob", Any], DataFrame]] = {
    AccumulateNode: _accumulate,
    RegroupNode: _regroup,
    JoinNode: _join,
    MatchNode: _match,
    LedgerNode: _ledger,
    FoldNode: _fold,
    FinalNode: _final,
    PaneNode: _panes,
    SlidingNode: _accumulate,
}
