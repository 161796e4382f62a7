"""What expressions of Spark's plans say, whatever columns are called: columns are put in by what they are.

Spark's own text of an expression leaves some things out; they are added here. Called by `fingerprint` alone.
"""

import re
from collections.abc import Iterator, Mapping
from re import Match

from nosync.bridge.catalyst import Catalyst, Java, children, kind

FOLD_MARK = "__fold_"  # and a number: part of the name of a fold's function in Spark's plan
MARKED = re.compile(rf"{FOLD_MARK}\d+")
ALIKE = "namedlambdavariable()"
NUMBER = re.compile(r"\((\d+)")
PLACE = re.compile(r"`nosync#(\d+)`|nosync#(\d+)(?:#\d+L?)?")  # a column, in a text without names
KEPT = re.compile(r"\0(\d+)\0")
IDENTITY = re.compile(r"(?<=[\w)])#\d+L?")
SILENT = frozenset((
    "Add", "Subtract", "Multiply", "Divide", "IntegralDivide", "Remainder", "Pmod", "UnaryMinus", "Abs", "Sum", "Average", "First", "Last",
    "AnyValue", "NthValue", "Lag", "Lead", "GetArrayItem", "GetMapValue", "ElementAt", "HyperLogLogPlusPlus", "JsonToStructs",
    "CsvToStructs", "XmlToStructs", "StructsToJson", "StructsToCsv", "StructsToXml", "Percentile", "PercentileCont", "PercentileDisc",
))  # fmt: skip
CALLS = (
    r"\b(div|p?mod|abs|negative|sum|avg|first|last|\w+_value|lag|lead|(from|to)_(json|csv|xml)|element_at|approx_count_distinct|percentile\w*)\b"
)
ASKING = re.compile(rf"[-+*/%\[]|{CALLS}", re.IGNORECASE)  # where one of them may be in the text of an expression

Columns = Mapping[str, str]  # what columns are, by the numbers that Spark has given them


def number(attribute: Java) -> str:
    """What Spark knows the column by: another one each time."""
    found = NUMBER.search(str(attribute.exprId().toString()))
    assert found is not None
    return found[1]


def said(catalyst: Catalyst, expression: Java, columns: Columns) -> str:
    """What an expression computes of its columns."""
    if kind(expression) == "AttributeReference":
        return columns.get(number(expression)) or f"? {expression.name()}"
    text = catalyst.nameless(expression)
    if text is None:
        text = str(expression.sql())
    more = f"{_variables(text, expression)}{_unsaid(text, expression)}"
    kept = PLACE.sub(lambda found: f"\0{found[1] or found[2]}\0", MARKED.sub("", text))
    if any(python_calls(expression)):  # arguments of Python functions are printed with their identities
        kept = IDENTITY.sub("", kept)
    return KEPT.sub(lambda found: _column(found, columns), kept) + more


def _column(found: Match[str], columns: Columns) -> str:
    return columns.get(found[1], f"? {found[1]}")


def _unsaid(text: str, expression: Java) -> str:
    """What calls were given that Spark leaves out when it prints them: whether nulls and errors count, formats, precision."""
    given = list(_given(expression)) if ASKING.search(text) else []
    return str(given) if given else ""


def _given(expression: Java) -> Iterator[str]:
    name = kind(expression)
    if name in SILENT:
        yield f"{name} {expression.argString(1000)}"
    for child in children(expression):
        yield from _given(child)


def python_calls(expression: Java) -> Iterator[Java]:
    """The calls of Python functions in an expression."""
    if kind(expression).startswith("Python"):
        yield expression
    for child in children(expression):
        yield from python_calls(child)


def _variables(text: str, expression: Java) -> str:
    """Which variable of a lambda stands where: Spark prints them all alike."""
    if ALIKE not in text:
        return ""
    found = identities(expression, "NamedLambdaVariable")
    return str([found.index(variable) for variable in found])


def identities(expression: Java, sort: str = "AttributeReference") -> list[str]:
    """The columns, or the variables, of an expression."""
    if kind(expression) == sort:
        return [number(expression)]
    return [identity for child in children(expression) for identity in identities(child, sort)]
