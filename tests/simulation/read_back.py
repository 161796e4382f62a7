"""Every reported safe point can be read back: a copy of the world loses what a failure takes, recovers, and is compared with its input."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nosync.history.status import recorded_safe
from nosync.journal.chain import read_chain
from nosync.journal.past import TieredReader, whole_image
from nosync.model.errors import Corrupt, Invalid
from nosync.state.cover import pieces
from nosync.state.leaves import leaf_layers
from nosync.tiers.inventory import image_in_home

from .ending import check_now
from .old_epochs import check_old
from .places import Host, Peek
from .program import events_of, expected
from .world import Broken, World

if TYPE_CHECKING:
    from .history import History
    from .life import Life

OLD = 3  # epochs that are read as of then: so many of those that were reported, and as many of all


def look_back(history: History) -> None:
    """Now and then, and sooner when something was deleted."""
    erased = sum(life.upkeep.compactor.erased for life in history.lives if life.ready)
    if history.world.random.random() < (0.5 if erased != history.erased else 0.02):
        read_back(history)
    history.erased = erased


def read_back(history: History) -> None:
    """For one kind of failure. The history itself goes on as if nothing had been asked."""
    if history.rotten:  # damage is found by reading: that is another story
        return
    kind = history.world.random.choice(sorted(history.promises.claims) or ["process"])
    other = _copied(history)
    _note_status(history, other)
    if kind == "host":
        other.host.disk.restart()
        other.host.boot = "another boot"
    if kind == "site":
        other.host = Host(other.world, "another boot")
        other.hosts.append(other.host)
    if kind != "process" and other.remote is not None:
        other.remote.restart(other.world)
    if kind != "process":
        other.promises.expect(kind)
    try:
        _check(other, other.promises.claims.get(kind, 0), other.promises.survivors(kind))
    except (Corrupt, Invalid) as error:
        raise Broken(f"what survives a failure of the {kind} cannot be read: {error}") from error
    history.world.events += other.world.events
    history.world.events["read back"] += 1


def _note_status(history: History, other: History) -> None:
    """What `nosync status` reads from the home of the newest run counts as promised too."""
    life = history.life
    if life is None or not life.ready or not life.current or life.journal is None or life.journal.lock.owner is not None:
        return
    disk: Any = Peek(life.disk)
    chain = read_chain(disk)
    image = image_in_home(chain.image(), disk)
    said = recorded_safe(image, disk, chain, lambda number: [record for record in chain.records if record.number > number])
    for kind, epoch in said.items():
        other.promises.claim(kind, epoch)
    history.world.events["status read back"] += 1


def _copied(history: History) -> History:
    other = copy.copy(history)
    other.world = World(history.world.operations)
    other.world.newest = other.generation
    hosts = {host: Host(other.world, host.boot) for host in history.hosts}
    for host, twin in hosts.items():
        twin.disk = host.disk.copy(other.world, twin)
    other.hosts, other.host = list(hosts.values()), hosts[history.host]
    other.remote = history.remote.copy() if history.remote else None
    other.lasting = replace(history.lasting)
    other.sinks = {name: replace(sink, got=dict(sink.got), since=dict(sink.since), down=False) for name, sink in history.sinks.items()}
    other.promises = history.promises.copied(other)
    other.life, other.lives, other.places = None, [], dict(history.places)
    return other


def _check(history: History, claimed: int, reported: frozenset[int]) -> None:
    life = history.make_life()
    life.begin()
    known = history.promises.openings(life)
    check_now(history, life, known)
    if claimed:
        _check_as_of(history, life, claimed)
    chance, newest = history.world.random, len(known)
    some = {*chance.sample(sorted(reported), min(len(reported), OLD)), *chance.sample(range(1, newest + 1), min(newest, OLD))}
    check_old(history, life, known, sorted(some), reported)


def _check_as_of(history: History, life: Life, epoch: int) -> None:
    """The state of that very epoch is there too, or refused: where a layer was lost, a larger one around it may stand for its epochs."""
    assert life.journal is not None
    reader = TieredReader(life.disk, life.remote)
    image = whole_image(reader, life.journal.image, life.journal.base, life.journal.after(life.journal.base))
    known = [entry for entry in history.promises.openings(life) if entry.epoch <= epoch]
    wanted = expected([events_of(history, entry) for entry in known])[-1]
    for trace in wanted:
        leaves = [leaf for layers in pieces(image.traces.get(trace, {})).values() for leaf in leaf_layers(layers)]
        if any(leaf.lower <= epoch < leaf.upper - 1 for leaf in leaves):
            continue
        covers = image.covers(trace, epoch)
        for layer in [layer for layers in covers.values() for layer in layers]:
            if layer.path not in life.disk.files and not (life.remote and life.remote.download(layer.path, life.disk)):
                raise Broken(f"epoch {epoch} was safe; {layer.path} of it is nowhere")
        found = life.engine.holds(trace, covers)
        if found != wanted[trace]:
            raise Broken(f"as of epoch {epoch}, {trace} is {found}, not {wanted[trace]}")
