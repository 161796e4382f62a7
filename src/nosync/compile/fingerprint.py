"""Fingerprints: what an operator computes, so that state is only ever used by what would make it again.

They depend on what is computed and from what, all the way up to the sources; not on the names of views, the order of declaration, or
columns of a source that nobody asks for.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

from nosync.bridge.catalyst import Java, children, items, kind
from nosync.graph.nodes import SourceNode, ViewNode
from nosync.graph.operators import GatheredNode, Operator
from nosync.graph.templates import Hole, Template, holes

Found = TypeVar("Found")
FOLD_MARK = "__fold_"  # and a number: part of the name of a fold's function in Spark's plan
MARKED = re.compile(rf"{FOLD_MARK}\d+")
ALIKE = "namedlambdavariable()"
IDENTITY = re.compile(r"(?<=\w)#\d+L?")
NUMBERED = re.compile(r"_common_expr_\d+")  # what an optimised plan computes once, numbered through all queries of a session
SILENT = frozenset((
    "Add", "Subtract", "Multiply", "Divide", "IntegralDivide", "Remainder", "Pmod", "UnaryMinus", "Abs", "Sum", "Average", "First", "Last",
    "AnyValue", "NthValue", "Lag", "Lead", "GetArrayItem", "GetMapValue", "ElementAt", "HyperLogLogPlusPlus", "JsonToStructs",
    "CsvToStructs", "XmlToStructs", "StructsToJson", "StructsToCsv", "StructsToXml", "Percentile", "PercentileCont", "PercentileDisc",
))  # fmt: skip
CALLS = (
    r"\b(div|p?mod|abs|negative|sum|avg|first|last|\w+_value|lag|lead|(from|to)_(json|csv|xml)|element_at|approx_count_distinct|percentile\w*)\b"
)
ASKING = re.compile(rf"[-+*/%\[]|{CALLS}", re.IGNORECASE)  # where one of them may be in the text of an expression


def digest(what: str) -> str:
    return hashlib.sha256(what.encode()).hexdigest()[:16]


def fingerprint(what: str, inputs: Sequence[Template]) -> str:
    """An operator by what it computes, over inputs that are known by theirs."""
    return digest(f"{what} over {', '.join(child.fingerprint for child in inputs)}")


def text(plan: Java) -> str:
    """What one node of a plan says, free of the numbers that Spark gives out anew each time."""
    return _renumbered(_said(plan))


def _renumbered(said: str) -> str:
    met: dict[str, str] = {}
    return NUMBERED.sub(lambda found: met.setdefault(found[0], f"_common_expr_{len(met)}"), said)


class ByPlan(Generic[Found]):
    """Something that follows from a plan, found out once. A plan that is known is always the same object."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Java, Found]] = {}

    def of(self, plan: Java, find: Callable[[Java], Found]) -> Found:
        if id(plan) not in self._known:
            self._known[id(plan)] = (plan, find(plan))
        return self._known[id(plan)][1]


class Plans:
    """The plans of one query by what they compute: each node is looked at once, however many operators stand over it."""

    def __init__(self) -> None:
        self._texts = ByPlan[str]()
        self._references = ByPlan[frozenset[str]]()

    def identity(self, plan: Java, template: Template) -> str:
        """What a plan says all the way down, and what the holes of its template stand for, left to right."""
        found = list(holes(template.piece))
        asked = self._asked(plan) if any(isinstance(hole.node, SourceNode) for hole in found) else frozenset()
        return f"{_renumbered(self._text(plan))} as {columns(plan)} over {[_origin(hole, asked) for hole in found]}"

    def _text(self, plan: Java) -> str:
        return self._texts.of(plan, self._say)

    def _say(self, plan: Java) -> str:
        below = children(plan)
        return _said(plan) + (f"({', '.join(map(self._text, below))})" if below else "")

    def _asked(self, plan: Java) -> frozenset[str]:
        """The columns that the nodes of a plan ask for, and those that it gives."""
        return self._below(plan) | _ids(items(plan.output()))

    def _below(self, plan: Java) -> frozenset[str]:
        return self._references.of(plan, self._refer)

    def _refer(self, plan: Java) -> frozenset[str]:
        below = children(plan)
        own = {identity for expression in items(plan.expressions()) for identity in _identities(expression)} if below else set()
        if kind(plan) == "Union":
            own |= _ids(column for child in below for column in items(child.output()))
        return frozenset(own).union(*map(self._below, below))


