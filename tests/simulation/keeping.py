"""What is kept in a simulated history, and whether it is there: rules, pins, readers with leases."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nosync.journal.journal import image_of
from nosync.journal.pins import pin, unpin
from nosync.model.ladder import Ladder, ladder_of
from nosync.model.retention import Hold, Kept, boundary
from nosync.state.cover import is_complete, pieces
from nosync.tiers.reader_leases import Lease

from .places import Peek
from .program import events_of, expected
from .world import Broken

if TYPE_CHECKING:
    from nosync.journal.entries import Opened
    from nosync.journal.image import Image

    from .history import History
    from .life import Life

SECONDS = 20.0
MOST_LAYERS = 24  # in a range of a trace, once all is folded


@dataclass(frozen=True)
class Coarse:
    """The last few epochs, and each that can be divided by `step`."""

    count: int
    step: int

    def kept(self, newest: int, times: Mapping[int, float], now: float, holds: Sequence[Hold]) -> Kept:
        since = max(1, min([newest - self.count + 1, *(hold.first for hold in holds if hold.last is None)]))
        held = {epoch for hold in holds if hold.last is not None for epoch in range(hold.first, hold.last + 1)}
        return Kept(since, tuple(epoch for epoch in range(1, since) if epoch % self.step == 0 or epoch in held))

    def boundary(self, newest: int, holds: Sequence[Hold]) -> int:
        return boundary(newest, holds)


def some_ladder(chance: random.Random) -> Ladder:
    """As a user would choose it, for histories that take a minute or so."""
    kind = chance.randrange(4)
    if kind == 0:
        return ladder_of(chance.randrange(1, 12))
    young, step = chance.randrange(1, 8), chance.randrange(1, 6)
    if kind == 1:
        return ladder_of(f"{young} seconds")
    rungs = {f"{young} seconds": "every epoch", f"{young + chance.randrange(4, 20)} seconds": f"{step} seconds"}
    oldest = {f"{young + chance.randrange(20, 90)} seconds": f"{step + chance.randrange(1, 20)} seconds"} if kind == 2 else {}
    return ladder_of(rungs | oldest)


@dataclass
class Reader:
    """Somebody who reads a home as of an epoch and takes his time. `names` are the files that he still needs."""

    life: Life
    lease: Lease
    boot: str
    names: list[str]

    def check(self, history: History) -> None:
        """While the lease lasts, nothing that it holds is deleted, unless the disk itself was lost or damaged."""
        if not self.lease.live or self.life.host.boot != self.boot or history.rotten:
            return
        gone = [name for name in self.names if name not in self.life.disk.files]
        if gone:
            raise Broken(f"{gone} was deleted while somebody read it")


def read(history: History, life: Life) -> Reader:
    """A reader begins: the lease comes first, then the journal."""
    lease = Lease(life.disk, SECONDS, life.world.clock)
    image = image_of(Peek(life.disk))  # type: ignore[arg-type]
    readable = [epoch for epoch in range(1, image.epoch + 1) if epoch in image.kept]
    at = life.world.random.choice(readable or [0])
    names = [layer.path for layers in image.covers("totals", at).values() for layer in layers if layer.path in life.disk.files]
    if life.world.random.random() < 0.5:
        lease.renew(image.number)
    life.world.events["lease"] += 1
    return Reader(life, lease, life.host.boot, names)


def look_at_readers(history: History, chance: float) -> None:
    """What they read is there; now and then another one comes."""
    life = history.life
    if life is not None and life.ready and history.world.random.random() < chance:
        history.guarded(life, lambda: history.readers.append(read(history, life)))
    for reader in history.readers:
        reader.check(history)


def hold(life: Life) -> None:
    """Somebody pins an epoch, or drops a pin."""
    assert life.journal is not None
    image, chance = life.journal.image, life.world.random
    readable = [epoch for epoch in range(1, image.epoch + 1) if epoch in image.kept]
    if image.pins and chance.random() < 0.5:
        unpin(life.journal, chance.choice(sorted(image.pins)))
    elif readable:
        pin(life.journal, f"pin {life.world.operations}", chance.choice(readable))
        life.world.events["pin"] += 1


def check_kept(history: History, life: Life, known: list[Opened]) -> None:
    """The state as of every kept epoch is what the input makes of it. What was computed at once after a loss cannot be told apart."""
    assert life.journal is not None
    image = life.journal.image
    if gone := {name: epoch for name, epoch in image.pins.items() if epoch not in image.kept}:
        raise Broken(f"pins hold nothing: {gone}")
    states = expected([events_of(history, entry) for entry in known if entry.epoch <= image.epoch])
    for epoch in [epoch for epoch in range(1, image.epoch + 1) if epoch in image.kept]:
        for trace, wanted in states[epoch - 1].items():
            covers = image.covers(trace, epoch)
            layers = pieces(image.traces.get(trace, {})) if epoch < image.epoch else {}
            if not all(is_complete(covers.get(held, ()), found, epoch) for held, found in layers.items()):
                if not history.repaired and not history.rotten:
                    raise Broken(f"epoch {epoch} of {trace} is kept and cannot be read")
                continue
            if (history.repaired or history.rotten) and not _brought(life, image, trace, epoch):
                continue
            found = life.engine.holds(trace, covers)
            if found != wanted:
                raise Broken(f"as of kept epoch {epoch}, {trace} is {found}, not {wanted}")
            history.world.events["kept epoch read"] += 1


def _brought(life: Life, image: Image, trace: str, epoch: int) -> bool:
    """After a loss some layers lie on the remote alone, or nowhere."""
    for layer in [layer for layers in image.covers(trace, epoch).values() for layer in layers]:
        if layer.path not in life.disk.files and not (life.remote is not None and life.remote.download(layer.path, life.disk)):
            return False
    return True


def check_few(life: Life) -> None:
    """Layers that nobody needs are gone."""
    assert life.journal is not None
    image = life.journal.image
    for trace in ("totals", "parities"):
        written = image.traces.get(trace, {})
        for held, layers in written.items():
            if len(layers) > MOST_LAYERS:
                raise Broken(f"{trace} {held} still has {[layer.path for layer in layers]}")
    if life.upkeep.compactor.due:
        raise Broken(f"{list(life.upkeep.compactor.due)} were given up and never deleted")
