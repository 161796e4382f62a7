"""Outer, semi, anti and existence joins whose condition says more than equal keys.

Such a join comes in as pairs that already satisfy the condition and, beside them, the changed rows of the sides that count even
without a match; `_part` says which is which. A `MatchNode` for each of these sides counts pairs by row and adds the rows without any.
It works on the hash of the row, so that neither a hot key nor a join without a key puts all rows into one shard.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import IntegerType, StructField, StructType

from nosync.bridge.arrow import arrow_type
from nosync.bridge.catalyst import Catalyst, Java, children, data_type, items
from nosync.compile.fingerprint import digest
from nosync.compile.time_bounds import UNBOUND
from nosync.graph.operators import Operator
from nosync.graph.templates import Branch, Hole, Template, holes
from nosync.kernels.join import LEFT, MATCHED, RIGHT, How
from nosync.kernels.matching import Matching, Wanted
from nosync.model.columns import HASH, PART
from nosync.model.picture import CHANGE, Description

if TYPE_CHECKING:
    from nosync.compile.query import Query

WANTED: dict[How, Wanted] = {"single": "single", "semi": "matched", "anti": "unmatched", "existence": "both"}


@dataclass(eq=False, slots=True, kw_only=True)
class MatchNode(Operator):
    """Rows of one side of a join, by whether they are part of any of the pairs of its input. `columns` are the side's."""

    spec: Matching
    columns: pa.Schema

    @property
    def description(self) -> Description:
        why = "a condition beyond equal keys decides which pairs match"
        return Description("the number of matches by row", why, CHANGE, endless=UNBOUND)


def by_pair(query: "Query", plan: Java, how: How, pairs: Template) -> Template:
    """The join's change from its pairs. The columns of `pairs` are those of both sides and `_part`."""
    cut, output = len(items(children(plan)[0].output())), items(plan.output())
    left, right, part = pairs.output[:cut], pairs.output[cut:-1], pairs.output[-1]
    found, wanted = pairs, WANTED.get(how, "unmatched")
    rows_alone = how in ("semi", "anti", "existence")
    if how != "right":
        found = _matched(query, plan, Matching(wanted, LEFT, passing=not rows_alone), found, left, [] if rows_alone else right, part)
    if how in ("right", "full"):
        found = _matched(query, plan, Matching(wanted, RIGHT, passing=True), found, right, left, part)
    if how == "existence":
        return found.under(existence(query.catalyst, output, found.carried, part), output)
    return found.under(query.catalyst.project(output + found.carried, query.catalyst.nowhere), output)


def existence(catalyst: Catalyst, output: list[Java], carried: list[Java], part: Java) -> Java:
    """A projection to the left's columns and whether the row has a match."""
    exists = catalyst.expressions.EqualTo(part, catalyst.literal(MATCHED, catalyst.types.IntegerType))
    return catalyst.project([*output[:-1], catalyst.alias(exists, output[-1].name(), like=output[-1]), *carried], catalyst.nowhere)


def _matched(query: "Query", plan: Java, spec: Matching, pairs: Template, own: list[Java], other: list[Java], part: Java) -> Template:
    """Columns of the result: the side's own, those of the other side, `_part`."""
    node = query.known(MatchNode, plan, [pairs])
    if node is None:
        node = _node(query, plan, spec, pairs, own, other, part)
        query.operators.append(node)
    carried = query.carried(sharded=True)
    return Template(Hole(node, [*own, *other, part, *carried]), [*own, *other, part], carried, append_only=False)


def _node(query: "Query", plan: Java, spec: Matching, pairs: Template, own: list[Java], other: list[Java], part: Java) -> MatchNode:
    catalyst = query.catalyst
    named = [(f"m{i}", a) for i, a in enumerate(own)] + [(f"o{i}", a) for i, a in enumerate(other)] + [(PART, part)]
    elsewhere = catalyst.literal(LEFT if spec.side == RIGHT else RIGHT, catalyst.types.IntegerType)
    of_other = catalyst.expressions.EqualTo(part, elsewhere)  # rows of the other side go where they are, spread by their own hash
    place = catalyst.expressions.If(of_other, catalyst.hash(other), catalyst.hash(own)) if other else catalyst.hash(own)
    columns = [catalyst.alias(a, name) for name, a in named] + [catalyst.alias(place, HASH), pairs.carried[-1]]
    feed = Template(Branch(catalyst.project(columns, catalyst.nowhere), [pairs.piece]), [], [], append_only=False)
    feed.fingerprint = digest(f"{query.plans.says(plan)} {spec} over {[node.fingerprint for node in _operators(pairs)]}")
    what = f'view "{query.view}"'
    kept = pa.schema([(name, arrow_type(data_type(a), f'{what}, column "{a.name()}",')) for name, a in named[: len(own)]])
    schema = StructType([StructField(name, data_type(a)) for name, a in named[:-1]] + [StructField(PART, IntegerType())])
    return MatchNode(
        name=query.operator_name("matches"), feed=feed, schema=schema, view=query.view, plan=plan, spec=spec, columns=kept
    )


def _operators(pairs: Template) -> Iterator[Operator]:
    for hole in holes(pairs.piece):
        assert isinstance(hole.node, Operator)
        yield hole.node
