"""Fingerprints: what an operator computes, so that a home accepts only the program that made it."""

import hashlib
from collections.abc import Sequence

from nosync.catalyst.bridge import Java, children, items, kind
from nosync.catalyst.graph import Template


def digest(what: str) -> str:
    return hashlib.sha256(what.encode()).hexdigest()[:16]


def fingerprint(what: str, inputs: Sequence[Template]) -> str:
    """An operator by what it computes, over inputs that are known by theirs."""
    return digest(f"{what} over {', '.join(child.fingerprint for child in inputs)}")


def text(plan: Java, deep: bool = True) -> str:
    """A plan by what it says, free of the numbers that Spark gives out anew each time."""
    sort = str(plan.joinType().toString()) if kind(plan) == "Join" else ""
    own = f"{kind(plan)}{sort}{[str(expression.sql()) for expression in items(plan.expressions())]}"
    return own + (f"({', '.join(text(child) for child in children(plan))})" if deep else "")