def _ids(attributes: Iterable[Java]) -> frozenset[str]:
    return frozenset(str(attribute.exprId().toString()) for attribute in attributes)


def columns(plan: Java) -> str:
    """What a plan gives: Spark does not print what a Python function returns."""
    said = str([f"{column.name()}:{column.dataType().catalogString()}" for column in items(plan.output())])
    return NUMBERED.sub("", MARKED.sub("", said))


def calls_of(plan: Java, calls: Sequence[Java]) -> str:
    """An aggregate by its keys and the calls that it makes: neither what their results are called, nor their order, nor what is computed
    from them is a matter of state.
    """
    return _renumbered(f"keys {_said_of(plan, items(plan.groupingExpressions()))} calls {_said_of(plan, list(calls))}")


def _said(plan: Java) -> str:
    return _said_of(plan, items(plan.expressions())) if children(plan) else kind(plan)


def _said_of(plan: Java, expressions: list[Java]) -> str:
    """The node by some of its expressions."""
    sort = kind(plan.joinType()) if kind(plan) == "Join" else ""
    said = [_words(expression) for expression in expressions]
    return f"{kind(plan)}{sort}{said}{_places(plan, expressions)}{_variables(said, expressions)}{_unsaid(said, expressions)}"


def _unsaid(said: Sequence[str], expressions: Sequence[Java]) -> str:
    """What calls were given that Spark leaves out when it prints them: whether nulls and errors count, formats, precision."""
    given = [words for text, expression in zip(said, expressions, strict=True) if ASKING.search(text) for words in _given(expression)]
    return str(given) if given else ""


def _given(expression: Java) -> Iterator[str]:
    name = kind(expression)
    if name in SILENT:
        yield f"{name} {expression.argString(1000)}"
    for child in children(expression):
        yield from _given(child)


def _words(expression: Java) -> str:
    """Arguments of Python functions are printed with their identities, which are new each time; `_places` says which columns they are."""
    said = MARKED.sub("", str(expression.sql()))
    return IDENTITY.sub("", said) if _calls_python(expression) else said


def _calls_python(expression: Java) -> bool:
    return kind(expression).startswith("Python") or any(_calls_python(child) for child in children(expression))


def _origin(hole: Hole, asked: frozenset[str]) -> str:
    match hole.node:
        case SourceNode() as source:
            columns = [a for a in hole.attributes[: len(source.schema)] if str(a.exprId().toString()) in asked]
            name = f"static {source.version}" if source.static else source.name
            return f"{name} {source.append_only} {[(str(a.name()), str(a.dataType().catalogString())) for a in columns]}"
        case Operator() as operator:
            return operator.fingerprint
        case ViewNode() as view:
            return view.body.fingerprint
        case GatheredNode() as gathered:
            return gathered.name


def _places(plan: Java, expressions: list[Java]) -> str:
    """Which columns of its input a node asks for, in order, where their names do not say it: both sides of a join may have an `x`."""
    columns = [column for child in children(plan) for column in items(child.output())]
    names = {str(column.name()) for column in columns}
    if len(names) == len(columns) and not any(map(NUMBERED.search, names)):
        return ""
    indexes = {str(column.exprId().toString()): index for index, column in enumerate(columns)}
    return str([indexes.get(identity) for expression in expressions for identity in _identities(expression)])


def _variables(said: list[str], expressions: list[Java]) -> str:
    """Which variable of a lambda stands where: Spark prints them all alike."""
    if not any(ALIKE in one for one in said):
        return ""
    found = [variable for expression in expressions for variable in _identities(expression, "NamedLambdaVariable")]
    return str([found.index(variable) for variable in found])


def _identities(expression: Java, sort: str = "AttributeReference") -> list[str]:
    if kind(expression) == sort:
        return [str(expression.exprId().toString())]
    return [identity for child in children(expression) for identity in _identities(child, sort)]
