"""Fingerprints: what an operator or a view computes, so that state is only ever used by what would make it again.

They depend on what is computed and from what, all the way up to the sources; not on the names of views and columns, the order of
declaration, or columns of a source that nobody asks for. What an operator keeps has its columns in the order in which they come to it, so
that order is part of its fingerprint. A view's rows are kept in an order of their own, which follows from what the columns are.
"""

import hashlib
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from nosync.bridge.catalyst import Catalyst, Java, children, items, kind
from nosync.bridge.functions import function_of
from nosync.compile.function_code import code_of
from nosync.compile.wording import MARKED, identities, number, python_calls, said
from nosync.graph.nodes import Node, SourceNode, ViewNode
from nosync.graph.operators import GatheredNode, Operator
from nosync.graph.templates import Hole, Template, holes

Found = TypeVar("Found")
LONG = 80
BY_NAME = ("FlatMap", "MapIn")  # functions that see rows under the names of their columns
AS_THEY_ARE = ("Filter", "Join", "Generate", "Expand")  # where the order of columns means nothing


def digest(what: str) -> str:
    return hashlib.sha256(what.encode()).hexdigest()[:16]


def fingerprint(what: str, inputs: Sequence[Template]) -> str:
    """An operator by what it computes, over inputs that are known by theirs."""
    return digest(f"{what} over {', '.join(child.fingerprint for child in inputs)}")


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a plan gives, but for names: which rows, and by its number what each column is among those rows."""

    rows: str
    columns: Mapping[str, str]


class ByPlan(Generic[Found]):
    """Something that follows from a plan, found out once. A plan that is known is always the same object."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Java, Found]] = {}

    def of(self, plan: Java, find: Callable[[Java], Found]) -> Found:
        if id(plan) not in self._known:
            self._known[id(plan)] = (plan, find(plan))
        return self._known[id(plan)][1]


