"""A run that was cut off from the remote while another took over leaves the other's history alone when the network heals."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from nosync.duties.trimming import Trimmer
from nosync.journal.chain import read_chain
from nosync.journal.entries import Computed, Declared, Opened
from nosync.journal.journal import Journal
from nosync.journal.names import RUNS, record_name
from nosync.journal.rolling import Roller
from nosync.model.errors import Fenced, NosyncError, Unavailable
from nosync.model.hash_range import ALL_HASHES
from nosync.model.layers import LayerInfo
from nosync.model.run import Runner
from nosync.model.safety import Standing
from nosync.store.disk import LocalDisk
from nosync.store.objects import open_remote
from nosync.tiers.record_shipper import RecordShipper
from nosync.tiers.sweeper import Sweeper


class Network:
    """A remote behind a network that may be cut for some calls."""

    def __init__(self, folder: Path) -> None:
        self.remote = open_remote(f"memory://{folder}")
        self.address = self.remote.address
        self.cut: Callable[[str, str], bool] = lambda call, name: False

    def __getattr__(self, call: str) -> Any:
        def passed_on(name: str, *rest: Any) -> Any:
            if self.cut(call, name):
                raise Unavailable("the network is down")
            return getattr(self.remote, call)(name, *rest)

        return passed_on


@pytest.fixture
def network(tmp_path: Path) -> Network:
    return Network(tmp_path / "remote")


def start(folder: Path, network: Network, number: int) -> Journal:
    disk = LocalDisk(folder / str(number), fsync=lambda descriptor: None)
    return Journal(disk, network, Runner(number, f"host{number}", "boot", 0.0, f"{number:08x}"))


def compute(journal: Journal, first: int, last: int) -> None:
    for epoch in range(first, last + 1):
        path = f"layers/v/0-f/{epoch}-{epoch + 1}-{journal.run}-0.arrow"
        journal.append(Opened(epoch, 0.0, {"s": {"number": epoch}}))
        journal.append(Computed(epoch, (LayerInfo("v", ALL_HASHES, epoch, epoch + 1, "diffs", path, 1, 1, ""),), {}, {}))


def roll(journal: Journal) -> bool:
    """One step of rolling up everything that counts as being on every tier."""
    roller = Roller(journal, journal.disk, journal.remote, every=1)
    return roller.step(0) and roller.step(journal.shipped)


def taken_over(folder: Path, network: Network) -> tuple[Journal, Journal]:
    """A run that has computed 30 epochs alone since it was cut off, and one that has taken over, come to epoch 15 and rolled up."""
    one = start(folder, network, 1)
    one.append(Declared("shop", 1, {}, {}, {}))
    compute(one, 1, 5)
    one.ship()
    compute(one, 6, 30)
    other = start(folder, network, 2)
    for epoch in range(6, 16):
        compute(other, epoch, epoch)
        other.ship()
    assert roll(other) and not network.remote.exists(record_name(one.shipped + 1))  # so that this number is free again
    return one, other


def tidy(journal: Journal) -> None:
    """What the duties behind the stream do with a fork, each stopped by whatever it raises."""
    records = RecordShipper(journal)
    for duty in (records.step, lambda: roll(journal)):
        with suppress(NosyncError):
            duty()


@pytest.mark.parametrize("cut", ["nothing", "looking once", "looking always"])
def test_a_fork_never_becomes_the_newest_history(tmp_path: Path, network: Network, cut: str) -> None:
    one, other = taken_over(tmp_path, network)
    before = read_chain(network.remote)
    looks = iter([True] if cut == "looking once" else [True] * 99 if cut == "looking always" else [])
    network.cut = lambda call, name: call == "exists" and name.startswith(RUNS) and next(looks, False)
    for _ in range(3):
        tidy(one)
    network.cut = lambda call, name: False
    after = read_chain(network.remote)
    assert (after.base, after.number, after.image().epoch) == (before.base, before.number, 15)
    assert after.image().newest_layers() == other.image.newest_layers()


def test_records_count_as_shipped_only_after_a_look(tmp_path: Path, network: Network) -> None:
    """The answers to all looks behind the write are lost, and no other run is there: it counts once a look gets through."""
    one = start(tmp_path, network, 1)
    counted = one.shipped
    compute(one, 1, 3)
    looks = iter([False, True])
    network.cut = lambda call, name: call == "exists" and name.startswith(RUNS) and next(looks, False)
    with pytest.raises(Unavailable):
        one.ship()
    assert one.shipped == counted
    compute(one, 4, 4)
    one.ship()
    one.ship()
    assert one.shipped == one.number == read_chain(network.remote).number


def test_a_fenced_run_neither_rolls_up_nor_sweeps_nor_trims(tmp_path: Path, network: Network) -> None:
    """All its records had arrived before the other took over; it has not heard of it."""
    one = start(tmp_path, network, 1)
    compute(one, 1, 5)
    one.ship()
    roller, sweeper = Roller(one, one.disk, network, every=1), Sweeper(one, one.disk, lambda newest: newest)
    assert roller.step(0)
    one.disk.create(f"layers/v/0-f/2-3-{one.run}-ffffffff.arrow", b"")
    assert sweeper.look(one.image)
    trims: list[Any] = []
    trimmer = Trimmer(one, {"s": trims.append}, lambda newest: newest, lambda: [Standing("site", one.number, 5, 0, 0, 0)], batch=1)
    assert trimmer.step()
    one.ship()
    start(tmp_path, network, 2)
    files = network.remote.sizes("")
    for duty in (lambda: roller.step(one.number), lambda: sweeper.step(one.number), trimmer.step):
        with pytest.raises(Fenced, match="process 2 on host2"):
            duty()
    assert (network.remote.sizes(""), trims) == (files, [])
    assert one.disk.exists(f"layers/v/0-f/2-3-{one.run}-ffffffff.arrow")
