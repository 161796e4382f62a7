"""Arguments of public calls, held against what the call declares.

Promise: a name that a call does not know, one that it lacks, and a plain value of the wrong type are `Invalid`, with the nearest known name
or the types that it takes. What a value means is left to the call. Pure.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import cache, wraps
from inspect import Parameter, Signature, isroutine, signature
from numbers import Integral, Real
from reprlib import Repr
from types import NoneType, UnionType
from typing import Any, Literal, ParamSpec, Protocol, TypeVar, Union, get_args, get_origin, get_type_hints

from nosync.model.errors import Internal, Invalid, NosyncError

Given = ParamSpec("Given")
Found = TypeVar("Found")
Fits = Callable[[Any], bool]

SHORT = Repr()
SHORT.maxstring = SHORT.maxother = 60
PLACED = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
NAMED = (*PLACED, Parameter.KEYWORD_ONLY)
CHECKED: dict[Any, tuple[str, Fits]] = {
    NoneType: ("None", lambda value: value is None),
    bool: ("True or False", lambda value: isinstance(value, bool)),
    int: ("a whole number", lambda value: isinstance(value, Integral) and not isinstance(value, bool)),
    float: ("a number", lambda value: isinstance(value, Real) and not isinstance(value, bool)),
    str: ("a text", lambda value: isinstance(value, str)),
    dict: ("a dict", lambda value: isinstance(value, Mapping)),
    Callable: ("a function", callable),
    os.PathLike: ("a path", lambda value: isinstance(value, os.PathLike)),
}


def checked(**elsewhere: str) -> Callable[[Callable[Given, Found]], Callable[Given, Found]]:
    """Decorates a public call. `elsewhere`: by argument, what to pass instead: of those that people know from elsewhere, and of those that
    are easily given something of a wrong type.
    """

    def decorate(function: Callable[Given, Found]) -> Callable[Given, Found]:
        known, called = signature(function), _called(function)

        @wraps(function)
        def call(*given: Given.args, **named: Given.kwargs) -> Found:
            try:
                bound = known.bind(*given, **named)
            except TypeError:
                raise _misfit(called, known, given, named, elsewhere) from None
            for name, value in bound.arguments.items():
                _check_type(called, name, value, _types(function).get(name, ()), elsewhere.get(name, ""))
            try:
                return function(*given, **named)
            except Internal:
                raise
            except NosyncError as error:
                raise error.with_traceback(None) from error.__cause__  # where the user's call stands, not where it was found out

        return call

    return decorate


def check_takes(called: str, function: Callable[..., Any], *names: str) -> None:
    """Whether a function of the user's can be called with so many arguments: found out when it is passed, not when its turn comes."""
    try:
        signature(function).bind(*names)
    except TypeError:
        words = f"{called} is called with {', '.join(names) or 'nothing'}, which {_name(function)} does not take"
        raise Invalid(words, hint=f"Write def {_name(function, 'function')}({', '.join(names)}).") from None
    except ValueError:  # of something that has no signature, as some written in C
        pass


def _name(function: Callable[..., Any], otherwise: str = "") -> str:
    name = function.__name__ if isroutine(function) else "<"
    return (otherwise or "this function") if "<" in name else name


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word that was probably meant; empty where none is near."""
    by_lower = {one.lower(): one for one in known}
    found = get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[found[0]] if found else ""


def did_you_mean(word: str, known: Iterable[str], form: str = '"{}"') -> str:
    """A sentence to begin a hint with; empty where nothing is near."""
    found = nearest(word, known)
    return f"Did you mean {form.format(found)}? " if found else ""


def _called(function: Callable[..., Any]) -> str:
    """As the user writes it: ns.files, flow.start."""
    owner, _, name = function.__qualname__.rpartition(".")
    if not owner:
        return f"ns.{name}"
    return f"ns.{owner}" if name == "__init__" else f"{owner.removeprefix('Stored').lower()}.{name}"


def _misfit(called: str, known: Signature, given: tuple[Any, ...], named: Mapping[str, Any], elsewhere: Mapping[str, str]) -> Invalid:
    """Why the arguments do not fit. Something is wrong with them."""
    names = [name for name in known.parameters if name != "self"]
    takes = f"It takes {', '.join(names)}." if names else "It takes none."
    for name in named:
        if name not in names:
            hint = f"{elsewhere[name]}" if name in elsewhere else f"{did_you_mean(name, names, '{}=')}{takes}"
            return Invalid(f'{called} has no argument "{name}"', hint=hint)
    by_place = [name for name, one in known.parameters.items() if one.kind in PLACED]
    if len(given) > len(by_place):
        count = len(given) - ("self" in by_place)
        return Invalid(f"{called} was given {count} {'argument' if count == 1 else 'arguments'} in order", hint=takes)
    twice = [name for name in by_place[: len(given)] if name in named and known.parameters[name].kind is not Parameter.POSITIONAL_ONLY]
    if twice:
        return Invalid(f"{called} was given {twice[0]} twice", hint="Pass it in its place, or by its name.")
    lacking = [name for name in by_place[len(given) :] if name not in named and known.parameters[name].default is Parameter.empty]
    return Invalid(f"{called} needs {', '.join(lacking) or 'other arguments'}", hint=takes)


def _check_type(called: str, name: str, value: Any, types: tuple[tuple[str, Fits], ...], way_out: str) -> None:
    if types and not any(fits(value) for _, fits in types):
        *others, last = [words for words, _ in types]
        hint = f"Pass {', '.join(others)} or {last}." if others else f"Pass {last}."
        raise Invalid(f"{called}: {name}={SHORT.repr(value)} is of type {type(value).__name__}", hint=way_out or hint)


@cache
def _types(function: Callable[..., Any]) -> dict[str, tuple[tuple[str, Fits], ...]]:
    """By argument, the types that it takes, in words, and what fits; of those that can be told, and that the call does not tell better."""
    try:
        hints = get_type_hints(function)
    except NameError:  # of something imported for type checkers alone
        return {}
    parameters = signature(function).parameters
    named = {name: hints[name] for name, one in parameters.items() if one.kind in NAMED and name in hints}
    told_better = {name for name, hint in named.items() if get_origin(hint) is Literal}
    found = {name: [_check_of(one) for one in _members(hint)] for name, hint in named.items() if name not in told_better}
    return {name: tuple(one for one in checks if one) for name, checks in found.items() if all(checks)}


def _members(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _check_of(hint: Any) -> tuple[str, Fits] | None:
    sort = get_origin(hint) or hint
    if sort is Literal:
        allowed = get_args(hint)
        return " or ".join(f'"{one}"' for one in allowed), lambda value: value in allowed
    if sort in CHECKED:
        return CHECKED[sort]
    if hint is Any or not isinstance(sort, type) or Protocol in sort.__bases__ or sort.__name__ == "DataFrame":
        return None
    if issubclass(sort, os.PathLike):
        return CHECKED[os.PathLike]
    if issubclass(sort, Mapping):
        return CHECKED[dict]
    if sort.__module__ == "collections.abc":
        return "a list", lambda value: isinstance(value, sort)
    return f"a {sort.__name__}", lambda value: isinstance(value, sort)
