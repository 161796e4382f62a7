"""Which state a changed program finds again, and what is said of the rest."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from nosync.journal.entries import Declared
from nosync.model.errors import Invalid
from nosync.runtime.change import Difference, OnChange, difference, names_for
from nosync.runtime.rebuilding import ProgramChange
from nosync.runtime.takeover import check_choice

OLD = {"v/join": "j", "v/aggregate-2": "a", "w/rows": "w"}


def declared(fingerprints: dict[str, str]) -> Declared:
    return Declared("f", 1, {}, fingerprints, {})


def test_state_is_found_by_what_it_computes_wherever_the_program_now_says_it() -> None:
    assert names_for([("v/aggregate", "a"), ("x/join", "j")], OLD) == ["v/aggregate-2", "v/join"]


def test_a_changed_operator_gets_a_name_that_was_never_used() -> None:
    assert names_for([("v/join", "other")], OLD) == ["v/join@2"]
    assert names_for([("v/join", "other")], OLD, retired=["v/join@2"]) == ["v/join@3"]
    assert names_for([("v/join@2", "third")], {"v/join@2": "other"}, retired=["v/join"]) == ["v/join@3"]


def test_of_two_views_with_one_query_each_keeps_its_own() -> None:
    assert names_for([("b/rows", "r"), ("a/rows", "r")], {"a/rows": "r", "b/rows": "r"}) == ["b/rows", "a/rows"]


def test_names_differ_even_where_fingerprints_do_not() -> None:
    assert names_for([("a/rows", "r"), ("a/rows", "r")], {}) == ["a/rows", "a/rows@2"]


def test_the_difference_says_what_is_kept_changed_new_and_gone() -> None:
    found = difference(declared(OLD), declared({"v/join": "j", "v/aggregate-2@2": "b", "x/rows": "x"}))
    assert found == Difference(("v/join",), ("v/aggregate-2@2",), ("x/rows",), ("w/rows",))
    assert str(found) == '"v/aggregate-2" is changed, "x/rows" is new, "w/rows" is gone'


def changed(**more: Any) -> ProgramChange:
    """A program with something new, going on from epoch 7."""
    found = Difference(kept=("a",), new=("b",), gone=("c",))
    given = {"targets": {}, "upstream": {}, "sources": frozenset(), "sinks": (), "stepwise": False, "doubts": {}, **more}
    return ProgramChange(declared({}), found, **given)


IMAGE: Any = SimpleNamespace(epoch=7, trimmed={}, declared=SimpleNamespace(sinks={"out": {}}))


def test_nobody_goes_on_with_a_changed_program_without_having_said_how() -> None:
    with pytest.raises(Invalid) as error:
        check_choice(changed(), "refuse", IMAGE)
    assert error.value.message == 'the program has changed since epoch 7: "b" is new, "c" is gone'
    assert "1 of 2 operators keep their state" in error.value.hint
    check_choice(changed(), "rebuild", IMAGE)
    check_choice(replace(changed(), difference=Difference(kept=("a",))), "refuse", IMAGE)


def test_only_ways_that_are_possible_are_offered() -> None:
    with pytest.raises(Invalid) as error:
        check_choice(changed(sinks=("out",)), "refuse", IMAGE)
    assert error.value.hint.startswith('Pass on_change="discard" to let it begin empty with the next epoch, or use a new home.')
    assert 'on_change="rebuild" is not possible: sink "out" cannot be rebuilt' in error.value.hint
    choices: tuple[OnChange, ...] = ("refuse", "rebuild", "discard")
    for choice in choices:
        with pytest.raises(Invalid, match="No way to go on is possible") as error:
            check_choice(changed(sinks=("out",), doubts={"b": "it may take back rows that it never saw"}), choice, IMAGE)
        assert 'Select for sink "out" what it had' in error.value.hint
