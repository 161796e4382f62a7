"""Fingerprints: what an operator computes, so that state is only ever used by what would make it again.

They depend on what is computed and from what, all the way up to the sources; not on the names of views, the order of declaration, or
columns of a source that nobody asks for.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence

from nosync.bridge.catalyst import Java, children, items, kind
from nosync.graph.nodes import GatheredNode, Hole, Operator, SourceNode, Template, ViewNode, holes

FOLD_MARK = "__fold_"  # and a number: part of the name of a fold's function in Spark's plan
MARKED = re.compile(rf"{FOLD_MARK}\d+")
ALIKE = "namedlambdavariable()"
IDENTITY = re.compile(r"(?<=\w)#\d+L?")
NUMBERED = re.compile(r"_common_expr_\d+")  # what an optimised plan computes once, numbered through all queries of a session

ADDRESS = re.compile(r"@[0-9a-f]+")  # what Java prints of values that cannot say what they hold
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


def text(plan: Java, deep: bool = True) -> str:
    """A plan by what it says, free of the numbers that Spark gives out anew each time. What leaves stand for is said by `origins`."""
    met: dict[str, str] = {}
    return NUMBERED.sub(lambda found: met.setdefault(found[0], f"_common_expr_{len(met)}"), _said(plan, deep))


def columns(plan: Java) -> str:
    """What a plan gives: Spark does not print what a Python function returns."""
    return NUMBERED.sub("", MARKED.sub("", str(plan.schema().catalogString())))


def _said(plan: Java, deep: bool) -> str:
    if not children(plan):
        return kind(plan)
    expressions, sort = items(plan.expressions()), kind(plan.joinType()) if kind(plan) == "Join" else ""
    said = [_words(expression) for expression in expressions]
    own = f"{kind(plan)}{sort}{said}{_places(plan, expressions)}{_variables(said, expressions)}{_unsaid(said, expressions)}"
    return own + (f"({', '.join(_said(child, deep) for child in children(plan))})" if deep else "")


def _unsaid(said: Sequence[str], expressions: Sequence[Java]) -> str:
    """What calls were given that Spark leaves out when it prints them: whether nulls and errors count, formats, precision."""
    told = [words for text, expression in zip(said, expressions, strict=True) if ASKING.search(text) for words in _given(expression)]
    return str(told) if told else ""


def _given(expression: Java) -> Iterator[str]:
    name = kind(expression)
    if name in SILENT:
        yield f"{name} {expression.argString(1000)}"
    for child in children(expression):
        yield from _given(child)


def _words(expression: Java) -> str:
    """Arguments of Python functions are told with their identities, which are new each time; `_places` says which columns they are."""
    said = MARKED.sub("", str(expression.sql()))
    return IDENTITY.sub("", said) if _calls_python(expression) else said


def _calls_python(expression: Java) -> bool:
    return kind(expression).startswith("Python") or any(_calls_python(child) for child in children(expression))


def origins(template: Template, plan: Java) -> list[str]:
    """What the holes of a template stand for, left to right."""
    found = list(holes(template.piece))
    asked = _asked(plan) if any(isinstance(hole.node, SourceNode) for hole in found) else set()
    return [_origin(hole, asked) for hole in found]


def _origin(hole: Hole, asked: set[str]) -> str:
    match hole.node:
        case SourceNode() as source:
            columns = [a for a in hole.attributes[: len(source.schema)] if str(a.exprId().toString()) in asked]
            name = _static(source.static) if source.static else source.name
            return f"{name} {source.append_only} {[(str(a.name()), str(a.dataType().catalogString())) for a in columns]}"
        case Operator() as operator:
            return operator.fingerprint
        case ViewNode() as view:
            return view.body.fingerprint
        case GatheredNode() as gathered:
            return gathered.name


def _static(plan: Java) -> str:
    """A table that is read once: by its rows where the plan has them, else by its kind alone."""
    match kind(plan):
        case "LocalRelation":
            return f"static {digest(ADDRESS.sub('', str(plan.data().toString())))}"
        case "Range":
            return f"static {plan.start()} {plan.end()} {plan.step()}"
    return f"static {kind(plan)}"


def _asked(plan: Java) -> set[str]:
    """The columns that the nodes of a plan ask for, and those that it gives."""
    columns = items(plan.output())
    pending = [plan]
    while pending:
        node = pending.pop()
        below = children(node)
        columns += items(node.references().toSeq()) if below else []
        pending += below
        if kind(node) == "Union":
            columns += [column for child in below for column in items(child.output())]
    return {str(column.exprId().toString()) for column in columns}


def _places(plan: Java, expressions: list[Java]) -> str:
    """Which columns of its input a node asks for, in order, where their names do not say it: both sides of a join may have an `x`."""
    columns = [column for child in children(plan) for column in items(child.output())]
    names = {str(column.name()) for column in columns}
    if len(names) == len(columns) and not any(map(NUMBERED.search, names)):
        return ""
    places = {str(column.exprId().toString()): place for place, column in enumerate(columns)}
    return str([places.get(identity) for expression in expressions for identity in _identities(expression)])


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
