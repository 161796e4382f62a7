"""Commands at rest do nothing that a start would have to come before, and end nobody's run."""

from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

from nosync.cli.main import main
from nosync.duties.leading import Leading
from nosync.duties.troubles import Troubles
from nosync.journal.chain import read_chain
from nosync.journal.entries import Computed, Declared, Opened
from nosync.journal.journal import Journal
from nosync.journal.names import RUNS, layer_path
from nosync.model.hash_range import ALL_HASHES
from nosync.model.layers import LayerInfo
from nosync.model.run import Runner, this_process
from nosync.model.store import fingerprint
from nosync.state.layer import write_layer
from nosync.store.disk import LocalDisk
from nosync.store.objects import open_remote
from nosync.tiers.host import HostTier, synced_number


def call(*arguments: object) -> Result:
    return CliRunner().invoke(main, list(map(str, arguments)))


def written(home: Path, run: str) -> LayerInfo:
    numbers = pa.array(range(3), pa.uint64())
    batch = pa.RecordBatch.from_pydict({"_hash": numbers, "_row": numbers, "c0": numbers, "_count": pa.array([1] * 3, pa.int64())})
    path = layer_path("v", ALL_HASHES, 1, 2, run)
    return write_layer(home, path, [batch], flow="shop", trace="v", range=ALL_HASHES, lower=1, upper=2, kind="diffs", run=run)


class Left:
    """A home whose last run was killed, with its host, before anything was synced; epoch 2 was opened."""

    def __init__(self, home: Path) -> None:
        self.home, self.disk = home, LocalDisk(home)
        journal = Journal(self.disk, None, Runner(1, this_process(0.0).host, "another boot", 0.0, "00000001"))
        self.layer = written(home, journal.run)
        journal.append(Declared("shop", 1, {}, {}, {}, feeders={"v": ["v"]}))
        self.disk.replace("input/s/2", b"rows")
        journal.append(Opened(1, 0.0, {}), Computed(1, (self.layer,), {}, {}))
        journal.append(Opened(2, 0.0, {"s": {}}, {"input/s/2": fingerprint(b"rows")}))

    def tear(self, name: str) -> None:
        self.disk.replace(name, bytes(len(self.disk.read(name) or b"")))


@pytest.fixture
def left(tmp_path: Path) -> Left:
    return Left(tmp_path / "home")


@pytest.mark.parametrize("torn", ["layer", "input"])
def test_what_a_restart_of_the_host_has_torn_is_not_taken_for_safe_by_compacting_it(left: Left, torn: str) -> None:
    left.tear(left.layer.path if torn == "layer" else "input/s/2")
    result = call("compact", left.home)
    assert result.exit_code == 1 and "torn by a restart" in result.output
    assert len(left.disk.sizes(RUNS)) == 1 and synced_number(left.disk, read_chain(left.disk)) == 0


def test_what_is_missing_is_put_together_before_anything_is_compacted(left: Left) -> None:
    left.disk.delete(left.layer.path)
    result = call("compact", left.home)
    assert result.exit_code == 1 and "Start the flow on this home first" in result.output and len(left.disk.sizes(RUNS)) == 1


def test_a_home_in_doubt_that_turns_out_to_be_whole_is_compacted(left: Left) -> None:
    result = call("compact", left.home)
    assert result.exit_code == 0, result.output
    assert synced_number(left.disk, chain := read_chain(left.disk)) == chain.number


def test_a_home_that_was_left_behind_ends_no_run_that_has_gone_on_elsewhere(left: Left, tmp_path: Path) -> None:
    remote = open_remote((tmp_path / "away").as_uri())
    first = Journal(left.disk, remote, Runner(1, this_process(0.0).host, "another boot", 0.0, "00000002"))
    HostTier(first, left.disk).step()
    elsewhere, runner = LocalDisk(tmp_path / "elsewhere"), Runner(7, "there", "boot", 0.0, "00000003")
    second = Journal(elsewhere, remote, runner)
    leading = Leading(second, remote, runner, Troubles())
    leading.step()
    for arguments in (("keep", left.home, "all"), ("rescale", left.home, 2), ("pin", left.home, "one", "--at", 1), ("compact", left.home)):
        result = call(*arguments, "--remote", remote.address)
        assert result.exit_code == 1 and "process 7 on there has taken the flow over" in result.output, result.output
    second.look()
    leading.end()
    assert call("keep", left.home, "all", "--remote", remote.address).exit_code == 0
