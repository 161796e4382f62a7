"""Another policy persists something else, releases at another time, recovers otherwise and promises something else."""

from pathlib import Path
from uuid import uuid4

import pytest

from nosync.duties.upkeep import Upkeep
from nosync.history.home import open as open_home
from nosync.journal.chain import read_chain
from nosync.journal.entries import Computed, Declared, Entry, Opened
from nosync.journal.image import Image, fold
from nosync.journal.journal import Journal
from nosync.journal.names import layer_path
from nosync.model.errors import Invalid
from nosync.model.hash_range import ALL_HASHES
from nosync.model.layers import LayerInfo
from nosync.model.policies.log_structured import LOG_STRUCTURED, LogStructured
from nosync.model.policies.table import POLICIES, policy_named
from nosync.model.policy import Policy
from nosync.model.run import Runner
from nosync.model.sink import Promise, Terms
from nosync.recovery.plan import Shape, plan
from nosync.recovery.recompute import Recompute
from nosync.recovery.survey import Survey, doubtful
from nosync.recovery.verdict import shape_of
from nosync.store.disk import LocalDisk
from nosync.store.objects import open_remote
from nosync.tiers.host import synced_number
from tests.other_policies import GAP, UPSTREAM_BACKUP

EPOCHS = 5
EVERY_POLICY = [LogStructured(patience_seconds=0.0), UPSTREAM_BACKUP, GAP]


class Flow:
    """Some epochs under a policy, with a remote, a sink and a source that can be trimmed."""

    def __init__(self, home: Path, policy: Policy) -> None:
        self.synced: set[str] = set()
        self.disk, self.remote = LocalDisk(home), open_remote(f"memory://{uuid4().hex}")
        sync = self.disk.sync_files
        self.disk.sync_files = lambda names: self.synced.update(names) or sync(names)  # type: ignore[method-assign, func-returns-value]
        self.journal = Journal(self.disk, self.remote, Runner(1, "host", "boot", 0.0, "00000001"))
        self.delivered, self.trimmed = list[int](), list[int]()
        trims = {"s": lambda slice: self.trimmed.append(slice["number"])}
        self.upkeep = Upkeep(self.journal, self.disk, self.remote, {"out": Terms("safe")}, self, trims, policy=policy, trim_batch=1)
        self.journal.append(Declared("shop", 1, {}, {}, {}, {}, {"v": ["v"]}, policy=policy.name))
        for epoch in range(1, EPOCHS + 1):
            layer = LayerInfo("v", ALL_HASHES, epoch, epoch + 1, "diffs", layer_path("v", ALL_HASHES, epoch, epoch + 1, "1.1"), 1, 4, "")
            self.disk.replace(layer.path, b"rows")
            self.journal.append(Opened(epoch, 0.0, {"s": {"number": epoch}}))
            self.journal.append(Computed(epoch, (layer,), {}, {}))

    def precise(self, sink: str) -> bool:
        return True

    def deliver(self, sink: str, first: int, last: int) -> None:
        self.delivered.append(last)

    def tend(self, *names: str) -> None:
        duties = self.upkeep.duties()
        while any(duties[name]() for name in names or duties):
            pass


@pytest.mark.parametrize("policy", EVERY_POLICY, ids=lambda policy: policy.name)
def test_upkeep_has_the_duties_that_the_policy_asks_for(tmp_path: Path, policy: Policy) -> None:
    flow = Flow(tmp_path, policy)
    tiers = {"log-structured": {"host", "records", "layers"}, "upstream backup": {"host", "records"}, "gap": set()}
    assert flow.upkeep.duties().keys() == {*tiers[policy.name], "sink out", "tidy"}
    flow.tend()
    layers = {layer.path for layer in flow.journal.image.layers()}
    everything = policy.name == "log-structured"
    assert layers & flow.synced == (layers if everything else set())
    assert flow.remote.sizes("layers").keys() == (layers if everything else set())
    assert (flow.journal.shipped == flow.journal.number) is (policy is not GAP)


