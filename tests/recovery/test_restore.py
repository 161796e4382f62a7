"""What is recomputed stands for all that was there before: also where it comes to nothing."""

from dataclasses import replace
from typing import Any

import pytest

from nosync.journal.entries import Merged
from nosync.journal.journal import Journal
from nosync.model.engine import Outcome
from nosync.model.errors import Corrupt
from nosync.model.run import Runner
from nosync.model.shards import shard_ranges
from nosync.recovery.restore import Recovered, recover
from nosync.recovery.suspicion import suspected
from nosync.runtime.epochs import Epochs
from nosync.state.leaves import leaf_layers
from tests.simulation.places import Cache, Host
from tests.simulation.program import DictEngine, shape_of
from tests.simulation.sources import Lasting, LastingReader
from tests.simulation.world import World

SHAPE = shape_of(dice=False)
HALVES = shard_ranges(2)


def grown(*events: int) -> tuple[Cache, Journal, DictEngine]:
    world, source = World(0), Lasting()
    disk = Host(world, "boot").disk
    journal = Journal(disk, None, Runner(1, "host", "boot", 0.0, "00000001"))
    engine = DictEngine(world, disk, source, journal.run, dice=False)
    epochs = Epochs(journal, {"lasting": LastingReader(world, source, 0)}, engine, lambda: 0.0)
    for event in events:
        source.events.append(event)
        epochs.step()
    return disk, journal, engine


def lose(disk: Cache, journal: Journal, engine: DictEngine, path: str) -> Recovered:
    del disk.files[path]
    return recover(journal, disk, None, engine, SHAPE, engine.verify, frozenset())


def test_a_layer_that_stands_for_a_lost_one_is_missed_when_it_is_lost_too() -> None:
    disk, journal, engine = grown(1, 3, 5)
    leaves = sorted(journal.image.traces["totals"][HALVES[1]], key=lambda layer: -layer.lower)
    merged = engine.merge(leaves[1:])
    journal.append(Merged(merged))
    del disk.files[leaves[1].path]
    lose(disk, journal, engine, leaves[0].path)
    assert lose(disk, journal, engine, merged.path).missing_from == 2
    assert engine.state("totals", lambda name: journal.image.covers(name, 3)) == {1: 6, 3: 3}


def test_what_lies_beside_a_lost_layer_stays_readable_and_a_torn_file_is_in_nobodys_way() -> None:
    disk, journal, engine = grown(1, 3, 5)
    leaves = sorted(journal.image.traces["totals"][HALVES[1]], key=lambda layer: layer.lower)
    journal.append(Merged(engine.merge(leaves[::-1])))
    before = {layer.path for layer in journal.image.layers()}
    disk.files[leaves[1].path].content = bytes(leaves[1].bytes)
    assert recover(journal, disk, None, engine, SHAPE, engine.verify, frozenset(before)).recomputed == 0
    assert {layer.path for layer in journal.image.layers()} == before
    assert leaves[1].path not in disk.files


def test_a_layer_without_a_file_makes_room_for_what_is_computed_again() -> None:
    """A sink has to get epoch 2 once more: everything that it stands on is written by epoch then."""
    disk, journal, engine = grown(1, 3, 5)
    leaves = sorted(journal.image.traces["totals"][HALVES[1]], key=lambda layer: layer.lower)
    journal.append(Merged(engine.merge(leaves[::-1])))
    for lost in (leaves[1], *(layer for layer in journal.image.traces["out"][HALVES[0]] if layer.lower > 1)):
        del disk.files[lost.path]
    doubted = frozenset(layer.path for layer in journal.image.layers())
    recover(journal, disk, None, engine, SHAPE, engine.verify, doubted)
    assert engine.state("totals", lambda name: journal.image.covers(name, 2)) == {1: 1, 3: 3}
    assert leaves[1].path not in {layer.path for layer in journal.image.layers()}


