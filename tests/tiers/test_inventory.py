"""What is there is found by listing what is kept: that does not grow with what was ever made."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from obstore.store import MemoryStore

from nosync.duties.merging import due_folds
from nosync.duties.upkeep import Upkeep
from nosync.journal.entries import Computed, Declared, Keeping, Merged, Opened
from nosync.journal.journal import Journal
from nosync.journal.names import layer_path
from nosync.model.hash_range import ALL_HASHES
from nosync.model.identifiers import Epoch
from nosync.model.layers import LayerInfo
from nosync.model.policies.log_structured import LogStructured
from nosync.model.run import Runner
from nosync.recovery.survey import survey
from nosync.store.bucket import CloudBucket
from nosync.store.disk import LocalDisk
from nosync.store.objects import Objects
from nosync.tiers.inventory import layers_there

EPOCHS = 200


class Counting(CloudBucket):
    """Counts keys that were listed, and keys that were asked for."""

    listed = asked = 0

    def sizes(self, prefix: str, after: str = "") -> dict[str, int]:
        found = super().sizes(prefix, after)
        self.listed += len(found)
        return found

    def size(self, key: str) -> int | None:
        self.asked += 1
        return super().size(key)


class Flow:
    """A flow of many epochs, everything of which is on the remote and rolled up."""

    def __init__(self, home: Path, keep: str = "5 epochs") -> None:
        self.disk, self.bucket = LocalDisk(home, fsync=lambda descriptor: None), Counting("memory", MemoryStore())
        self.remote = Objects("memory://here", self.bucket)
        upkeep = self.start(1)
        self.journal.append(Declared("shop", 1, {}, {}, {}, {}, {"v": ["v"]}), Keeping(keep))
        for epoch in range(1, EPOCHS + 1):
            self.journal.append(Opened(epoch, 0.0, {}))
            self.journal.append(Computed(epoch, (self.layer(epoch, epoch + 1),), {}, {}))
            if epoch % 10 == 0:
                self.journal.append(Merged(self.layer(1, epoch + 1)))
            self.fold(Epoch(epoch))
            for _ in self.tended(upkeep):
                pass

    def start(self, number: int) -> Upkeep:
        self.journal = Journal(self.disk, self.remote, Runner(number, "host", "boot", 0.0, f"{number:08x}"))
        self.bucket.listed = self.bucket.asked = 0
        few = {"policy": LogStructured(most_layers=2, patience_seconds=0.0), "roll_records": 20}
        return Upkeep(self.journal, self.disk, self.remote, {}, None, {}, **few)  # type: ignore[arg-type]

    def fold(self, epoch: Epoch) -> None:
        """As the merger does."""
        for order in due_folds(self.journal.image, epoch, [("v", ALL_HASHES)]):  # type: ignore[list-item]
            merged = self.layer(order["lower"], order["upper"])  # type: ignore[arg-type]
            epochs = merged.upper - merged.lower
            self.journal.append(Merged(replace(merged, versions=epochs, rows=epochs, leaves=epochs)))

    def layer(self, lower: int, upper: int) -> LayerInfo:
        path = layer_path("v", ALL_HASHES, lower, upper, self.journal.run)
        self.disk.replace(path, b"rows")
        return LayerInfo("v", ALL_HASHES, lower, upper, "diffs", path, 1, 4, "")

    def tended(self, upkeep: Upkeep) -> Iterator[bool]:
        while any(duty() for duty in upkeep.duties().values()):
            yield True


@pytest.fixture(scope="module")
def flow(tmp_path_factory: pytest.TempPathFactory) -> Flow:
    return Flow(tmp_path_factory.mktemp("home"))


def test_a_start_lists_as_many_layers_as_are_kept(flow: Flow) -> None:
    upkeep = flow.start(2)
    assert flow.bucket.listed + flow.bucket.asked < EPOCHS / 5
    assert upkeep.safe()["site"] == EPOCHS


def test_a_run_looks_for_leftovers_among_the_layers_that_are_kept(flow: Flow) -> None:
    upkeep = flow.start(3)
    left = layer_path("v", ALL_HASHES, EPOCHS, EPOCHS + 1, "1.00")
    flow.disk.replace(left, b"")
    flow.remote.upload(left, flow.disk)
    flow.bucket.listed = 0
    assert upkeep.look_for_orphans() == 2
    assert flow.bucket.listed < EPOCHS / 3


@pytest.fixture(scope="module")
def keeping_all(tmp_path_factory: pytest.TempPathFactory) -> Flow:
    return Flow(tmp_path_factory.mktemp("home"), "all")


def test_where_every_epoch_is_kept_a_start_lists_the_few_layers_that_they_are_in(keeping_all: Flow) -> None:
    upkeep = keeping_all.start(2)
    assert keeping_all.bucket.listed + keeping_all.bucket.asked < EPOCHS / 5
    assert upkeep.safe()["site"] == EPOCHS


def test_a_run_that_looks_again_lists_what_came_since_alone(keeping_all: Flow) -> None:
    upkeep = keeping_all.start(3)
    upkeep.look_for_orphans()
    keeping_all.bucket.listed = 0
    upkeep.look_for_orphans()
    assert keeping_all.bucket.listed <= 1


def test_of_the_layers_that_count_all_are_found_that_are_there(flow: Flow) -> None:
    image = flow.journal.image
    assert layers_there(flow.remote, image) == {layer.path for layer in image.layers()} & flow.remote.sizes("layers").keys()
    gone = image.newest_layers()[-1].path
    content = b"".join(flow.bucket.parts(gone + ".packed"))
    flow.remote.delete(gone)
    assert gone not in layers_there(flow.remote, image)
    assert gone not in survey(image, flow.disk, flow.remote, frozenset(), lambda layer: True).remote
    flow.bucket.put(gone + ".packed", iter([content]), large=False)
