"""How long a recovery would take is estimated from what was measured, and an aim is held to by keeping objects few."""

from pathlib import Path
from uuid import uuid4

import pytest

from nosync.duties.upkeep import Upkeep
from nosync.journal.chain import read_chain
from nosync.journal.entries import Computed, Declared, Merged, Opened
from nosync.journal.image import Image
from nosync.journal.journal import Journal
from nosync.journal.names import LAYERS, RECORDS, layer_path
from nosync.model.estimate import AT_ONCE, LEAST_RECORDS, Effort, Meter, Pace, allowance, seconds_for
from nosync.model.hash_range import ALL_HASHES
from nosync.model.identifiers import TraceName
from nosync.model.layers import LayerInfo
from nosync.model.policies.log_structured import LogStructured
from nosync.model.run import Runner
from nosync.model.status import Live
from nosync.recovery.plan import Plan, Shape, plan
from nosync.recovery.survey import Survey
from nosync.store.disk import LocalDisk
from nosync.store.objects import open_remote
from nosync.tiers.inventory import layers_there

SLOW = Pace(object_seconds=2.0, bytes_per_second=1e6, epoch_seconds=3.0)


def test_journal_layers_bytes_and_epochs_all_take_their_time() -> None:
    nothing = seconds_for(Effort(0, 0, 0, 0), SLOW)
    more = [Effort(AT_ONCE, 0, 0, 0), Effort(0, AT_ONCE, 0, 0), Effort(0, 0, 2_000_000, 0)]
    assert nothing == 0.0 and len({seconds_for(effort, SLOW) for effort in more}) == 1
    assert seconds_for(Effort(0, 0, 0, 2), SLOW) == 3 * seconds_for(more[0], SLOW)


@pytest.mark.parametrize("within", [15.0, 60.0, 600.0])
def test_what_an_aim_leaves_room_for_can_be_done_within_it(within: float) -> None:
    fixed = Effort(0, 0, 1_000_000, 1)
    allowed = allowance(within, fixed, SLOW)
    assert allowed.kept
    assert seconds_for(Effort(allowed.records, allowed.layers, fixed.bytes, fixed.epochs), SLOW) <= within


def test_an_aim_that_bytes_alone_exceed_is_said_to_be_out_of_reach() -> None:
    assert not allowance(1.0, Effort(0, 0, 10_000_000, 0), SLOW).kept


def test_the_pace_follows_what_is_measured() -> None:
    meter = Meter()
    for _ in range(60):
        meter.transfer(3, 1000, 1.5)
        meter.transfer(2, 10_000_000, 2 * 0.5 + 5.0)
        meter.epoch(7.0)
    assert meter.pace.object_seconds == pytest.approx(0.5, rel=0.01)
    assert meter.pace.bytes_per_second == pytest.approx(2e6, rel=0.01)
    assert meter.pace.epoch_seconds == pytest.approx(7.0, rel=0.01)


NOT_OURS = (None, b"", b"{", b"[]", b'{"other": 1}', b'{"epoch_seconds": "1"}', b'{"epoch_seconds": NaN}', b'{"object_seconds": 0}')


@pytest.mark.parametrize("content", NOT_OURS)
def test_a_pace_that_nobody_wrote_is_a_guess(content: bytes | None) -> None:
    assert Pace.from_bytes(content) == Pace()


class Flow:
    def __init__(self, home: Path, within: float | None) -> None:
        self.disk, self.remote = LocalDisk(home, fsync=lambda descriptor: None), open_remote(f"memory://{uuid4().hex}")
        self.journal = Journal(self.disk, self.remote, Runner(1, "host", "boot", 0.0, "00000001"))
        self.journal.append(Declared("shop", 1, {}, {}, {}, {}, {"v": ["v"]}))
        policy = LogStructured(recover_within=within, patience_seconds=0.0)
        self.upkeep = Upkeep(self.journal, self.disk, self.remote, {}, None, {}, policy=policy)  # type: ignore[arg-type]
        self.upkeep.meter.pace = Pace(object_seconds=1.0)
        self.upkeep.meter.transfer = lambda *measured: None  # type: ignore[method-assign]

    def layer(self, lower: int, upper: int) -> LayerInfo:
        path = layer_path("v", ALL_HASHES, lower, upper, self.journal.run)
        self.disk.replace(path, b"rows")
        return LayerInfo("v", ALL_HASHES, lower, upper, "diffs", path, 1, 4, "")

    def run(self, epochs: int) -> None:
        for epoch in range(1, epochs + 1):
            self.journal.append(Opened(epoch, 0.0, {}))
            self.journal.append(Computed(epoch, (self.layer(epoch, epoch + 1),), {}, {}))
            if epoch % 8 == 0:
                self.journal.append(Merged(self.layer(1, epoch + 1)))
            self.upkeep.measure()
            while any(duty() for duty in self.upkeep.duties().values()):
                pass
        self.upkeep.measure()
        self.journal.flush()


@pytest.mark.parametrize("within", [None, 10.0])
def test_an_aim_is_held_to_by_rolling_up_and_merging_earlier(tmp_path: Path, within: float | None) -> None:
    flow = Flow(tmp_path, within)
    flow.run(150)
    estimate = flow.upkeep.estimate
    assert estimate is not None and estimate.kept
    assert (estimate.seconds <= 10.0) == (within is not None)
    read = len(flow.remote.sizes(RECORDS))
    assert (read <= 2 * LEAST_RECORDS) == (within is not None)
    assert estimate.effort.records in range(read - 2, read + 3) and estimate.effort.layers <= len(flow.remote.sizes(LAYERS))
    flow.upkeep.estimated = 0.0
    flow.upkeep.tidy()
    again = Upkeep(flow.journal, flow.disk, flow.remote, {}, None, {})  # type: ignore[arg-type]
    assert again.meter.pace == flow.upkeep.meter.pace == estimate.pace
    live = Live("1.a", "running", "Running", estimate=estimate)
    assert Live.from_bytes(live.to_bytes()) == live


def fetched(flow: Flow, image: Image) -> Plan | None:
    """What a start on an empty home would do, as far as it knows the past by this image."""
    shape = Shape({TraceName("v"): frozenset([TraceName("v")])})
    return plan(image, Survey(frozenset(), frozenset(layers_there(flow.remote, image))), shape)


def test_the_estimate_counts_all_that_a_start_on_an_empty_home_reads(tmp_path: Path) -> None:
    flow = Flow(tmp_path, None)
    flow.upkeep.roller.every = 40
    flow.run(150)
    estimate, chain = flow.upkeep.estimate, read_chain(flow.remote)
    found = fetched(flow, chain.image())
    assert estimate is not None and chain.base and found is not None and not found.jobs  # it needs no past
    assert len(found.fetch) == estimate.effort.layers
    objects = len(flow.remote.sizes(RECORDS))
    assert estimate.effort.records in range(objects - 2, objects + 3)
