"""The generator of mutants, the copy that they live in, and the judgements: what `make mutate` relies on."""

import os
import time
from pathlib import Path
from types import FunctionType

import pytest

from . import judgements
from .forking import DIED, OUT_OF_TIME, end_after, in_a_copy
from .mutants import Mutant, compiled, mutants_in, mutants_of
from .targets import PACKAGE, ROOMS, chosen, files_of

SOURCE = '''
def pay(store, amount, limit):
    """Documented."""
    assert store is not None
    if amount <= limit and not store.closed:
        store.create("payment", amount)
        store.sync_files(["payment"])
        return amount - 1
    raise ValueError(f"{amount > limit}")
'''


def mutant(kind: str, text: str, source: str = SOURCE) -> Mutant:
    return next(found for found in mutants_of(source, "pay.py") if found.kind == kind and found.text == text)


def changed(kind: str, text: str) -> FunctionType:
    return FunctionType(compiled(mutant(kind, text), "pay.py"), {"ValueError": ValueError})


class Store:
    """Notes what is asked of it."""

    closed = False

    def __init__(self) -> None:
        self.asked: list[str] = []

    def create(self, name: str, amount: int) -> None:
        self.asked.append("create")

    def sync_files(self, names: list[str]) -> None:
        self.asked.append("sync")


def test_every_condition_call_refusal_and_order_is_a_mutant() -> None:
    found = [(one.kind, one.text) for one in mutants_of(SOURCE, "pay.py")]
    condition = "amount <= limit and (not store.closed)"
    create, sync = "store.create('payment', amount)", "store.sync_files(['payment'])"
    assert sorted(found) == sorted(
        [
            ("true", condition),
            ("false", condition),
            ("and", f"amount <= limit of {condition}"),
            ("and", f"not store.closed of {condition}"),
            ("boundary", "amount <= limit"),
            ("opposite", "not store.closed"),
            ("call", create),
            ("call", sync),
            ("order", f"{create}; {sync}"),
            ("position", "amount - 1"),
            ("raise", "raise ValueError(f'{amount > limit}')"),
        ]
    )


def test_a_mutant_does_what_its_kind_says() -> None:
    store = Store()
    assert changed("position", "amount - 1")(store, 3, 5) == 3
    assert changed("true", "amount <= limit and (not store.closed)")(store, 7, 5) == 6
    with pytest.raises(ValueError):
        changed("boundary", "amount <= limit")(store, 5, 5)
    assert changed("raise", "raise ValueError(f'{amount > limit}')")(store, 7, 5) is None
    store.asked.clear()
    changed("order", "store.create('payment', amount); store.sync_files(['payment'])")(store, 3, 5)
    assert store.asked == ["sync", "create"]
    store.asked.clear()
    changed("call", "store.sync_files(['payment'])")(store, 3, 5)
    assert store.asked == ["create"]


def test_a_mutant_keeps_its_name_when_lines_move_and_conditions_come_before_it() -> None:
    moved = SOURCE.replace('    """Documented."""', "    if limit < 0:\n        return 0\n")
    for kind, text in (("boundary", "amount <= limit"), ("call", "store.sync_files(['payment'])")):
        assert mutant(kind, text, "\n\n" + moved).name == mutant(kind, text).name


def test_mutants_of_equal_source_have_names_of_their_own() -> None:
    names = [one.name for one in mutants_of("def f(a, b):\n    g(a)\n    b()\n    g(a)\n", "f.py")]
    assert len(names) == len(set(names)) == 3


def test_statements_of_which_one_needs_the_other_have_one_order() -> None:
    source = "def f(store):\n    text = store.read('a')\n    store.create('b', text)\n"
    assert "order" not in {one.kind for one in mutants_of(source, "f.py")}


def busy() -> str:
    end_after(0.1)
    while True:
        pass


def test_what_hangs_or_dies_is_answered() -> None:
    assert in_a_copy(lambda: "said", 60) == "said"
    assert in_a_copy(lambda: time.sleep(60) or "", 0.1) == OUT_OF_TIME  # type: ignore[func-returns-value]
    assert in_a_copy(busy, 60) == OUT_OF_TIME
    assert in_a_copy(lambda: os._exit(1), 60) == DIED
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        in_a_copy(lambda: str(1 / 0), 60)


def test_a_part_of_the_core_can_be_chosen() -> None:
    assert set(chosen("")) == set(ROOMS)
    assert chosen("journal/chain.py") == {"journal": ["journal/chain.py"]}
    assert not chosen("nothing")


def test_every_judgement_speaks_of_a_mutant_that_exists_and_gives_a_reason() -> None:
    judged = judgements.read()
    mutants = [one for room in ROOMS for one in mutants_in(PACKAGE, files_of(room))]
    assert not judgements.stale(judged, mutants)
    assert all(len(reason.split()) > 3 for reason in judged.values())


def test_a_judgement_of_a_mutant_that_is_gone_is_stale(tmp_path: Path) -> None:
    file = tmp_path / "equivalent.toml"
    kept = mutant("position", "amount - 1")
    file.write_text(f'["pay.py"]\n"{kept.key}" = "says nothing"\n"pay::true::000000" = "is gone"\n')
    assert judgements.stale(judgements.read(file), [kept]) == ["pay.py::pay::true::000000"]
