"""What comes home from other hosts, and what waits for it."""

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nosync.duties.compacting import Compactor
from nosync.duties.merging import due_merges
from nosync.duties.upkeep import Upkeep
from nosync.journal.chain import read_chain
from nosync.journal.entries import Computed, Declared, Opened, Restored
from nosync.journal.image import Image
from nosync.journal.journal import Journal
from nosync.journal.names import RECORDS
from nosync.model.errors import Unavailable
from nosync.model.hash_range import ALL_HASHES
from nosync.model.layers import LayerInfo
from nosync.model.run import this_process
from nosync.model.safety import safe_points
from nosync.peers.arrivals import FAILURES, Arrivals
from nosync.peers.client import Unanswered
from nosync.recovery.restore import Recovered, unreported
from nosync.recovery.survey import doubtful
from nosync.runtime.change import difference
from nosync.runtime.mending import Mending
from nosync.runtime.rebuilding import ProgramChange
from nosync.runtime.takeover import Taking
from nosync.store.disk import LocalDisk
from nosync.tiers.host import HostTier, synced_number
from nosync.tiers.inventory import image_in_home
from tests.simulation.places import Host
from tests.simulation.world import World

HERE, THERE = "10.0.0.1:4000", "10.0.0.2:4000"


class Cluster:
    """Layers on other hosts, in the hands of a test. `gone` places do not answer."""

    def __init__(self, home: Path) -> None:
        self.disk = LocalDisk(home)
        self.journal = Journal(self.disk, None, this_process(0.0))
        self.gone: set[str] = set()
        self.full = False
        self.kept: list[tuple[str, list[str]]] = []
        self.arrivals = Arrivals(self.journal, self.disk, self.fetch, self.keep, self.journal.number)

    def fetch(self, layer: LayerInfo) -> None:
        if self.full:
            raise Unavailable("no space left on device")
        if layer.place in self.gone:
            raise Unanswered(f"nobody answers at {layer.place}")
        self.disk.replace(layer.path, b"rows")

    def keep(self, place: str, paths: Sequence[str]) -> None:
        self.kept.append((place, list(paths)))

    def layer(self, epoch: int, place: str) -> LayerInfo:
        path = f"layers/v/0-f/{epoch}-{epoch + 1}-{self.journal.run}-{place[-6]}.arrow"
        return LayerInfo("v", ALL_HASHES, epoch, epoch + 1, "diffs", path, 1, 4, "", place=place)

    def compute(self, epoch: int, place: str = THERE) -> LayerInfo:
        layer = self.layer(epoch, place)
        self.journal.append(Opened(epoch, 0.0, {}))
        self.journal.append(Computed(epoch, (layer,), {}, {}))
        return layer


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


def test_layers_come_home_in_the_order_of_the_journal_and_their_hosts_hear_of_it(cluster: Cluster) -> None:
    first, second = cluster.compute(1), cluster.compute(2)
    assert cluster.arrivals.standing().epoch == 0 and cluster.arrivals.standing().behind > 8
    assert cluster.arrivals.step() and not cluster.arrivals.step()
    assert cluster.disk.exists(first.path) and cluster.disk.exists(second.path)
    assert cluster.kept == [(THERE, [first.path, second.path])]
    assert cluster.arrivals.standing().epoch == 2 and cluster.arrivals.standing().behind == 0


def test_nothing_is_safe_on_the_host_before_it_is_there(cluster: Cluster) -> None:
    host = HostTier(cluster.journal, cluster.disk, arrived=cluster.arrivals.reached)
    cluster.compute(1)
    host.step()
    assert host.standing().epoch == 0
    cluster.arrivals.step()
    host.step()
    assert host.standing().epoch == 1


def test_executors_end_with_the_driver_so_a_kill_costs_what_is_not_home(cluster: Cluster) -> None:
    cluster.compute(1)
    cluster.arrivals.step()
    cluster.compute(2)
    assert safe_points(2, [cluster.arrivals.standing()]) == {"process": 1, "executor": 1}
    upkeep = Upkeep(cluster.journal, cluster.disk, None, {}, None, {}, arrivals=cluster.arrivals)  # type: ignore[arg-type]
    assert upkeep.safe() == {"process": 1, "executor": 1, "host": 0}
    assert "arrivals" in upkeep.duties()


def test_a_host_that_does_not_answer_holds_up_what_is_behind_and_is_taken_for_lost_in_the_end(cluster: Cluster) -> None:
    cluster.compute(1, THERE)
    cluster.gone = {THERE}
    for _ in range(FAILURES):
        assert not cluster.arrivals.lost
        with pytest.raises(Unavailable, match="nobody answers"):
            cluster.arrivals.step()
    assert cluster.arrivals.lost and cluster.arrivals.standing().epoch == 0
    cluster.gone = set()
    assert cluster.arrivals.step() and not cluster.arrivals.lost


