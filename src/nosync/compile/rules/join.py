"""A Join of Spark's plan as an operator.

Spark says which conditions are equalities of keys (null-safe ones become two keys each). Both sides' changes go to the shards
of their keys in one exchange. A join without keys has one key for all, and so one shard. What else the condition says is Spark's to
decide, pair by pair: for an inner join a filter above is enough, for the others see `conditional_joins`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import IntegerType, StructField, StructType

from nosync.bridge.arrow import arrow_type
from nosync.bridge.catalyst import Catalyst, Java, children, data_type, items, kind
from nosync.compile.conditional_joins import MatchNode, by_pair, existence
from nosync.compile.event_time import clock_over, micros, without_late, words_of
from nosync.compile.fingerprint import fingerprint
from nosync.compile.refusal import check_key, refuse_node
from nosync.compile.time_bounds import ONE_SIDED, UNBOUND, bounds_of, position_of
from nosync.compile.wording import number
from nosync.graph.lateness import OnTime
from nosync.graph.operators import Operator
from nosync.graph.templates import Branch, Hole, Template
from nosync.kernels.join import LEFT, MATCHED, RIGHT, How, Joining
from nosync.model.columns import HASH, PART, ROW, SIDE
from nosync.model.identifiers import TraceName
from nosync.model.picture import Description
from nosync.model.watermark import Expiry

if TYPE_CHECKING:
    from nosync.compile.query import Query

HOWS: dict[str, How] = {
    "Inner": "inner",
    "Cross": "inner",
    "LeftOuter": "left",
    "RightOuter": "right",
    "FullOuter": "full",
    "LeftSingle": "single",
    "LeftSemi": "semi",
    "LeftAnti": "anti",
    "ExistenceJoin": "existence",
}
SIDES = {"right": (RIGHT,), "full": (LEFT, RIGHT)}  # sides of which rows without a match count; else the left


@dataclass(eq=False, slots=True, kw_only=True)
class JoinNode(Operator):
    """Two collections joined on their keys. `payloads` are what the sides keep. A column `_part`, if any, says what a row stands for."""

    spec: Joining
    payloads: tuple[pa.Schema, pa.Schema]

    @property
    def traces(self) -> tuple[TraceName, ...]:
        return TraceName(f"{self.name}/left"), TraceName(f"{self.name}/right")

    @property
    def description(self) -> Description:
        endless = ONE_SIDED if any(self.expiries) else UNBOUND
        if not self.spec.left:
            why = "there is no equal key: every change meets all of the other side"
            return Description("both sides, as one group", why, "in proportion to the change times the other side", endless=endless)
        costs = "in proportion to the change and the rows that it meets"
        return Description("both sides by key", "rows of either side may come or go later", costs, endless=endless)


@dataclass(frozen=True, slots=True)
class Keys:
    """The equalities of a join, and the rest of its condition. Keys are normalised, of equal types, and never equal where null."""

    left: list[Java]
    right: list[Java]
    rest: Java | None


def joined(query: "Query", plan: Java) -> Template:
    """The join's change; equal joins over equal inputs are one operator."""
    how = HOWS.get(kind(plan.joinType()).rstrip("$"))
    if how is None:
        raise refuse_node(plan, query.view)
    keys = _keys(query, plan)
    left, right = (query.arranged(child) for child in _sides(plan, how))
    left, right, expiries = (left, right, ()) if how == "single" else _timed(query.catalyst, left, right, keys)
    if keys.rest is None or how == "inner":
        return _by_key(query, plan, _JoinNodes(query, plan, how, keys, left, right, expiries=expiries))
    nodes = _JoinNodes(query, plan, "inner", keys, left, right, SIDES.get(how, (LEFT,)), expiries)
    part = query.catalyst.attribute(PART, query.catalyst.types.IntegerType)
    pairs = nodes.template([*left.output, *right.output, part])
    known = len(query.operators)
    found = by_pair(query, plan, how, pairs.under(_counting(query, pairs, keys.rest, part)))
    for node in query.operators[known:]:
        if isinstance(node, MatchNode) and expiries and (expiry := expiries[node.spec.side - 1]) is not None:
            node.expiries = (replace(expiry, column=f"k{expiry.column[1:]}"),)
    return found


