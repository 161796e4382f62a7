"""Two thousand histories under faults, crashes, zombies and losses: the contract holds in all, and every kind of trouble was among them.

`make simulate` goes through more: these are seeds 0 to 1999, the same ones each time.
"""

import multiprocessing
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

import pytest

from .changing import simulate_changes
from .coverage import missing, table
from .history import simulate
from .mutations import MUTATIONS
from .program import Broken

HISTORIES = 2_000
CHANGING = 200
Seen = Counter[tuple[str, str, str]]


def steps_of(seed: int) -> int:
    """Mostly short histories, so that there are many; some long ones, for what only happens late."""
    return 120 if seed % 25 == 0 else 16


def some(seeds: range) -> tuple[int, Seen, list[str]]:
    """Storage operations, what they met, and what broke."""
    operations, seen, broken = 0, Counter[tuple[str, str, str]](), []
    for seed in seeds:
        try:
            world = simulate(seed, steps_of(seed))
        except Exception as error:
            broken.append(f"seed {seed}: {type(error).__name__}: {error}")
            continue
        operations += world.operations
        seen += world.seen
    return operations, seen, broken


@pytest.mark.slow
def test_the_contract_holds_whatever_happens(capsys: pytest.CaptureFixture[str]) -> None:
    parts = [range(start, start + 250) for start in range(0, HISTORIES, 250)]
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        results = list(pool.map(some, parts))
    operations, seen = sum(result[0] for result in results), sum((result[1] for result in results), Counter[tuple[str, str, str]]())
    broken = [text for result in results for text in result[2]]
    with capsys.disabled():
        print(f"\n{HISTORIES:,} histories, {operations:,} storage operations\n{table(seen)}")
    assert not broken, "\n".join(broken[:5])
    assert operations >= 100 * HISTORIES
    assert not missing(seen)


@pytest.mark.parametrize("name", MUTATIONS)
def test_the_simulation_notices_what_is_taken_away(name: str) -> None:
    make, likely = MUTATIONS[name]
    with make():
        for seed in (likely, *range(2500)):
            try:
                simulate(seed, 60)
            except (Broken, ValueError):
                return
    raise AssertionError(f"nothing broke although {name}")


def test_the_contract_holds_when_programs_change() -> None:
    broken, adopted = [], 0
    for seed in range(CHANGING):
        try:
            adopted += simulate_changes(seed, steps_of(seed))[1]
        except Exception as error:
            broken.append(f"seed {seed}: {type(error).__name__}: {error}")
    assert not broken, "\n".join(broken[:5])
    assert adopted > CHANGING // 2
