"""Values that come out of JSON, held against the types that a dataclass declares.

A checksum says that bytes are as they were written, not who wrote them. What does not have the declared types is refused here, so that
nothing behind this line meets a text where it counts on a number. Pure.
"""

import math
from collections.abc import Callable
from types import GenericAlias
from typing import Any, get_args, get_origin, get_type_hints

from nosync.model.layers import MOST

Fits = Callable[[Any], bool]


def checks_of(kind: type) -> dict[str, Fits]:
    """For each field of a dataclass, whether a value has its type."""
    return {name: _fits(hint) for name, hint in get_type_hints(kind).items()}


def _fits(hint: Any) -> Fits:
    hint = getattr(hint, "__supertype__", hint)  # of a NewType
    if hint is Any:
        return lambda value: True
    if hint is int:
        return lambda value: type(value) is int and -MOST < value < MOST
    if hint is float:
        return lambda value: type(value) in (int, float) and math.isfinite(value)
    if isinstance(hint, GenericAlias):
        return _container_check(get_origin(hint), get_args(hint))
    return lambda value: type(value) is hint


def _container_check(container: Any, inside: tuple[Any, ...]) -> Fits:
    """For `dict[K, V]`, `list[V]`, `tuple[V, ...]`, and `tuple[A, B]`, which JSON has as a list."""
    parts = [_fits(hint) for hint in inside]
    if container is dict:
        key, item = parts
        return lambda value: type(value) is dict and all(map(key, value)) and all(map(item, value.values()))
    if container is tuple and inside[-1] is not ...:
        return lambda value: type(value) in (list, tuple) and len(value) == len(parts) and all(fits(v) for fits, v in zip(parts, value))
    return lambda value: type(value) is container and all(map(parts[0], value))