def _timed(catalyst: Catalyst, left: Template, right: Template, keys: Keys) -> tuple[Template, Template, tuple[Expiry | None, ...]]:
    """Where event times of both sides bound each other: the sides without what is late, and when their rows can match no more.

    A row is kept until the watermark has passed it in any case, since until then it may be removed.
    """
    bounds = bounds_of((left.output, right.output), list(zip(keys.left, keys.right, strict=True)), keys.rest)
    clock = clock_over(left, right)
    if bounds is None or not clock.delays:
        return left, right, ()
    sides, expiries = [], list[Expiry | None]()
    for child, index, later, letter in zip((left, right), bounds.columns, bounds.later, "lr", strict=True):
        time = child.output[index]
        sides.append(without_late(catalyst, child, micros(catalyst, time, 1), clock, f" by {letter}{index}"))
        expiries.append(None if later is None else Expiry(f"{letter}{index}", clock, max(later, 0), time=words_of(time)))
    return sides[0], sides[1], tuple(expiries)


def _by_key(query: "Query", plan: Java, nodes: "_JoinNodes") -> Template:
    """Equal keys decide which rows match; for pairs, a filter above decides the rest."""
    output = items(plan.output())
    if nodes.how == "existence":
        part = query.catalyst.attribute(PART, query.catalyst.types.IntegerType)
        found = nodes.template([*_in_place(nodes.left.output, output), part])
        return found.under(existence(query.catalyst, output, found.carried, part), output)
    found = nodes.template(_in_place([*nodes.left.output, *nodes.right_output], output), output)
    return found if nodes.keys.rest is None else found.under(query.catalyst.logical.Filter(nodes.keys.rest, query.catalyst.nowhere))


def _in_place(kept: Sequence[Java], output: Sequence[Java]) -> list[Java]:
    """The columns of the join, of which some may be null that never are below, in the order in which the sides are kept."""
    known = {number(a): a for a in output}
    return [known[number(a)] for a in kept]


def _counting(query: "Query", pairs: Template, condition: Java, part: Java) -> Java:
    """A filter that lets only those pairs through that the condition counts."""
    expressions, types = query.catalyst.expressions, query.catalyst.types
    row = expressions.Not(expressions.EqualTo(part, query.catalyst.literal(MATCHED, types.IntegerType)))
    return query.catalyst.logical.Filter(expressions.Or(row, condition), query.catalyst.nowhere)


def _sides(plan: Java, how: How) -> list[Java]:
    """The children. Where any row of the right will do, the optimiser has put a limit over it: it means nothing here."""
    left, right = children(plan)
    while how in ("semi", "anti") and kind(right) == "LocalLimit" and plan.condition().isEmpty():
        right = children(right)[0]
    return [left, right]


def _keys(query: "Query", plan: Java) -> Keys:
    found = query.catalyst.equi_join_keys(plan)
    if found is None:
        condition = plan.condition()
        return Keys([], [], condition.get() if condition.isDefined() else None)
    left, right, rest = found
    for key in left:
        check_key(data_type(key), str(key.sql()), query.view)
    normalised = query.catalyst.normalised
    return Keys([normalised(key) for key in left], [normalised(key) for key in right], rest)


