"""What is no source or no sink is refused by name when it is declared."""

from typing import Any

import pytest

import nosync as ns
from nosync.model.bound import bound
from nosync.model.connectors import check_abilities, check_sink, check_source


class Plain:
    append_only = True

    def declare(self, name: str, spark: Any) -> Any: ...
    def start(self, folder: Any, taken: Any) -> None: ...
    def available(self) -> None: ...
    def read(self, spark: Any, slice: Any) -> Any: ...


class Out:
    promise = ns.Promise("repeating", "it takes what comes")

    def open(self, run: str, identity: Any) -> None: ...
    def deliver(self, epoch: int, changes: Any) -> None: ...
    def close(self) -> None: ...


def made(base: type, **attributes: Any) -> Any:
    """An object with other attributes; `...` for one that it lacks."""
    kept = {name: value for name, value in vars(base).items() if not name.startswith("__")} | attributes
    return type(base.__name__, (), {name: value for name, value in kept.items() if value is not ...})()


def raising(self: Any) -> None:
    raise RuntimeError("not yet connected")


def test_what_the_page_shows_passes() -> None:
    check_source("s", Plain())
    check_abilities("s", Plain())
    check_sink("out", Out())


NO_SOURCES = {
    "no source": (object(), r"is a object, which has no declare\(\), start\(\), available\(\), read\(\), append_only"),
    "None": (None, r"is a NoneType, which has no declare\(\)"),
    "a class": (Plain, "is the class Plain"),
    "without read": (made(Plain, read=...), r"which has no read\(\)"),
    "read is no method": (made(Plain, read=[1]), r"which has no read\(\)"),
    "without append_only": (made(Plain, append_only=...), "which has no append_only"),
    "append_only cannot be told": (made(Plain, append_only=property(raising)), '"append_only" failed: RuntimeError: not yet connected'),
}


@pytest.mark.parametrize(("source", "words"), NO_SOURCES.values(), ids=NO_SOURCES)
def test_what_is_no_source_is_refused_with_what_it_lacks(source: Any, words: str) -> None:
    with pytest.raises(ns.Invalid, match=f'source "s".*{words}') as error:
        check_source("s", source)
    assert error.value.hint


ATTRIBUTES = [("folder", "/data"), ("table", "orders"), ("rows", [1, 2]), ("events", []), ("marks", 3), ("weight", 3), ("trim", True),
              ("direct", False), ("together", True), ("acknowledge", "yes"), ("reopen", 1), ("rejects", 0), ("rejected", [])]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), ATTRIBUTES)
def test_a_plain_attribute_is_not_taken_for_an_ability(name: str, value: Any) -> None:
    with pytest.raises(ns.Invalid, match=f'source "s" has an attribute "{name}"') as error:
        check_abilities("s", made(Plain, **{name: value}))
    assert "another name" in error.value.hint


def test_an_ability_that_is_none_is_not_there() -> None:
    source = made(Plain, rows=None, trim=None)
    check_abilities("s", source)
    assert (bound(source).rows({}), bound(source).trim) == (None, None)


def test_an_ability_that_cannot_be_asked_for_is_refused() -> None:
    with pytest.raises(ns.Invalid, match=r'source "s".*"rows" failed: RuntimeError: not yet connected'):
        check_abilities("s", made(Plain, rows=property(raising)))


def test_append_only_is_a_word_of_yes_or_no() -> None:
    with pytest.raises(ns.Invalid, match="append_only is 'no'"):
        check_abilities("s", made(Plain, append_only="no"))


NO_SINKS = {
    "no sink": (object(), r"is a object, which has no open\(\), deliver\(\), close\(\), promise"),
    "a class": (Out, "is the class Out"),
    "without close": (made(Out, close=...), r"which has no close\(\)"),
    "a promise that is a text": (made(Out, promise="precise"), "promise is 'precise'"),
    "an unknown promise": (made(Out, promise=ns.Promise("exact", "why")), 'promises "exact"'),  # type: ignore[arg-type]
    "unknown fencing": (made(Out, promise=ns.Promise("precise", "why", fencing="yes")), 'promises "yes"'),  # type: ignore[arg-type]
}


@pytest.mark.parametrize(("sink", "words"), NO_SINKS.values(), ids=NO_SINKS)
def test_what_is_no_sink_is_refused_with_what_it_lacks(sink: Any, words: str) -> None:
    with pytest.raises(ns.Invalid, match=f'sink "out".*{words}') as error:
        check_sink("out", sink)
    assert error.value.hint
