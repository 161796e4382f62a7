"""The Python functions of a query."""

from typing import Any

from nosync.bridge.catalyst import children, items, kind


def functions_of(plan: Any) -> list[str]:
    """Names of the Python functions that a plan calls."""
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

    walk(plan)
    return found
