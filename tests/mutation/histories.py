"""Simulated histories as tests of a mutant: the hook into the simulation, as thin as it gets."""

from collections.abc import Callable
from functools import partial

from tests.simulation.changing import simulate_changes
from tests.simulation.history import simulate
from tests.simulation.many import KINDS

SHORT, LONG, CHANGING, OTHERS = 100, 10, 25, 12


def histories() -> dict[str, Callable[[], object]]:
    """By name; each raises where a promise is broken."""
    found: dict[str, Callable[[], object]] = {}
    for seed in range(CHANGING):
        found[f"changing history {seed}"] = partial(simulate_changes, seed, 16)
    for kind in ("rescaling", "paces", "apart"):
        for seed in range(OTHERS):
            found[f"{kind} history {seed}"] = partial(KINDS[kind], seed, 16)
    for seed in range(SHORT):
        found[f"short history {seed}"] = partial(simulate, seed, 16)
    for seed in range(LONG):
        found[f"long history {seed}"] = partial(simulate, seed, 60)
    return found
