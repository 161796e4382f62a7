"""What a source can do is found out once; what it raises is said to be its own."""

from typing import Any

import pytest

from nosync.model.bound import BoundSource, bound
from nosync.model.errors import Corrupt, Failed, Unavailable


class Plain:
    """Does what every source does."""

    append_only = True

    def declare(self, name: str, spark: Any) -> Any: ...

    def start(self, folder: Any, taken: Any) -> None: ...

    def available(self) -> None: ...

    def read(self, spark: Any, slice: Any) -> Any: ...


class Able(Plain):
    """Does all that some do: each answers its own name."""


ABILITIES = {
    "rows": "rows", "weight": "weight", "acknowledge": "acknowledge", "reopen": "reopen", "folder": "folder", "trim": "trim",
    "marks": "marks", "table": "table", "direct": "direct", "together": "together", "events": "events",
    "on_arrival": "on_arrival",
}  # fmt: skip
for name in (*ABILITIES, "rejects", "rejected"):
    setattr(Able, name, lambda self, *_, name=name: name)


def test_a_source_that_does_no_more_than_it_must_is_bound_to_nothing_else() -> None:
    found, slice = bound(Plain()), {"a": 1}
    assert (found.rows(slice), found.weight(slice), found.files(slice), found.folder()) == (None, 0, {}, "")
    assert found.reopen(slice, {}) is slice and not found.read_once and found.append_only
    absent = ("trim", "marks", "table", "rejecting", "direct", "together", "events", "on_arrival")
    assert [getattr(found, name) for name in absent] == [None] * len(absent)


@pytest.mark.parametrize("ability", ABILITIES)
def test_an_ability_of_a_source_is_its_own_method(ability: str) -> None:
    source = Able()
    found: Any = getattr(bound(source), ABILITIES[ability])
    assert found() == ability


def test_a_source_that_rejects_or_is_read_once_is_known_as_such() -> None:
    source = Able()
    assert bound(source).rejecting is source and bound(source).read_once


def failing(error: Exception) -> BoundSource:
    def fail(*_: Any) -> Any:
        raise error

    source = Able()
    for name in ("trim", "marks", "available"):
        setattr(source, name, fail)
    return bound(source).guarded("orders")


@pytest.mark.parametrize("method", ["trim", "marks"])
def test_what_a_method_raises_is_said_to_be_of_the_source(method: str) -> None:
    with pytest.raises(Failed, match=f'source "orders" failed in {method}: ValueError: odd'):
        getattr(failing(ValueError("odd")), method)({})
    with pytest.raises(Unavailable):
        getattr(failing(Unavailable("not now")), method)({})
    with pytest.raises(Failed, match="available"):
        failing(ValueError("odd")).available()
    with pytest.raises(Corrupt):
        failing(Corrupt("torn")).available()


def test_marks_and_trimming_stay_abilities_that_a_source_has_or_has_not() -> None:
    plain, able = bound(Plain()).guarded("orders"), bound(Able()).guarded("orders")
    assert plain.trim is None and plain.marks is None
    assert able.trim is not None and able.trim({}) == "trim" and able.marks is not None and able.marks({}) == [*"marks"]  # type: ignore[func-returns-value]
