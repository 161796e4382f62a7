"""A narrow epoch: few rows, so this process holds them, and calls the kernels itself. No exchange, no Python worker, nothing planned anew.

Between the kernels Spark evaluates what the query says, from plans that were made for the first such epoch (`bridge.kept_plans`). What must
not run here (a user's fold, which may do anything to the process that it runs in) goes through the general way as a job of its own, with
its input and its output held here. Only what the epoch's input can reach is looked at.

Promise: the same layers as the general way, to the bit. Raises `TooMany` where rows become too many to be held; nothing has happened then.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import LongType, StructType

from nosync.bridge.catalyst import Java, kind
from nosync.bridge.kept_plans import KeptPlan, Leaf, arrow_of
from nosync.bridge.sessions import active
from nosync.compile.rules.fold import FoldNode
from nosync.compile.rules.join import JoinNode
from nosync.graph.nodes import Node, SourceNode, ViewNode
from nosync.graph.operators import GatheredNode, Operator
from nosync.graph.templates import Branch, Hole, Piece
from nosync.graph.walk import inputs, is_plain, read_by
from nosync.model.columns import DIFF, GHOST, HASH, ROW
from nosync.model.identifiers import TraceName
from nosync.model.layers import Kind
from nosync.model.source import Shaped, Slice
from nosync.spark.event_time import newest_in, time_of
from nosync.spark.job import EpochJob
from nosync.spark.narrow_state import HeldRows, NarrowState
from nosync.spark.narrow_work import NarrowWork
from nosync.spark.operators import STEPS
from nosync.spark.receipts import Receipt, agreed, completed, forget, left_in
from nosync.spark.retain import RetainTask
from nosync.spark.schemas import NOTHING, change_schema
from nosync.spark.steps.join import rows_of_join
from nosync.spark.waves import Part, Wave


@dataclass
class NarrowJob(EpochJob):
    """One epoch. `tables` and `shaped` say how to get the rows of sources that need not be read by a job."""

    tables: Mapping[str, Callable[[], pa.Table | None]] = field(default_factory=dict)
    shaped: Mapping[str, tuple[Shaped, Slice]] = field(default_factory=dict)
    held: dict[int, HeldRows] = field(default_factory=dict)
    loaded: set[int] = field(default_factory=set)
    ahead: dict[Any, list[pa.RecordBatch]] = field(default_factory=dict)

    @cached_property
    def state(self) -> NarrowState:
        if self.context.narrow is None:
            self.context.narrow = NarrowState(self.context)
        found: NarrowState = self.context.narrow
        return found

    def run(self, of_rejects: bool = False) -> list[Receipt]:
        self.receipts.value = []
        with active(self.state.session):
            for wave in self.state.waves.of(self._touched_ends(), self.touched):
                self._evaluate_ahead(wave)
                for node, part in wave:
                    if part == "rows" and isinstance(node, ViewNode):
                        self._retain(node)
                    else:
                        self.change(node)
            for key in self.loaded:
                self.state.leaves[key].release()
        receipts = agreed(self.receipts.value)
        self.context.lately = Counter()
        for receipt in receipts:
            self.context.lately[receipt.trace] += receipt.rows
        return receipts

    @property
    def read(self) -> frozenset[int]:
        return frozenset()

    def _touched_ends(self) -> list[Node]:
        graph, reach = self.context.graph, self.state.reach
        moved: list[Node] = [graph.sources[name] for name in self.changes if name in graph.sources]
        moved += [node for node in reach.itself if self._moves_by_itself(node)]
        self.touched = reach.readers.reached(moved)
        return [node for key, node in self.touched.items() if key in reach.ends]

    def change(self, node: Node) -> HeldRows:
        """What is new in a node."""
        if id(node) not in self.held:
            self.held[id(node)] = self._changed(node)
        return self.held[id(node)]

    def _changed(self, node: Node) -> HeldRows:
        if id(node) not in self.touched:
            return HeldRows(NOTHING, [])
        match node:
            case SourceNode():
                return self._arrived(node)
            case ViewNode():
                return self._evaluated(node.body.piece)
            case Operator():
                if not self._moves_by_itself(node) and not any(map(self._moves, inputs(node))):
                    return HeldRows(NOTHING, [])
                found: Any = self._in_workers(node) if isinstance(node, FoldNode) else STEPS[type(node)](self, node)
                return HeldRows(found.schema, found.batches)
        raise AssertionError(node)

    def _arrived(self, node: SourceNode) -> HeldRows:
        table = self.tables[node.name]() if node.name in self.tables else None
        if table is not None:
            self.observed[node.name] = {"rows": len(table)}
            if node.time is not None:
                self.observed[time_of(node.name)] = {"newest": newest_in(table, node.time)}
            return HeldRows(_source_schema(node), table.to_batches() if len(table) else [])
        if node.name in self.shaped and (rows := self._shaped(node, *self.shaped[node.name])) is not None:
            return rows
        frame = self.changes[node.name]()
        batches, observed = self.state.channel.collected(frame)
        self.observed |= observed
        return HeldRows(frame.schema, batches)

    def _shaped(self, node: SourceNode, shaped: Shaped, slice: Slice) -> HeldRows | None:
        """A source's own rows through what Spark makes of them, from a kept plan."""
        if (table := shaped.table(slice)) is None:
            return None
        if node.name not in self.state.shapes:
            leaf = Leaf(self.state.channel, shaped.schema)
            frame = shaped.shape(self.state.catalyst.frame(leaf.plan))
            self.state.shapes[node.name] = leaf, KeptPlan(self.state.channel, frame, [leaf])
        leaf, kept = self.state.shapes[node.name]
        leaf.put(table.to_batches())
        rows, unfit = _without_unfit(HeldRows(kept.schema, kept.rows()), shaped.unfit)
        self.observed[node.name] = {"rows": len(table), "rejected": unfit}
        if node.time is not None:
            found = pa.Table.from_batches(rows.batches, arrow_of(rows.schema, self.state.channel.zone))
            self.observed[time_of(node.name)] = {"newest": newest_in(found, node.time)}
        return rows

    def _moves(self, node: Node) -> bool:
        """Whether anything has come of it in this epoch."""
        if id(node) not in self.touched and not isinstance(node, GatheredNode):
            return False
        if isinstance(node, SourceNode):
            return node.name in self.changes
        if isinstance(node, ViewNode) and not self._is_leaf(node):
            return any(map(self._moves, inputs(node)))
        return bool(self.change(node).batches)

    def rows(self, piece: Piece) -> Any:
        return self._evaluated(piece)

    def _evaluated(self, piece: Piece, key: Any = None) -> HeldRows:
        """A template over what is held."""
        key = id(piece) if key is None else key
        if not self._is_lasting(piece):
            return self._by_job(piece)
        kept = self.state.plans.get(key)
        if kept is None:
            frame, leaves = self.state.catalyst.frame(self._fill(piece)), [self._leaf(node) for node in self._leaves(piece)]
            kept = self.state.plans[key] = KeptPlan(self.state.channel, frame, leaves)
        if key in self.ahead:
            return HeldRows(kept.schema, self.ahead.pop(key))
        if not self._load(piece):
            return HeldRows(kept.schema, [])
        return HeldRows(kept.schema, kept.rows()) if kept.lasting else self._by_job(piece)

    def _evaluate_ahead(self, wave: Wave) -> None:
        """All that the nodes of a wave will ask for and that needs no job, in one call."""
        found: dict[Any, KeptPlan] = {}
        for key, piece in (self._asked(node, part) for node, part in wave if any(map(self._moves, inputs(node)))):
            kept = self.state.plans.get(key)
            if kept is not None and kept.without_job and self._load(piece):
                found[key] = kept
        if len(found) > 1:
            self.ahead |= zip(found, self.state.channel.run(list(found.values())), strict=True)

    def _asked(self, node: Node, part: Part) -> tuple[Any, Piece]:
        """The template that a node evaluates first, and the name of its plan."""
        match node:
            case ViewNode() if part == "rows":
                return (id(node), "rows"), self._kept_rows(node)
            case ViewNode():
                piece = node.body.piece
            case JoinNode():
                piece = rows_of_join(self, node)
            case Operator():
                piece = node.feed.piece
            case _:
                raise AssertionError(node)
        return id(piece), piece

    def _by_job(self, piece: Piece) -> HeldRows:
        """Planned for this epoch alone: by event time, or with an exchange in it."""
        frame = self.state.catalyst.frame(self._fill(piece))
        if not self._load(piece):
            return HeldRows(frame.schema, [])
        batches, observed = self.state.channel.collected(frame)
        self.observed |= observed
        return HeldRows(frame.schema, batches)

    def _load(self, piece: Piece) -> bool:
        """Puts what has changed where the plan reads it; whether there is anything."""
        found = False
        for node in self._leaves(piece):
            if id(node) not in self.loaded:
                self.loaded.add(id(node))
                self._leaf(node).put((self._moves(node) and self.change(node).batches) or [])
            found |= self._leaf(node).filled
        return found

    def _leaves(self, piece: Piece) -> list[Node]:
        found: dict[int, Node] = {}
        for node in read_by(piece):
            below = [node] if self._is_leaf(node) else self._leaves(node.body.piece)  # type: ignore[union-attr]
            found |= {id(one): one for one in below}
        return list(found.values())

    def _is_leaf(self, node: Node) -> bool:
        """A view is computed where it is read, unless several read it."""
        return not isinstance(node, ViewNode) or id(node) in self.state.leaf_views

    def _is_lasting(self, piece: Piece) -> bool:
        """Whether nothing in it goes by the event time of this very epoch."""
        return is_plain(piece) and all(
            self._is_lasting(node.body.piece) for node in read_by(piece) if isinstance(node, ViewNode) and not self._is_leaf(node)
        )

    def plan(self, node: Node) -> Java:
        return self._leaf(node).plan if self._is_leaf(node) else self._fill(node.body.piece)  # type: ignore[union-attr]

    def _fill(self, piece: Piece) -> Java:
        """As ever, but for exchanges that bring groups together: here all rows are together."""
        if isinstance(piece, Branch) and kind(piece.plan) == "RepartitionByExpression":
            return self._fill(piece.children[0])
        return super()._fill(piece)

    def _leaf(self, node: Node) -> Leaf:
        if id(node) not in self.state.leaves:
            self.state.leaves[id(node)] = Leaf(self.state.channel, self._schema(node))
        return self.state.leaves[id(node)]

    def _schema(self, node: Node) -> StructType:
        match node:
            case SourceNode():
                return _source_schema(node)
            case GatheredNode():
                return node.schema
            case ViewNode():
                return self._evaluated_schema(node)
        return change_schema(node.schema, node.sharded)

    def _evaluated_schema(self, view: ViewNode) -> StructType:
        return self.state.catalyst.frame(self._fill(view.body.piece)).schema

    def provide(self, node: GatheredNode, rows: Any) -> None:
        self.held[id(node)] = rows
        self.loaded.discard(id(node))

    def persist(self, rows: Any) -> None:
        """They are held."""

    def is_wide(self, piece: Piece) -> bool:
        return False

    def work(self, trace: TraceName, kind: Kind) -> NarrowWork:
        s = self.context
        part = trace, self.lower, self.upper, s.shards, kind, self.covers(trace)
        return NarrowWork(s.home, s.flow, s.run, *part, self.receipts, sharing=s.sharing)

    def exchange(self, frame: Any, node: Node | None = None) -> Any:
        return frame

    def marker(self, rows: Any) -> Any:
        return self._row(rows.schema, {HASH: 42, DIFF: 0, ROW: 0, GHOST: True})

    def calls(self, schema: StructType) -> Any:
        return self._row(schema, {HASH: 0, DIFF: 0, ROW: 0})

    def _row(self, schema: StructType, values: Mapping[str, Any]) -> HeldRows:
        types = arrow_of(schema, self.state.channel.zone)
        columns = [pa.array([values[f.name]], f.type) if f.name in values else pa.nulls(1, f.type) for f in types]
        return HeldRows(schema, [pa.RecordBatch.from_arrays(columns, schema=types)])

    def _kept_rows(self, view: ViewNode) -> Piece:
        assert view.feed is not None
        return Branch(view.feed.plan, [Hole(view, view.body.output + view.body.carried)])

    def _retain(self, view: ViewNode) -> Any:
        assert view.payload is not None
        if not self._moves(view):
            return None
        rows = self._evaluated(self._kept_rows(view), key=(id(view), "rows"))
        return rows.mapInArrow(RetainTask(self.work(view.trace, "diffs"), view.payload), NOTHING)

    def _in_workers(self, node: Operator) -> HeldRows:
        """One operator by the general way, over what is held."""
        outer = EpochJob(self.context, self.lower, self.upper, self.covers, {}, frozenset(), seen=self.seen)
        for leaf in self._leaves(node.feed.piece):
            self._load(Hole(leaf, []))
            outer.frames[id(leaf)] = self._leaf(leaf).plan
            outer.moving[id(leaf)] = self._moves(leaf)
        frame = STEPS[type(node)](outer, node)
        try:
            batches, observed = self.state.channel.collected(frame)
            self.receipts.value = completed(self.receipts.value, left_in(outer.receipts_folder))
        finally:
            forget(outer.receipts_folder)
            for persisted in outer.persisted:
                persisted.unpersist()
        self.observed |= observed
        return HeldRows(frame.schema, batches)


def _without_unfit(rows: HeldRows, unfit: str) -> tuple[HeldRows, int]:
    """The rows that fit, and how many do not. `unfit` is the first column, if there is one."""
    if not unfit:
        return rows, 0
    fitting = [batch.filter(pc.is_null(batch.column(0))).drop_columns([unfit]) for batch in rows.batches]
    kept = [batch for batch in fitting if batch.num_rows]
    return HeldRows(StructType(rows.schema.fields[1:]), kept), len(rows) - sum(batch.num_rows for batch in kept)


def _source_schema(node: SourceNode) -> StructType:
    return StructType(list(node.schema.fields)).add(DIFF, LongType())