def test_after_a_restart_of_the_host_layers_that_nobody_synced_are_doubted(tmp_path: Path) -> None:
    for policy, doubted in zip(EVERY_POLICY, (0, EPOCHS, EPOCHS), strict=True):
        flow = Flow(tmp_path / policy.name, policy)
        flow.tend()
        chain = read_chain(flow.disk)
        assert len(doubtful(chain, synced_number(flow.disk, chain), "after a restart")) == doubted


def test_an_epoch_is_safe_where_it_can_be_brought_back_from(tmp_path: Path) -> None:
    for policy in EVERY_POLICY:
        flow = Flow(tmp_path / policy.name, policy)
        flow.tend()
        everywhere = {"process": EPOCHS, "host": EPOCHS, "site": EPOCHS}
        assert flow.upkeep.safe() == ({"process": EPOCHS} if policy is GAP else everywhere)


def test_a_sink_gets_an_epoch_when_the_policy_says_so(tmp_path: Path) -> None:
    for policy, without_tiers in zip(EVERY_POLICY, ([], [], [1, 2, 3, 4, 5]), strict=True):
        flow = Flow(tmp_path / policy.name, policy)
        flow.tend("sink out")
        assert flow.delivered == without_tiers
        flow.tend()
        assert flow.delivered == [1, 2, 3, 4, 5]


def test_input_stays_where_state_is_computed_from_it(tmp_path: Path) -> None:
    for policy, trimmed in zip(EVERY_POLICY, ([1, 2, 3, 4, 5], [], [1, 2, 3, 4, 5]), strict=True):
        flow = Flow(tmp_path / policy.name, policy)
        flow.tend()
        flow.journal.flush()
        flow.tend()
        assert flow.trimmed == trimmed


def test_a_reader_knows_what_is_safe_by_the_policy_that_is_declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for policy in EVERY_POLICY:
        monkeypatch.setitem(POLICIES, policy.name, policy)
        flow = Flow(tmp_path / policy.name, policy)
        flow.tend()
        flow.journal.flush()
        flow.tend()
        assert open_home(tmp_path / policy.name).safe == flow.upkeep.safe()


def history(epochs: int) -> Image:
    entries: list[Entry] = []
    for epoch in range(1, epochs + 1):
        layers = tuple(LayerInfo(trace, ALL_HASHES, epoch, epoch + 1, "diffs", f"{trace}/{epoch}", 1, 4, "") for trace in ("v", "random"))
        entries += [Opened(epoch, 0.0, {"s": {}}), Computed(epoch, layers, {}, {})]
    return fold(entries)


@pytest.mark.parametrize("policy", EVERY_POLICY, ids=lambda policy: policy.name)
def test_what_was_lost_is_recomputed_refused_or_forgotten(policy: Policy) -> None:
    image = history(3)
    shape = Shape({"v": frozenset(["v"]), "random": frozenset(["random"])}, unrepeatable=frozenset(["random"]), policy=policy)
    there = frozenset(layer.path for layer in image.layers())
    found = plan(image, Survey(there - {"v/2"}, frozenset()), shape)
    assert found is not None and found.epoch == 3 and found.lost == ("v/2",)
    assert found.jobs == (() if policy is GAP else (Recompute(2, 2, {"v": frozenset([ALL_HASHES])}),))
    assert (plan(image, Survey(there - {"random/2"}, frozenset()), shape) is not None) is (policy is GAP)


def test_output_promises_what_the_policy_can_keep() -> None:
    precise = Promise("precise", "each epoch is a file", "atomic")
    assert LOG_STRUCTURED.promise(precise, "computed", []) == UPSTREAM_BACKUP.promise(precise, "computed", []) == precise
    assert GAP.promise(precise, "safe", []) == Promise("gap", "what a failure takes is gone", "atomic")
    assert LOG_STRUCTURED.promise(precise, "computed", ["random"]).guarantee == "divergent"


def test_a_check_goes_by_the_policy_that_is_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(POLICIES, GAP.name, GAP)
    assert shape_of(Declared("shop", 1, {}, {}, {}, policy="gap")).policy is GAP
    assert shape_of(Declared("shop", 1, {}, {}, {})).policy == LOG_STRUCTURED


def test_a_home_under_a_policy_of_another_version_is_refused() -> None:
    with pytest.raises(Invalid, match='policy "of tomorrow" that is not known here'):
        policy_named("of tomorrow")
