"""The Python functions of a query."""

from typing import Any

from pyspark.sql import DataFrame

from nosync.bridge.catalyst import Catalyst, children, items, kind
from nosync.bridge.frames import analyzed


def functions_in(query: DataFrame, catalyst: Catalyst) -> list[str]:
    """Names of the Python functions that a query calls."""
    found: list[str] = []

    def look(expression: Any) -> None:
        if kind(expression).startswith("Python"):
            found.append(str(expression.name()))
        for child in children(expression):
            look(child)

    def walk(node: Any) -> None:
        for expression in items(node.expressions()):
            look(expression)
        for child in children(node):
            walk(child)

    walk(catalyst.read(analyzed(query)))
    return found
