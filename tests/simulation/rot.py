"""Damage that nobody has done on purpose."""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

if TYPE_CHECKING:
    from .history import History
    from .places import Host


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
        files[name].content = spoiled(b"", files[name].content)


def spoiled(written: bytes, content: bytes) -> bytes:
    """Of its length, with other bytes behind what was written: zeros, or what the disk had there before, or all of it but one bit."""
    rest, kind = content[len(written) :], crc32(content) % 3
    if kind == 0:
        return written + bytes(len(rest))
    if kind == 1:
        return written + bytes(byte ^ 0x5A for byte in rest)
    return written + rest[:-1] + bytes(byte ^ 1 for byte in rest[-1:])