class Plans:
    """The plans of one query by what they compute: each node is looked at once, however many operators stand over it. `leaves` say what
    placeholders stand for, `functions` what the first Python function of a name says: another of that name is known by its code.
    """

    def __init__(self, catalyst: Catalyst, leaves: Mapping[int, Node], functions: dict[str, str]) -> None:
        self.catalyst, self.leaves, self.functions = catalyst, leaves, functions
        self._meanings = ByPlan[Meaning]()
        self._references = ByPlan[frozenset[str]]()

    def rows(self, plan: Java, template: Template) -> str:
        """Which rows a plan gives, whatever their columns: what its nodes say all the way down, and what the holes of its template stand
        for, left to right.
        """
        found = list(holes(template.piece))
        asked = self._asked(plan) if any(isinstance(hole.node, SourceNode) for hole in found) else frozenset()
        return f"{self.meaning(plan).rows} over {[_origin(hole, asked) for hole in found]}"

    def gives(self, plan: Java) -> list[str]:
        """What each column of a plan is. The types are said, too: Spark does not print what a Python function returns."""
        known = self.meaning(plan).columns
        return [f"{known[number(a)]}:{a.dataType().catalogString()}" for a in items(plan.output())]

    def arranged(self, plan: Java) -> list[int]:
        """An order of a plan's columns that follows from what they are."""
        gives = self.gives(plan)
        return sorted(range(len(gives)), key=lambda i: (gives[i], i))

    def marks(self, expressions: Iterable[Java], plan: Java) -> list[str]:
        """What expressions of a plan's node compute of the columns below."""
        below = self._columns_below(self.catalyst.read(plan))
        return [self._mark(one, below) for one in expressions]

    def part(self, expression: Java, plan: Java) -> str:
        """A part of what a plan's node computes, as `gives` says the columns of the plan."""
        if kind(plan) == "Project":
            mark = self._mark(expression, self.meaning(children(plan)[0]).columns)
        elif kind(plan) == "Aggregate":
            mark = _among_groups(self._mark(expression, self.meaning(children(plan)[0]).columns), *self._groups(plan))
        else:
            mark = self._mark(expression, self.meaning(plan).columns)
        return f"{mark}:{expression.dataType().catalogString()}"

    def says(self, plan: Java) -> str:
        """What one node of a plan says."""
        return self._says(plan, items(plan.expressions()))

    def calls(self, plan: Java, calls: Sequence[Java]) -> str:
        """An aggregate by its keys and the calls that it makes: neither the order of their results nor what is computed from them is a
        matter of state.
        """
        return f"keys {self._says(plan, items(plan.groupingExpressions()))} calls {self._says(plan, list(calls))}"

    def meaning(self, plan: Java) -> Meaning:
        return self._meanings.of(self.catalyst.read(plan), self._mean)

    def _says(self, plan: Java, expressions: Sequence[Java]) -> str:
        plan = self.catalyst.read(plan)
        below = self._columns_below(plan)
        columns = below | {a: f"new {i}" for i, a in enumerate(_new(plan, below))}
        sort = kind(plan.joinType()) if kind(plan) == "Join" else ""
        if kind(plan).startswith(BY_NAME):
            names = [_named(one) for one in (plan, *children(plan))]
            return f"{kind(plan)}{[said(self.catalyst, one, columns) for one in expressions]}{names}"
        return f"{kind(plan)}{sort}{[self._said(one, columns) for one in expressions]}"

    def _said(self, expression: Java, columns: Mapping[str, str]) -> str:
        found = said(self.catalyst, expression, columns)
        for call in python_calls(expression):
            code = code_of(function_of(self.catalyst, call))
            if self.functions.setdefault(str(call.name()), code) != code:
                found += f" {digest(code)}"
        return found

    def _mean(self, plan: Java) -> Meaning:
        if not children(plan):
            return self._leaf(plan)
        find = {"Project": self._projected, "Aggregate": self._aggregated, "Window": self._windowed, "Union": self._united}
        find |= dict.fromkeys(("BatchEvalPython", "ArrowEvalPython"), self._evaluated)
        return find.get(kind(plan), self._passing)(plan)

    def _leaf(self, plan: Java) -> Meaning:
        output = items(plan.output())
        node = self.leaves.get(plan.rdd().id()) if kind(plan) == "LogicalRDD" else None
        match node:
            case ViewNode():
                return Meaning(node.rows, dict(zip(map(number, output), node.marks, strict=True)))
            case Operator():
                return Meaning(node.fingerprint, {number(a): f"{node.fingerprint} {i}" for i, a in enumerate(output)})
        name = node.name if isinstance(node, SourceNode) else kind(plan)
        return Meaning(name, {number(a): f"{name}.{a.name()}:{a.dataType().catalogString()}" for a in output})

    def _projected(self, plan: Java) -> Meaning:
        below = self.meaning(children(plan)[0])
        return Meaning(below.rows, {number(one): self._mark(one, below.columns) for one in items(plan.projectList())})

    def _aggregated(self, plan: Java) -> Meaning:
        below, (keys, rows) = self.meaning(children(plan)[0]), self._groups(plan)
        marks = {number(one): self._mark(one, below.columns) for one in items(plan.aggregateExpressions())}
        return Meaning(rows, {a: _among_groups(mark, keys, rows) for a, mark in marks.items()})

    def _groups(self, plan: Java) -> tuple[set[str], str]:
        """The keys of an aggregate by their marks, and its rows."""
        below = self.meaning(children(plan)[0])
        keys = {self._mark(key, below.columns) for key in items(plan.groupingExpressions())}
        return keys, digest(f"groups by {sorted(keys)} over {below.rows}")

    def _windowed(self, plan: Java) -> Meaning:
        """Rows that its order leaves equal go by their columns, left to right."""
        [child] = children(plan)
        below = self.meaning(child)
        among = digest(f"{below.rows} {self.gives(child)}")
        new = {number(one): digest(f"{self._mark(one, below.columns)} among {among}") for one in items(plan.windowExpressions())}
        return Meaning(below.rows, {**below.columns, **new})

    def _united(self, plan: Java) -> Meaning:
        found = [(self.meaning(child), items(child.output())) for child in children(plan)]
        rows = digest(f"union of {[meaning.rows for meaning, _ in found]}")
        marks = [digest(str([meaning.columns[number(output[i])] for meaning, output in found])) for i in range(len(items(plan.output())))]
        return Meaning(rows, dict(zip(map(number, items(plan.output())), marks, strict=True)))

    def _evaluated(self, plan: Java) -> Meaning:
        """Python functions, row by row."""
        below = self.meaning(children(plan)[0])
        calls = zip(items(plan.resultAttrs()), items(plan.udfs()), strict=True)
        return Meaning(below.rows, {**below.columns, **{number(a): self._mark(call, below.columns) for a, call in calls}})

    def _passing(self, plan: Java) -> Meaning:
        """Columns come from below; what is new is known by its place."""
        below = self._columns_below(plan)
        order = "" if kind(plan) in AS_THEY_ARE else f" of {[self.gives(child) for child in children(plan)]}"
        rows = digest(f"{self.says(plan)}{order} over {[self.meaning(child).rows for child in children(plan)]}")
        return Meaning(rows, below | {a: f"{rows} {i}" for i, a in enumerate(_new(plan, below))})

    def _columns_below(self, plan: Java) -> dict[str, str]:
        """The columns of what stands below; of several inputs with their sides, since both may have the same."""
        found = [self.meaning(child).columns for child in children(plan)]
        if len(found) == 1:
            return dict(found[0])
        return {a: _short(f"{side}.{mark}") for side, columns in enumerate(found) for a, mark in columns.items()}

    def _mark(self, expression: Java, columns: Mapping[str, str]) -> str:
        return _short(self._said(expression, columns))

    def _asked(self, plan: Java) -> frozenset[str]:
        """The columns that the nodes of a plan ask for, and those that it gives."""
        return self._below(plan) | _numbers(items(plan.output()))

    def _below(self, plan: Java) -> frozenset[str]:
        return self._references.of(plan, self._refer)

    def _refer(self, plan: Java) -> frozenset[str]:
        below = children(plan)
        own = {column for expression in items(plan.expressions()) for column in identities(expression)} if below else set()
        if kind(plan) == "Union":
            own |= _numbers(column for child in below for column in items(child.output()))
        return frozenset(own).union(*map(self._below, below))