def test_what_was_made_again_elsewhere_is_asked_for_no_more(cluster: Cluster) -> None:
    lost = cluster.compute(1, THERE)
    cluster.gone = {THERE}
    again = cluster.layer(1, HERE)
    cluster.journal.append(Restored((lost.path,), (again,)))
    cluster.arrivals.catch_up()
    assert cluster.disk.exists(again.path) and not cluster.disk.exists(lost.path)
    assert cluster.arrivals.standing().epoch == 1


def test_readers_of_the_home_see_the_newest_epoch_that_is_there(cluster: Cluster) -> None:
    cluster.journal.append(Declared("shop", 1, {}, {}, {"v": {"trace": "v"}}, feeders={"v": []}))
    cluster.compute(1)
    cluster.arrivals.step()
    cluster.compute(2)
    image = cluster.journal.snapshot()[0]
    assert image_in_home(image, cluster.disk).epoch == 1
    cluster.arrivals.step()
    assert image_in_home(image, cluster.disk) is image


def test_merges_leave_out_what_is_on_its_way(cluster: Cluster) -> None:
    for epoch in range(1, 9):
        cluster.compute(epoch)
    image = cluster.journal.snapshot()[0]
    assert due_merges(image) and not due_merges(image, is_coming=cluster.arrivals.is_coming)
    cluster.arrivals.step()
    cluster.compute(9)
    image = cluster.journal.snapshot()[0]
    ((order,),) = due_merges(image, is_coming=cluster.arrivals.is_coming)
    assert max(layer["upper"] for layer in order["layers"]) == 9  # type: ignore[attr-defined]


def test_the_compactor_misses_nothing_that_is_on_its_way(cluster: Cluster) -> None:
    host = HostTier(cluster.journal, cluster.disk, arrived=cluster.arrivals.reached)
    cluster.compute(1)
    never = (lambda _: 0, lambda: None, lambda _: True)
    compactor = Compactor(cluster.journal, cluster.disk, None, host, None, *never, cluster.arrivals.is_coming)  # type: ignore[arg-type]
    compactor.step(cluster.journal.number)
    assert compactor.missing == {}


