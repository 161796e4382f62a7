"""A graph of one's own over the same plans: what is done to its nodes leaves the given graph as it was."""

from copy import copy
from dataclasses import fields, is_dataclass
from typing import Any

from nosync.graph.graph import Graph


def copied(graph: Graph) -> Graph:
    """Every node, template and hole anew, pointing to each other as before. Plans in the JVM and frozen values are shared."""
    found: Graph = _copied(graph, {})
    return found


def _copied(value: Any, known: dict[int, Any]) -> Any:
    if isinstance(value, list | tuple):
        return type(value)([_copied(item, known) for item in value]) if type(value) in (list, tuple) else value
    if isinstance(value, dict):
        return {key: _copied(item, known) for key, item in value.items()}
    if not is_dataclass(value) or isinstance(value, type) or value.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        return value
    if id(value) not in known:
        known[id(value)] = other = copy(value)  # known before its fields are: nodes may point to each other in a circle
        for field in fields(value):
            setattr(other, field.name, _copied(getattr(value, field.name), known))
    return known[id(value)]
