"""Histories under faults, crashes, partitions and losses: the contract holds in all, and every kind of trouble was among them."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import pytest

from .apart import MUTATIONS as APART_MUTATIONS
from .apart import simulate_apart
from .changing import simulate_changes
from .coverage import missing, table
from .history import simulate
from .many import some, steps_of, together
from .mutations import MUTATIONS
from .paces import MUTATIONS as PACE_MUTATIONS
from .paces import simulate_paces
from .rescaling import MUTATIONS as RESCALING_MUTATIONS
from .rescaling import simulate_rescaling
from .world import Broken

HISTORIES = 1_250
CHANGING = 200
RESCALED = 100
PACED = 60
APART = 100


@pytest.mark.slow
def test_the_contract_holds_whatever_happens(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "0")  # for the processes of the pool: a seed that breaks does so again
    parts = [range(start, start + 250) for start in range(0, HISTORIES, 250)]
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        operations, seen, events, broken = together(pool.map(some, parts))
    with capsys.disabled():
        print(f"\n{HISTORIES:,} histories, {operations:,} storage operations\n{table(seen, events)}")
    assert not broken, "\n".join(broken[:5])
    assert operations >= 100 * HISTORIES
    assert not missing(seen, events)


@pytest.mark.parametrize("name", MUTATIONS)
def test_the_simulation_notices_what_is_taken_away(name: str) -> None:
    make, likely = MUTATIONS[name]
    with make():
        for seed in (likely, *range(400)):
            try:
                simulate(seed, 24)
            except (Broken, ValueError):
                return
    raise AssertionError(f"nothing broke although {name}")


def test_the_contract_holds_when_programs_change() -> None:
    broken, takeovers = [], 0
    for seed in range(CHANGING):
        try:
            takeovers += simulate_changes(seed, steps_of(seed))[1]
        except Exception as error:
            broken.append(f"seed {seed}: {type(error).__name__}: {error}")
    assert not broken, "\n".join(broken[:5])
    assert takeovers > CHANGING // 2


def test_the_contract_holds_when_flows_are_rescaled() -> None:
    broken, rescaled = [], 0
    for seed in range(RESCALED):
        try:
            rescaled += simulate_rescaling(seed, steps_of(seed))[1]
        except Exception as error:
            broken.append(f"seed {seed}: {type(error).__name__}: {error}")
    assert not broken, "\n".join(broken[:5])
    assert rescaled > 4 * RESCALED


@pytest.mark.parametrize("name", RESCALING_MUTATIONS)
def test_the_simulation_notices_what_a_rescaling_breaks(name: str) -> None:
    make, likely = RESCALING_MUTATIONS[name]
    with make():
        for seed in (likely, *range(400)):
            try:
                simulate_rescaling(seed, 24)
            except (Broken, ValueError):
                return
    raise AssertionError(f"nothing broke although {name}")


def test_the_contract_holds_when_sinks_get_several_epochs_as_one() -> None:
    broken, together = [], 0
    for seed in range(PACED):
        try:
            together += simulate_paces(seed, steps_of(seed))[1]
        except Exception as error:
            broken.append(f"seed {seed}: {type(error).__name__}: {error}")
    assert not broken, "\n".join(broken[:5])
    assert together > PACED // 2


def test_the_contract_holds_when_layers_lie_where_tasks_run() -> None:
    broken, mended = [], 0
    for seed in range(APART):
        try:
            mended += simulate_apart(seed, steps_of(seed))[1]
        except Exception as error:
            broken.append(f"seed {seed}: {type(error).__name__}: {error}")
    assert not broken, "\n".join(broken[:5])
    assert mended > 0


@pytest.mark.parametrize("name", APART_MUTATIONS)
def test_the_simulation_notices_what_is_lost_with_a_worker(name: str) -> None:
    make, likely = APART_MUTATIONS[name]
    with make():
        for seed in (likely, *range(400)):
            try:
                simulate_apart(seed)
            except (Broken, ValueError):
                return
    raise AssertionError(f"nothing broke although {name}")


@pytest.mark.parametrize("name", PACE_MUTATIONS)
def test_the_simulation_notices_what_breaks_a_delivery_of_several_epochs(name: str) -> None:
    make, likely = PACE_MUTATIONS[name]
    with make():
        for seed in (likely, *range(400)):
            try:
                simulate_paces(seed)
            except (Broken, ValueError):
                return
    raise AssertionError(f"nothing broke although {name}")
