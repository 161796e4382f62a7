"""The past of a journal at the end of a history: what was given up is gone, and what is left says all that anybody asks for, also after the
next failure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from nosync.journal.entries import Computed, Opened
from nosync.journal.names import OPENINGS, ROLLUPS, numbers_in
from nosync.journal.past import TieredReader, openings, stretches
from nosync.model.errors import Corrupt
from nosync.model.retention import ALL_EPOCHS

from .places import Host, Peek
from .world import Broken, World

if TYPE_CHECKING:
    from .history import History
    from .life import Life

MOST_ROLLUPS = 3  # one that an earlier run left in between goes with the next one


def check_past(history: History, life: Life, known: Sequence[Opened]) -> None:
    """Of one that nobody has damaged."""
    assert life.journal is not None
    journal = life.journal
    if history.rotten or not journal.base:
        return
    there = [Peek(life.disk), *([Peek(history.remote)] if history.remote is not None else [])]
    _check_given_up(life, there)
    for failure, stores in _after_failures(history, life):
        reader = TieredReader(*stores)
        try:
            past, found = stretches(reader, journal.base), openings(reader, journal.base, journal.after(journal.base))
        except Corrupt as error:
            raise Broken(f"{failure}, the past cannot be read: {error}") from error
        if [(entry.epoch, entry.slices) for entry in found] != [(entry.epoch, entry.slices) for entry in known]:
            raise Broken(f"{failure}, epochs {[entry.epoch for entry in found]} are known of {len(known)}")
        for entry in (entry for part in past if not part.whole for entry in part.entries):
            if isinstance(entry, Computed) and entry.epoch in journal.image.kept:
                raise Broken(f"{failure}, not all is known of epoch {entry.epoch}, which is kept")
    life.world.events["segments given up"] += life.upkeep.forgetter.given_up


def _check_given_up(life: Life, stores: list[Any]) -> None:
    """What is left of epochs of which none is kept, and two roll-ups."""
    assert life.journal is not None
    journal, kept = life.journal, life.journal.image.kept
    rollups = max(len(store.sizes(ROLLUPS)) for store in stores)
    if rollups > MOST_ROLLUPS and journal.base > journal.chain.base:
        raise Broken(f"{rollups} roll-ups lie about")
    if kept == ALL_EPOCHS:
        return
    past = stretches(TieredReader(*stores), journal.base)
    for part in past:
        epochs = [entry.epoch for entry in part.entries if isinstance(entry, Opened | Computed)]
        if part.whole and not (epochs and kept.count(min(epochs), max(epochs))):
            raise Broken(f"records {part.first} to {part.last} are still there, and of epochs {epochs} none is kept")
    for name in (name for store in stores for name in store.sizes(OPENINGS)):
        if not any((part.first, part.last) == numbers_in(name) for part in past):
            raise Broken(f"{name} is still there, and is of no use")


def _after_failures(history: History, life: Life) -> Iterator[tuple[str, list[Any]]]:
    """What is there then."""
    world = World(history.world.operations)
    host = Host(world, "another boot")
    host.disk = life.disk.copy(world, host)
    host.disk.restart()
    away = history.remote.copy() if history.remote is not None else None
    if away is None:
        yield "after a restart", [Peek(host.disk)]
        return
    away.restart(world)
    yield "after a restart", [Peek(host.disk), Peek(away)]
    yield "without the home", [Peek(away)]
