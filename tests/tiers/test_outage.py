"""A long outage of the remote: epochs go on as fast as before, what waits is counted, and it goes out in bounded pieces."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any
from uuid import uuid4

import pytest

from nosync.duties.upkeep import Upkeep
from nosync.journal.chain import read_chain
from nosync.journal.entries import Computed, Opened
from nosync.journal.journal import MOST_RECORDS, Journal
from nosync.journal.names import RECORDS
from nosync.model.errors import Unavailable
from nosync.model.hash_range import ALL_HASHES
from nosync.model.layers import LayerInfo
from nosync.model.policies.log_structured import LogStructured
from nosync.model.run import Runner
from nosync.model.sink import Terms
from nosync.store.disk import LocalDisk
from nosync.store.objects import open_remote


class Network:
    """A remote behind a network that may be down."""

    def __init__(self, url: str) -> None:
        self.remote, self.down = open_remote(url), False
        self.address = self.remote.address

    def __getattr__(self, call: str) -> Any:
        if self.down:
            raise Unavailable("the network is down")
        return getattr(self.remote, call)


class Flow:
    def __init__(self, home: Path) -> None:
        self.network = Network(f"memory://{uuid4().hex}")
        disk = LocalDisk(home, fsync=lambda descriptor: None)
        self.journal = Journal(disk, self.network, Runner(1, "host", "boot", 0.0, "00000001"))
        policy = LogStructured(patience_seconds=0.0)
        self.upkeep = Upkeep(self.journal, disk, self.network, {"out": Terms("computed")}, Outlet(), {}, policy=policy)  # type: ignore[arg-type]

    def compute(self, count: int) -> None:
        for epoch in range(self.journal.image.epoch + 1, self.journal.image.epoch + count + 1):
            layer = LayerInfo("v", ALL_HASHES, epoch, epoch + 1, "diffs", f"layers/v/0-f/{epoch}.arrow", 1, 9, "")
            self.journal.append(Opened(epoch, 0.0, {}))
            self.journal.append(Computed(epoch, (layer,), {}, {}))

    def ask(self) -> None:
        """What every epoch asks, and every step of releasing."""
        self.upkeep.safe()
        self.upkeep.report()
        self.upkeep.releaser.step("out")


class Outlet:
    def precise(self, sink: str) -> bool:
        return True

    def deliver(self, sink: str, first: int, last: int) -> None:
        raise AssertionError("nothing may be delivered in an outage")


@pytest.fixture
def flow(tmp_path: Path) -> Flow:
    return Flow(tmp_path)


def work(act: Callable[[], None]) -> int:
    """Lines of Python that it takes: loops count once for each turn."""
    lines = 0

    def count(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return count

    sys.settrace(count)
    try:
        act()
    finally:
        sys.settrace(None)
    return lines


def test_an_epoch_asks_for_no_more_work_late_in_an_outage_than_early(flow: Flow) -> None:
    flow.network.down = True
    flow.compute(20)
    flow.upkeep.host.step()
    with pytest.raises(Unavailable):
        flow.upkeep.layers.step()  # type: ignore[union-attr]
    flow.ask()
    early = work(flow.ask)
    flow.compute(2000)
    with pytest.raises(Unavailable):
        flow.upkeep.layers.step()  # type: ignore[union-attr]
    assert work(flow.ask) < 2 * early


def test_records_that_wait_count_as_bytes_on_their_way(flow: Flow) -> None:
    flow.network.down = True
    flow.journal.append(Opened(1, 0.0, {"s": {"files": ["x" * 10_000]}}))
    assert [tier.behind > 10_000 for tier in flow.upkeep.standings()] == [True, True]
    flow.network.down = False
    while flow.upkeep.records.step() or flow.upkeep.host.step():  # type: ignore[union-attr]
        pass
    assert [tier.behind for tier in flow.upkeep.standings()] == [0, 0]


def test_what_has_gathered_goes_out_in_bounded_objects(flow: Flow) -> None:
    flow.network.down = True
    flow.compute(MOST_RECORDS)
    with pytest.raises(Unavailable):
        flow.upkeep.records.step()  # type: ignore[union-attr]
    flow.network.down = False
    steps = 0
    while flow.upkeep.records.step():  # type: ignore[union-attr]
        steps += 1
    assert steps == 2
    numbers = sorted(int(name.rpartition("/")[2]) for name in flow.network.remote.sizes(RECORDS))
    assert numbers[-1] - numbers[-2] == MOST_RECORDS
    assert read_chain(flow.network.remote).image() == flow.journal.image
