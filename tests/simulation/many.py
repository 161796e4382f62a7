"""Many histories: by seed, in any number of processes."""

from collections import Counter
from collections.abc import Iterable

from .apart import simulate_apart
from .changing import simulate_changes
from .history import simulate
from .paces import simulate_paces
from .rescaling import simulate_rescaling

KINDS = {
    "plain": simulate,
    "changing": lambda seed, steps: simulate_changes(seed, steps)[0],
    "rescaling": lambda seed, steps: simulate_rescaling(seed, steps)[0],
    "paces": lambda seed, steps: simulate_paces(seed, steps)[0],
    "apart": lambda seed, steps: simulate_apart(seed, steps)[0],
}
Seen = Counter[tuple[str, str, str]]
Met = tuple[int, Seen, Counter[str], list[str]]


def steps_of(seed: int) -> int:
    """Mostly short histories, so that there are many; some long ones, for what only happens late."""
    return 120 if seed % 25 == 0 else 16


def some(seeds: Iterable[int], kind: str = "plain") -> Met:
    """Storage operations, what they met, what else happened, and what broke."""
    operations, seen, events, broken = 0, Seen(), Counter[str](), []
    for seed in seeds:
        try:
            world = KINDS[kind](seed, steps_of(seed))
        except Exception as error:
            broken.append(f"seed {seed}: {type(error).__name__}: {error}")
            continue
        operations += world.operations
        seen += world.seen
        events += world.events
    return operations, seen, events, broken


def first_broken(seeds: Iterable[int]) -> str | None:
    """The first promise that is not kept, with the seed of its history; None where all are."""
    return next((broken[0] for seed in seeds if (broken := some([seed])[3])), None)


def together(parts: Iterable[Met]) -> Met:
    operations, seen, events, broken = 0, Seen(), Counter[str](), list[str]()
    for part in parts:
        operations, seen, events, broken = operations + part[0], seen + part[1], events + part[2], broken + part[3]
    return operations, seen, events, broken
