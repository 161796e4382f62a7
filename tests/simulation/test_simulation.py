"""Histories under faults, crashes, partitions and losses: the contract holds in all, and every kind of trouble was among them."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import pytest

from tests.longer import more

from .apart import MUTATIONS as APART_MUTATIONS
from .apart import simulate_apart
from .changing import simulate_changes
from .coverage import missing, table
from .history import simulate
from .many import Met, some, steps_of, together
from .mutations import MUTATIONS
from .paces import MUTATIONS as PACE_MUTATIONS
from .paces import simulate_paces
from .rescaling import MUTATIONS as RESCALING_MUTATIONS
from .rescaling import simulate_rescaling
from .world import Broken

LEAST, HISTORIES = 250, 1_250
SPAWN = multiprocessing.get_context("spawn")
CHANGING = [80, *more([200])]
RESCALED = [40, *more([100])]
PACED = [30, *more([60])]
APART = [40, *more([100])]
TWICE = 238  # a layer is brought home a second time, after it was synced


def judge_all(met: Met, histories: int, capsys: pytest.CaptureFixture[str]) -> None:
    operations, seen, events, broken = met
    with capsys.disabled():
        print(f"\n{histories:,} histories, {operations:,} storage operations\n{table(seen, events)}")
    assert not broken, "\n".join(broken[:5])
    assert operations >= 100 * histories
    assert not missing(seen, events)


@pytest.mark.slow
def test_the_contract_holds_until_everything_has_happened(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "0")  # for the process of the pool: a seed that breaks does so again
    met, done = together([]), 0
    with ProcessPoolExecutor(1, SPAWN) as pool:
        while done < HISTORIES and (done < LEAST or missing(met[1], met[2])):
            met = together([met, pool.submit(some, range(done, done + 50)).result()])
            done += 50
    judge_all(met, done, capsys)


@pytest.mark.long
def test_the_contract_holds_whatever_happens(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    parts = [range(start, start + 250) for start in range(0, HISTORIES, 250)]
    with ProcessPoolExecutor(mp_context=SPAWN) as pool:
        judge_all(together(pool.map(some, parts)), HISTORIES, capsys)


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


@pytest.mark.parametrize("histories", CHANGING)
def test_the_contract_holds_when_programs_change(histories: int) -> None:
    broken, takeovers = [], 0
    for seed in range(histories):
        try:
            takeovers += simulate_changes(seed, steps_of(seed))[1]
        except Exception as error:
            broken.append(f"seed {seed}: {type(error).__name__}: {error}")
    assert not broken, "\n".join(broken[:5])
    assert takeovers > histories // 2


@pytest.mark.parametrize("histories", RESCALED)
def test_the_contract_holds_when_flows_are_rescaled(histories: int) -> None:
    broken, rescaled = [], 0
    for seed in range(histories):
        try:
            rescaled += simulate_rescaling(seed, steps_of(seed))[1]
        except Exception as error:
            broken.append(f"seed {seed}: {type(error).__name__}: {error}")
    assert not broken, "\n".join(broken[:5])
    assert rescaled > 4 * histories


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


@pytest.mark.parametrize("histories", PACED)
def test_the_contract_holds_when_sinks_get_several_epochs_as_one(histories: int) -> None:
    broken, together = [], 0
    for seed in range(histories):
        try:
            together += simulate_paces(seed, steps_of(seed))[1]
        except Exception as error:
            broken.append(f"seed {seed}: {type(error).__name__}: {error}")
    assert not broken, "\n".join(broken[:5])
    assert together > histories // 2


@pytest.mark.parametrize("histories", APART)
def test_the_contract_holds_when_layers_lie_where_tasks_run(histories: int) -> None:
    broken, mended = [], 0
    for seed in (*range(histories), TWICE):
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
