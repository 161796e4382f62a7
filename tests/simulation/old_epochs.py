"""Old epochs are read as people read them: the state as of then is right, or refused. Of what was ever reported as a safe point, nothing is
refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from nosync.history.view_covers import Past, covers_at
from nosync.model.errors import NotInHistory

from .places import Peek
from .program import events_of, expected
from .world import Broken

if TYPE_CHECKING:
    from nosync.journal.entries import Opened

    from .history import History
    from .life import Life


def check_old(history: History, life: Life, known: list[Opened], epochs: Iterable[int], reported: frozenset[int]) -> None:
    """`reported` epochs have to be there. What is only on the remote is had from there, without a copy in the home."""
    assert life.journal is not None
    disk: Any = Peek(life.disk)
    remote: Any = Peek(life.remote.away) if life.remote is not None else None
    image, past = life.journal.image, Past(disk, remote, life.journal.base)
    states = expected([events_of(history, entry) for entry in known])
    for epoch in [epoch for epoch in epochs if 1 <= epoch <= image.epoch]:
        for trace, wanted in states[epoch - 1].items():
            record: Any = SimpleNamespace(trace=trace)
            try:
                covers = covers_at(image, record, trace, epoch, past)
            except NotInHistory as error:
                if epoch in reported and epoch in image.kept:
                    raise Broken(f"epoch {epoch} was reported as safe, and {trace} cannot be read as of it: {error}") from error
                continue
            found = life.engine.holds(trace, covers, remote)
            if found != wanted:
                raise Broken(f"as of epoch {epoch} of {image.epoch}, {trace} is {found}, not {wanted}")
        history.world.events["old epochs read"] += 1
