"""Fingerprints: what an operator computes, so that a home accepts only the program that made it."""

import hashlib
import re
from collections.abc import Sequence

from nosync.catalyst.bridge import Java, children, items, kind
from nosync.catalyst.graph import Template

FOLD_MARK = "__fold_"  # and a number: part of the name of a fold's function in Spark's plan
MARKED = re.compile(rf"{FOLD_MARK}\d+")


def digest(what: str) -> str:
    return hashlib.sha256(what.encode()).hexdigest()[:16]


def fingerprint(what: str, inputs: Sequence[Template]) -> str:
    """An operator by what it computes, over inputs that are known by theirs."""
    return digest(f"{what} over {', '.join(child.fingerprint for child in inputs)}")


def text(plan: Java, deep: bool = True) -> str:
    """A plan by what it says, free of the numbers that Spark gives out anew each time."""
    expressions, sort = items(plan.expressions()), kind(plan.joinType()) if kind(plan) == "Join" else ""
    said = [MARKED.sub("", str(expression.sql())) for expression in expressions]
    own = f"{kind(plan)}{sort}{said}{_places(plan, expressions)}"
    return own + (f"({', '.join(text(child) for child in children(plan))})" if deep else "")


def _places(plan: Java, expressions: list[Java]) -> str:
    """Which columns of its input a node asks for, in order, where their names do not say it: both sides of a join may have an `x`."""
    columns = [column for child in children(plan) for column in items(child.output())]
    if len({str(column.name()) for column in columns}) == len(columns):
        return ""
    places = {str(column.exprId().toString()): place for place, column in enumerate(columns)}
    return str([places.get(identity) for expression in expressions for identity in _identities(expression)])


def _identities(expression: Java) -> list[str]:
    if kind(expression) == "AttributeReference":
        return [str(expression.exprId().toString())]
    return [identity for child in children(expression) for identity in _identities(child)]