def test_epochs_that_cancel_out_are_recomputed_to_nothing_and_not_to_what_is_left_of_them() -> None:
    disk, journal, engine = grown(1, 3, 3)  # the sum of odd totals is 1, then 4, then 1 again
    layers = {(layer.trace, HALVES.index(layer.range), layer.lower): layer.path for layer in journal.image.layers()}
    for lost in (("totals", 1, 2), ("parities", 1, 3)):
        del disk.files[layers[lost]]
    done = recover(journal, disk, None, engine, SHAPE, engine.verify, frozenset())
    assert (done.jobs, done.recomputed) == (1, 2)
    image = journal.image
    assert engine.state("parities", lambda name: image.covers(name, image.epoch)) == {0: 6, 1: 1}
    assert [(layer.lower, layer.upper) for layer in leaf_layers(image.traces["parities"][HALVES[1]])] == [(1, 2), (2, 4)]  # none of epoch 2


def test_what_comes_out_differently_than_it_is_on_record_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    disk, journal, engine = grown(1, 3, 5)
    newest = max(journal.image.traces["totals"][HALVES[1]], key=lambda layer: layer.lower)
    assert lose(disk, journal, engine, newest.path).different == ()
    compute = engine.compute

    def random(*arguments: Any) -> Outcome:
        outcome = compute(*arguments)
        return replace(outcome, layers=tuple(replace(layer, checksum="another") for layer in outcome.layers))

    monkeypatch.setattr(engine, "compute", random)
    newest = max(journal.image.traces["totals"][HALVES[1]], key=lambda layer: layer.lower)
    assert lose(disk, journal, engine, newest.path).different == ("totals",)


def test_whenever_the_process_dies_an_epoch_that_is_to_come_out_anew_keeps_its_input() -> None:
    disk, journal, engine = grown(1, 3, 5)
    before, number = journal.image.copy(), journal.number
    [lost] = [layer.path for layer in journal.image.traces["totals"][HALVES[1]] if layer.lower == 3]
    del disk.files[lost]
    done = recover(journal, disk, None, engine, replace(SHAPE, unrepeatable=frozenset(["totals"])), engine.verify, frozenset([lost]))
    assert (done.epoch, done.rolled_back) == (2, 0)
    for record in journal.after(number):
        for entry in record.entries:
            before.apply(record.number, entry)
        assert 3 in before.opened, f"a kill after record {record.number} would lose the input of epoch 3"


def test_back_at_an_epoch_inside_a_layer_that_stands_for_a_lost_one_the_state_is_right_whenever_the_process_dies() -> None:
    disk, journal, engine = grown(1, 3, 5)
    leaves = leaf_layers(journal.image.traces["totals"][HALVES[1]])
    journal.append(Merged(engine.merge(leaves[::-1])))
    lose(disk, journal, engine, leaves[1].path)
    [output] = [layer.path for layer in journal.image.traces["out"][HALVES[0]] if layer.lower == 3]
    del disk.files[output]
    number = journal.number
    recover(journal, disk, None, engine, replace(SHAPE, unrepeatable=frozenset(["out"])), engine.verify, frozenset([output]))
    assert journal.image.epoch == 2 and engine.state("totals", lambda name: journal.image.covers(name, 2)) == {1: 1, 3: 3}
    assert journal.number == number + 1  # all or nothing


def test_a_recovery_that_meets_damage_is_not_met_by_it_again() -> None:
    disk, journal, engine = grown(1, 3)
    engine.rotten = True
    first, second = sorted(journal.image.traces["totals"][HALVES[1]], key=lambda layer: layer.lower)
    disk.files[first.path].content = bytes(first.bytes)
    with pytest.raises(Corrupt):
        lose(disk, journal, engine, second.path)
    recover(journal, disk, None, engine, SHAPE, engine.verify, suspected(disk, journal.image))
    assert engine.state("totals", lambda name: journal.image.covers(name, 2)) == {1: 1, 3: 3}
