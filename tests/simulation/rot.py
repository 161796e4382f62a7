"""Damage that nobody has done on purpose."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .places import Host

if TYPE_CHECKING:
    from .history import History


def rot(history: History, host: Host) -> None:
    """A layer vanishes from a home, or its bytes change: one that the remote has, or that can still be computed."""
    there, files, chance = history.remote.files if history.remote is not None else {}, host.disk.files, history.world.random
    names = [name for name in files if name.startswith("layers/") and not any(life.host is host for life in history.lives)]
    names = [name for name in names if name in there or not (history.trims or "/rolls/" in name)]
    if not names:
        return
    history.world.events["damage"] += 1
    name = chance.choice(names)
    history.rotten = True
    if chance.random() < 0.5:
        del files[name]
    else:
        files[name].content = bytes(len(files[name].content))