class Again:
    """A recovery that makes all that is lost again, on another host."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.called = cluster, 0

    def __call__(self, doubted: frozenset[str]) -> Recovered:
        self.called += 1
        image = self.cluster.journal.snapshot()[0]
        lost = [layer for layer in image.newest_layers() if not self.cluster.disk.exists(layer.path)]
        made = tuple(self.cluster.layer(layer.lower, HERE) for layer in lost)
        self.cluster.journal.append(Restored(tuple(layer.path for layer in lost), made))
        return Recovered(recomputed=len(made))


def mending(cluster: Cluster) -> tuple[Mending, Again]:
    again = Again(cluster)
    return Mending(cluster.journal, cluster.arrivals, again, lambda: None, threading.Lock()), again


def test_after_a_failed_epoch_only_what_nobody_has_is_made_again(cluster: Cluster) -> None:
    found, again = mending(cluster)
    there, here = cluster.compute(1, THERE), cluster.compute(2, HERE)
    cluster.gone = {THERE}
    assert not found.step() and again.called == 0
    found.failed(Unavailable("a layer is nowhere to be had"))
    assert found.step() and not found.step()
    image = cluster.journal.snapshot()[0]
    assert cluster.disk.exists(here.path) and there.path not in {layer.path for layer in image.layers()}
    assert [done.recomputed for done in found.mended] == [1]


def test_a_failed_epoch_whose_layers_are_all_to_be_had_costs_no_recovery(cluster: Cluster) -> None:
    found, again = mending(cluster)
    layer = cluster.compute(1)
    found.failed(Unavailable("the disk is full"))
    assert not found.step() and again.called == 0
    assert cluster.disk.exists(layer.path)


def test_layers_that_do_not_come_are_made_again_although_no_epoch_asks_for_them(cluster: Cluster) -> None:
    found, again = mending(cluster)
    cluster.compute(1)
    cluster.gone = {THERE}
    for _ in range(FAILURES):
        with pytest.raises(Unavailable):
            cluster.arrivals.step()
    assert found.step() and again.called == 1 and not cluster.arrivals.lost
    cluster.arrivals.catch_up()


def test_a_home_without_room_is_no_loss(cluster: Cluster) -> None:
    found, again = mending(cluster)
    cluster.compute(1)
    cluster.full = True
    for _ in range(FAILURES + 1):
        with pytest.raises(Unavailable, match="no space"):
            cluster.arrivals.step()
    assert not cluster.arrivals.lost and not found.step()
    found.failed(Unavailable("an epoch failed"))
    with pytest.raises(Unavailable, match="no space"):
        found.step()
    cluster.full = False
    assert not found.step() and again.called == 0


def test_a_place_is_part_of_what_the_journal_keeps_of_a_layer(cluster: Cluster) -> None:
    layer = cluster.layer(1, THERE)
    assert LayerInfo.from_json(layer.to_json()) == layer
    assert "place" not in replace(layer, place="").to_json()
    for place in ("/etc/passwd", "host", "host:port", "a b:1", 7, ["x:1"], None):
        with pytest.raises((ValueError, TypeError)):
            LayerInfo.from_json(layer.to_json() | {"place": place})
    image = Image()
    image.apply(1, Opened(1, 0.0, {}))
    image.apply(2, Computed(1, (layer,), {}, {}))
    assert image.newest_layers() == [layer]


def test_a_program_that_takes_over_claims_nothing_that_is_not_home(cluster: Cluster) -> None:
    cluster.journal.append(Declared("shop", 1, {}, {"v": "same"}, {}, feeders={"v": ["v"]}))
    layer = cluster.compute(1)
    declared = cluster.journal.image.declared
    assert declared is not None
    change = ProgramChange(declared, difference(declared, declared), {}, {}, frozenset(), (), False, {})
    Taking(cluster.journal, cluster.disk, None, None, unreported, None, cluster.arrivals).take_over(change, "discard")  # type: ignore[arg-type]
    assert synced_number(cluster.disk, read_chain(cluster.disk)) == cluster.journal.number
    assert cluster.disk.exists(layer.path)


def test_a_program_does_not_take_over_before_what_it_stands_on_is_home(cluster: Cluster) -> None:
    cluster.journal.append(Declared("shop", 1, {}, {"v": "same"}, {}, feeders={"v": ["v"]}))
    cluster.compute(1)
    cluster.gone, number, declared = {THERE}, cluster.journal.number, cluster.journal.image.declared
    assert declared is not None
    change = ProgramChange(declared, difference(declared, declared), {}, {}, frozenset(), (), False, {})
    with pytest.raises(Unavailable, match="nobody answers"):
        Taking(cluster.journal, cluster.disk, None, None, unreported, None, cluster.arrivals).take_over(change, "discard")  # type: ignore[arg-type]
    assert cluster.journal.number == number and synced_number(cluster.disk, read_chain(cluster.disk)) == 0


def test_what_is_lost_with_a_host_is_no_more_believed_once_the_host_of_the_home_restarts(cluster: Cluster) -> None:
    world = World(0)
    disk: Any = Host(world, "boot").disk
    journal = Journal(disk, None, this_process(0.0))
    cluster.disk, cluster.journal = disk, journal
    cluster.arrivals = Arrivals(journal, disk, cluster.fetch, cluster.keep, journal.number)
    lost = cluster.compute(1)
    host = HostTier(journal, disk, arrived=lambda: journal.image.computed_in[1])
    journal.append(Restored((lost.path,), ()))
    host.step()
    assert host.number < journal.number
    assert all(file.content_synced and file.name_synced for name, file in disk.files.items() if name.startswith(RECORDS))


def test_what_tasks_of_an_earlier_run_have_written_is_asked_of_nobody(cluster: Cluster) -> None:
    before = replace(cluster.layer(1, THERE), path=cluster.layer(1, THERE).path.replace(cluster.journal.run, "0.ab"))
    cluster.gone = {THERE}
    cluster.journal.append(Opened(1, 0.0, {}), Computed(1, (), {}, {}), Restored((), (before,)))
    cluster.arrivals.catch_up()
    assert cluster.arrivals.standing().behind == 0 and not cluster.arrivals.is_coming(before)


def test_a_layer_that_was_never_brought_home_is_in_doubt_without_any_restart(cluster: Cluster) -> None:
    first, boot = cluster.compute(1), this_process(0.0).boot
    cluster.arrivals.step()
    HostTier(cluster.journal, cluster.disk, arrived=cluster.arrivals.reached).step()
    second = cluster.compute(2)
    chain = read_chain(cluster.disk)
    assert doubtful(chain, synced_number(cluster.disk, chain), boot) == {second.path} != {first.path}
    assert cluster.arrivals.coming() == {second.path}