def _numbers(attributes: Iterable[Java]) -> frozenset[str]:
    return frozenset(map(number, attributes))


def _new(plan: Java, below: Mapping[str, str]) -> list[str]:
    """The columns that a node adds to those below."""
    return [a for a in map(number, items(plan.output())) if a not in below]


def _among_groups(mark: str, keys: Container[str], rows: str) -> str:
    """A grouping key is what it was; the rest is so among these groups."""
    return mark if mark in keys else _short(f"{mark} of {rows}")


def _short(mark: str) -> str:
    return mark if len(mark) < LONG else digest(mark)


def _named(plan: Java) -> str:
    """The columns of a plan, by name."""
    return MARKED.sub("", str([f"{column.name()}:{column.dataType().catalogString()}" for column in items(plan.output())]))


def _origin(hole: Hole, asked: frozenset[str]) -> str:
    match hole.node:
        case SourceNode() as source:
            columns = [a for a in hole.attributes[: len(source.schema)] if number(a) in asked]
            name = f"static {source.version}" if source.static else source.name
            return f"{name} {source.append_only} {[(str(a.name()), str(a.dataType().catalogString())) for a in columns]}"
        case Operator() as operator:
            return operator.fingerprint
        case ViewNode() as view:
            return view.rows
        case GatheredNode() as gathered:
            return gathered.name
