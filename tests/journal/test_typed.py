"""What comes out of JSON is held against the declared types, whatever they are."""

from dataclasses import dataclass
from typing import Any, NewType

import pytest

from nosync.journal.typed import checks_of
from nosync.model.layers import MOST

Number = NewType("Number", int)


@dataclass
class Facts:
    any: Any
    number: int
    named: Number
    share: float
    text: str
    flag: bool
    counts: dict[str, Number]
    names: list[str]
    both: tuple[str, int]
    many: tuple[int, ...]
    nested: dict[str, list[tuple[int, str]]]


FITTING = {
    "any": [None, 1, "a", [{}]], "number": [0, -5, MOST - 1, 1 - MOST], "named": [7], "share": [1, 0.5, -2.0], "text": ["", "a"],
    "flag": [True, False], "counts": [{}, {"a": 1, "b": 2}], "names": [[], ["a", "b"]], "both": [["a", 1], ("a", 1)],
    "many": [(), (1, 2, 3)], "nested": [{}, {"a": []}, {"a": [[1, "b"], (2, "c")]}],
}  # fmt: skip
OTHERS = {
    "number": [True, 1.0, "1", None, MOST, -MOST], "named": ["7", False], "share": ["0.5", True, float("nan"), float("inf"), None],
    "text": [1, None, b"a"], "flag": [0, 1, None], "counts": [{"a": "1"}, {1: 1}, {"a": 1, "b": None}, [["a", 1]]],
    "names": [("a",), ["a", 1], "ab", {"a": 1}], "both": [["a"], ["a", 1, 2], [1, "a"], "a1", {"a": 1}], "many": [[1, 2], (1, "2"), 1],
    "nested": [{"a": [[1]]}, {"a": [["1", "b"]]}, {"a": {}}, {"a": [[1, "b"], [1, 2]]}],
}  # fmt: skip


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in FITTING.items() for value in values])
def test_a_value_of_the_declared_type_is_taken(name: str, value: Any) -> None:
    assert checks_of(Facts)[name](value)


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in OTHERS.items() for value in values])
def test_a_value_of_another_type_is_refused(name: str, value: Any) -> None:
    assert not checks_of(Facts)[name](value)