@dataclass(frozen=True, slots=True)
class _JoinNodes:
    """Makes the operator. Columns: l0, l1... and r0, r1... of the sides, and k0, k1... for keys that are no columns."""

    query: "Query"
    plan: Java
    how: How
    keys: Keys
    left: Template
    right: Template
    alone: tuple[int, ...] = ()
    expiries: tuple[Expiry | None, ...] = ()

    def template(self, kept: list[Java], output: list[Java] | None = None) -> Template:
        """The operator's change under these attributes, in the order of `output` if that is another; the operator is made where there is
        none yet.
        """
        node = self.query.known(JoinNode, self.plan, [self.left, self.right])
        if node is None:
            node = self._node()
            for side, trace in zip((self.left.piece, self.right.piece), node.traces, strict=True):
                if isinstance(side, OnTime):
                    side.reader = trace
            self.query.operators.append(node)
        carried = self.query.carried(node.sharded)
        return Template(Hole(node, kept + carried), kept if output is None else output, carried, node.append_only)

    @property
    def catalyst(self) -> Catalyst:
        return self.query.catalyst

    @property
    def right_output(self) -> list[Java]:
        """Columns of the right that anybody asks for."""
        return [] if self.how in ("semi", "anti", "existence") else self.right.output

    def _node(self) -> JoinNode:
        names = self._names(self.keys.left, "l", self.left.output), self._names(self.keys.right, "r", self.right_output)
        spec = Joining(self.how, names[0], names[1], self.alone)
        branches = self._branch(LEFT, spec), self._branch(RIGHT, spec)
        union = self.catalyst.logical.Union(self.catalyst.seq([branch.plan for branch in branches]), False, False)
        append_only = self.left.append_only and self.right.append_only
        feed = Template(Branch(union, list(branches)), [], [], append_only)
        feed.fingerprint = fingerprint(self.query.plans.says(self.plan), [self.left, self.right])
        payloads = self._payload("l", self.left.output, names[0]), self._payload("r", self.right_output, names[1])
        return JoinNode(
            name=self.query.operator_name("join"), feed=feed, schema=self._schema(), view=self.query.view, plan=self.plan,
            append_only=append_only and self.how in ("inner", "semi"), sharded=bool(self.keys.left), spec=spec, payloads=payloads,
            expiries=tuple(self._kept(expiry, payload, spec) for expiry, payload in zip(self.expiries, payloads, strict=False)),
        )  # fmt: skip

    def _kept(self, expiry: Expiry | None, payload: pa.Schema, spec: Joining) -> Expiry | None:
        """By the column in which the side keeps its time: of a side nobody asks for, its key if that is the time; else by none."""
        if expiry is None or expiry.column in payload.names:
            return expiry
        place = position_of(self.keys.right, self.right.output[int(expiry.column[1:])])
        return None if place is None else replace(expiry, column=spec.right[place])

    def _names(self, keys: list[Java], letter: str, output: list[Java]) -> tuple[str, ...]:
        """Where each key lies: in a column of the side, or computed beside."""
        places = {str(a.exprId().toString()): f"{letter}{i}" for i, a in enumerate(output)}
        plain = [places.get(str(key.exprId().toString())) if kind(key) == "AttributeReference" else None for key in keys]
        return tuple(name or f"k{i}" for i, name in enumerate(plain))

    def _branch(self, side: int, spec: Joining) -> Branch:
        """One side's change: the other side's columns are null."""
        catalyst, mine = self.catalyst, self.left if side == LEFT else self.right
        keys, names = (self.keys.left, spec.left) if side == LEFT else (self.keys.right, spec.right)
        columns = {f"l{i}": a for i, a in enumerate(self.left.output)} | {f"r{i}": a for i, a in enumerate(self.right_output)}
        values = {name: a if name[0] == "lr"[side - 1] else catalyst.null(a.dataType()) for name, a in columns.items()}
        for i, key in enumerate(keys):
            if f"k{i}" in (*spec.left, *spec.right):
                values[f"k{i}"] = key if names[i] == f"k{i}" else catalyst.null(key.dataType())
        row = catalyst.hash([value for name, value in values.items() if name in names or name[0] == "lr"[side - 1]])
        values |= {SIDE: catalyst.literal(side, catalyst.types.IntegerType), HASH: self._hash(keys, row, side, spec), ROW: row}
        return Branch(catalyst.feed(((value, name) for name, value in values.items()), mine.carried[-1:]), [mine.piece])

    def _hash(self, keys: list[Java], row: Java, side: int, spec: Joining) -> Java:
        """The hash of the key. Rows with a null in it meet nothing: they are spread over all shards."""
        of_key = self.catalyst.hash(keys)
        tests = [self.catalyst.expressions.IsNull(key) for key in keys if key.nullable()]
        if not tests or not (spec.kept_left if side == LEFT else spec.kept_right):
            return of_key
        return self.catalyst.expressions.If(reduce(self.catalyst.expressions.Or, tests), row, of_key)

    def _payload(self, letter: str, output: list[Java], names: tuple[str, ...]) -> pa.Schema:
        what = f'view "{self.query.view}"'
        fields = [(f"{letter}{i}", arrow_type(data_type(a), f'{what}, column "{a.name()}",')) for i, a in enumerate(output)]
        keys = [(name, arrow_type(data_type(key), str(key.sql()))) for name, key in zip(names, self.keys.left, strict=True)]
        return pa.schema(fields + [key for key in dict(keys).items() if key[0][0] == "k"])

    def _schema(self) -> StructType:
        """The columns of the change."""
        fields = [StructField(f"l{i}", data_type(a)) for i, a in enumerate(self.left.output)]
        fields += [StructField(f"r{i}", data_type(a)) for i, a in enumerate(self.right_output)]
        part = [StructField(PART, IntegerType())] if self.alone or self.how == "existence" else []
        return StructType(fields + part)
