"""One epoch is one Spark job: the graph's templates, filled with this epoch's input, ending in kernels that write layers.

Promise: each operator runs once per shard, whatever is built on it (a change with several readers is persisted for the job); a retried task
recomputes the same bytes from immutable inputs. Nothing is recorded here: the caller takes the receipts.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructType

from nosync.bridge.catalyst import Java
from nosync.bridge.frames import analyzed, cached_plan, plan_now, run
from nosync.graph.nodes import Node, SourceNode, ViewNode
from nosync.graph.operators import GatheredNode, Operator
from nosync.graph.templates import Branch, Hole, Piece
from nosync.graph.traces import traces_of, wanted_ends
from nosync.graph.walk import behind_views, follows_from_input, inputs, read_by, stateful, up_to, upstream
from nosync.model.columns import DIFF, GHOST, HASH, ROW
from nosync.model.engine import CoversOf, Targets
from nosync.model.hash_range import HashRange
from nosync.model.identifiers import Epoch, TraceName
from nosync.model.layers import Kind
from nosync.model.shards import shards_in
from nosync.model.watermark import History, Moment, nothing_seen
from nosync.spark.job_context import JobContext
from nosync.spark.operators import STEPS
from nosync.spark.receipts import Receipt, agreed, completed, folder_for, forget, left_in
from nosync.spark.retain import RetainTask
from nosync.spark.schemas import NOTHING
from nosync.spark.steps.accumulate import direct_task
from nosync.spark.steps.calling import calling
from nosync.spark.steps.direct_task import FEW_SHARDS, AloneTask
from nosync.spark.task import Work

FEW_ROWS = 10_000  # a view that kept fewer in the epoch before is written by one task: starting another takes longer


@dataclass
class EpochJob:
    """The epochs [lower, upper), nearly always one, from the changes of their sources to receipts.

    `wide` says which sources bring enough rows for the fast way, `direct` which files tasks may read themselves. With `targets` only these
    traces and shards are written, and only what they need is computed: for recovery. `seen`: the event times before an epoch.
    `imported`: by operator, the files with the state that it gets in the place of rows.
    """

    context: JobContext
    lower: Epoch
    upper: Epoch
    covers: CoversOf
    changes: dict[str, Callable[[], DataFrame]]
    wide: frozenset[str]
    direct: dict[str, tuple[str, ...]] = field(default_factory=dict)
    targets: Targets | None = None
    seen: History = nothing_seen
    imported: Mapping[str, Sequence[str]] = field(default_factory=dict)
    frames: dict[int, Java] = field(default_factory=dict)
    kept: dict[int, DataFrame] = field(default_factory=dict)
    persisted: list[DataFrame] = field(default_factory=list)
    moving: dict[int, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.catalyst = self.context.catalyst
        self.receipts = self.context.receipts
        self.consumers = self.context.consumers
        self.observed: dict[str, dict[str, int]] = {}
        self.moment = Moment(self.lower, self.seen)
        self.receipts_folder = folder_for(self.context.home, self.context.run)

    def prepare(self, sources: frozenset[int]) -> None:
        """Puts together what does not depend on the epoch before: these sources, and the views that are computed from nothing else."""
        for source in self.context.graph.sources.values():
            if id(source) in sources and self._moves(source):
                self.plan(source)
        ends = self._ends(of_rejects=False)
        for node in ends:
            if isinstance(node, ViewNode) and id(node) not in self.kept and follows_from_input(node):
                self.kept[id(node)] = self._retain(node)
        if len(ends) == len(self.kept) == 1:
            plan_now(self.kept[id(ends[0])])

    def use(self, prepared: "EpochJob") -> None:
        """Goes on with what another job of the same epoch has put together."""
        self.frames, self.kept = prepared.frames, prepared.kept

    @property
    def read(self) -> frozenset[int]:
        """Which sources were read through Spark."""
        return frozenset(id(node) for node in self.context.graph.sources.values() if id(node) in self.frames)

    def run(self, of_rejects: bool = False) -> list[Receipt]:
        """Runs the job and returns one receipt per trace and shard that had something to do.

        `of_rejects`: only what depends on rejected rows, which are known once all the rest has run; else only that rest.
        """
        ends = self._ends(of_rejects)
        if not ends:
            return []
        self.receipts.value = []
        alone = self._alone(ends)
        try:
            if alone is not None:
                self.context.partitions(alone.partitions).mapPartitionsWithIndex(alone).collect()
            else:
                self._run_plan([self._end(node) for node in ends])
            handed_in = [receipt for receipt in self.receipts.value if receipt.epoch == self.lower]
            receipts = agreed(completed(handed_in, left_in(self.receipts_folder)))
        finally:
            forget(self.receipts_folder)
        if not of_rejects and self.targets is None:
            self.context.lately = Counter()
            for receipt in receipts:
                self.context.lately[receipt.trace] += receipt.rows
        return receipts

    def _alone(self, ends: list[Node]) -> AloneTask | None:
        """All there is to do as one task, if Spark has nothing to compute in it: then there is nothing to plan either."""
        found = [direct_task(self, node) for node in ends]
        tasks = tuple(task for task in found if task is not None and task.accumulate.output is None)
        return AloneTask(tasks) if len(tasks) == len(ends) and self.context.shards <= FEW_SHARDS else None

    def _run_plan(self, ends: list[DataFrame]) -> None:
        job = ends[0]
        for end in ends[1:]:
            job = job.unionAll(end)
        try:
            self.observed = run(job)
        finally:
            for frame in self.persisted:
                frame.unpersist()

    def count(self, source: str) -> None:
        """Reads a source that nothing else has read in this epoch, for the sake of its counts."""
        self.observed |= run(self.changes[source]().agg(F.count(F.lit(1))))

    def _ends(self, of_rejects: bool) -> list[Node]:
        """What nothing else is computed from, and what is new in it."""
        graph = self.context.graph
        if self.targets is not None:
            ends = wanted_ends(graph, self.targets)
        else:
            ends = [view for view in graph.queries if view.feed is not None]
            ends += [operator for operator in graph.operators if not self.consumers.get(id(operator))]
        ends += self._passed_by(ends)
        return [node for node in ends if (id(node) in self.context.of_rejects) == of_rejects and self._moves(node)]

    def _passed_by(self, ends: list[Node]) -> list[Node]:
        """Operators with imported state that nothing asks for, since what reads them has such state too."""
        if not self.imported:
            return []
        asked = {id(node) for node in upstream(ends, up_to(self.imported))}
        targets = self.targets
        missing = [one for one in self.context.graph.operators if one.name in self.imported and id(one) not in asked]
        return [one for one in missing if targets is None or any(trace in targets for trace in traces_of(one))]

    def _end(self, node: Node) -> DataFrame:
        if isinstance(node, ViewNode):
            return self._retain(node)
        change = self.catalyst.frame(self.plan(node))  # nobody reads it here: only what its tasks write matters
        return change if change.columns == NOTHING.names else change.select(F.lit(None).cast("int").alias(NOTHING.names[0]))

    def _moves(self, node: Node) -> bool:
        """Whether anything can change in this epoch: some input below has rows, or a group without a key has yet to appear."""
        if id(node) not in self.moving:
            self.moving[id(node)] = False  # what depends on itself alone stands still
            self.moving[id(node)] = self._moves_by_itself(node) or any(map(self._moves, inputs(node)))
        return self.moving[id(node)]

    def _moves_by_itself(self, node: Node) -> bool:
        if isinstance(node, SourceNode):
            return node.name in self.changes
        if isinstance(node, Operator) and node.name in self.imported:
            return True
        return isinstance(node, Operator) and (node.time_driven or (node.row_over_nothing and not self.covers(node.trace)))

    def piece_changes(self, piece: Piece) -> bool:
        return any(map(self._moves, read_by(piece)))

    def is_wide(self, piece: Piece) -> bool:
        """Whether enough rows come for the fast way."""
        return any(isinstance(node, SourceNode) and node.name in self.wide for node in behind_views(read_by(piece)))

    def plan(self, node: Node) -> Java:
        """The node's change as a plan; shared by all its readers."""
        if id(node) not in self.frames:
            plan = self._build(node)
            if self.consumers.get(id(node), 0) > 1 and not isinstance(node, SourceNode) and stateful(node):
                frame = self.catalyst.frame(plan)
                self.persisted.append(frame)
                plan = cached_plan(frame)
            self.frames[id(node)] = plan
        return self.frames[id(node)]

    def _build(self, node: Node) -> Java:
        match node:
            case SourceNode():
                return analyzed(self.changes[node.name]() if node.name in self.changes else self._nothing(node))
            case ViewNode():
                return self._fill(node.body.piece)
            case Operator():
                return analyzed(STEPS[type(node)](self, node))
        raise AssertionError(node)

    def rows(self, piece: Piece) -> DataFrame:
        """A template with this epoch's changes in its holes."""
        return self.catalyst.frame(self._fill(piece))

    def provide(self, node: GatheredNode, rows: DataFrame) -> None:
        """What stands for the node from here on."""
        self.frames[id(node)] = analyzed(rows)

    def _nothing(self, node: SourceNode) -> DataFrame:
        return self.context.session.createDataFrame([], StructType(list(node.schema.fields)).add(DIFF, LongType()))

    def _fill(self, piece: Piece) -> Java:
        if isinstance(piece, Branch):
            return piece.filled(self.catalyst, [self._fill(child) for child in piece.children], self.moment)
        return self._aliased(piece, self.plan(piece.node))

    def _aliased(self, hole: Hole, plan: Java) -> Java:
        """The columns of a change in the place of the hole's attributes."""
        return self.catalyst.in_place(plan, hole.attributes)

    def work(self, trace: TraceName, kind: Kind) -> Work:
        s, writes = self.context, None if self.targets is None else self.targets.get(trace, frozenset())
        folder, covers = self.receipts_folder if trace in s.kept_changes else None, self.covers(trace)
        part = trace, self.lower, self.upper, s.shards, kind, covers
        return Work(s.home, s.flow, s.run, *part, self.receipts, writes, folder, s.sharing)

    def exchange(self, frame: DataFrame, node: Node | None = None) -> DataFrame:
        """Rows to their shards. Of a node that only writes some shards and that nobody reads, only rows of these."""
        if node is not None and self.targets is not None and node in wanted_ends(self.context.graph, self.targets):
            wanted = frozenset[HashRange]().union(*(self.targets.get(trace, frozenset()) for trace in traces_of(node)))
            shards = shards_in(wanted, self.context.shards)
            frame = frame.where(self.context.shard.isin(*shards))
        return frame.repartitionById(self.context.shards, self.context.shard)

    def persist(self, rows: DataFrame) -> None:
        """Rows that several read, for the length of the job."""
        self.persisted.append(rows.persist())

    @property
    def reads_by_shard(self) -> bool:
        """Whether each shard's task may read all of the input itself."""
        return self.context.shards <= FEW_SHARDS

    @property
    def numbers(self) -> DataFrame:
        """The numbers of the shards, one for each task."""
        return self.context.session.range(0, self.context.shards, 1, self.context.shards)

    def calls(self, schema: StructType) -> DataFrame:
        """Rows that count for nothing, so that the tasks of an operator run even where no row arrives."""
        return calling(self, schema)

    def marker(self, rows: DataFrame) -> DataFrame:
        """A row that counts for nothing, so that the task of a group without a key runs even where no row arrives."""
        values = {HASH: F.lit(42), DIFF: F.lit(0), ROW: F.lit(0), GHOST: F.lit(True)}
        columns = [
            values.get(f.name, F.lit(None)).cast(f.dataType).alias(f.name) for f in rows.schema.fields
        ]
        return self.context.session.range(1).select(columns)

    def _retain(self, view: ViewNode) -> DataFrame:
        if id(view) in self.kept:
            return self.kept[id(view)]
        assert view.feed is not None and view.payload is not None
        body = self._aliased(Hole(view, view.body.output + view.body.carried), self.plan(view))  # a persisted plan has new ids
        rows = self.catalyst.frame(self.catalyst.with_children(view.feed.plan, [body]))
        task = RetainTask(self.work(view.trace, "diffs"), view.payload)
        if view.sharded:
            return rows.mapInArrow(task, NOTHING)
        lately = self.context.lately
        few = self.targets is None and lately is not None and lately[view.trace] < FEW_ROWS
        return (rows.repartition(1) if few else self.exchange(rows, view)).mapInArrow(task, NOTHING)
