"""`nosync rescale`: a home at rest gets other shards; a run that is going is left alone."""

from pathlib import Path

from click.testing import CliRunner, Result

import nosync as ns
from nosync.cli.main import main
from nosync.journal.entries import Computed, Declared, Opened
from nosync.journal.journal import Journal
from nosync.model.run import Runner, this_process
from nosync.store.disk import LocalDisk


def call(*arguments: object) -> Result:
    return CliRunner().invoke(main, list(map(str, arguments)))


def at_rest(home: Path, runner: Runner | None = None) -> None:
    """A home whose last run was killed before the host restarted."""
    runner = runner or Runner(1, this_process(0.0).host, "another boot", 0.0, "00000001")
    journal = Journal(LocalDisk(home), None, runner)
    journal.append(Declared("shop", 2, {}, {}, {}), Opened(1, 0.0, {}))
    journal.append(Computed(1, (), {}, {}))


def test_a_home_at_rest_is_rescaled_by_one_record(tmp_path: Path) -> None:
    at_rest(tmp_path)
    result = call("rescale", tmp_path, 8)
    assert (result.exit_code, result.output) == (0, "8 shards instead of 2 from epoch 2 on\n")
    assert ns.open(tmp_path).status.shards == 8
    assert call("rescale", tmp_path, 8).output == "8 shards, as before\n"


def test_a_running_flow_is_not_rescaled_from_outside(tmp_path: Path) -> None:
    at_rest(tmp_path, this_process(0.0))
    result = call("rescale", tmp_path, 8)
    assert result.exit_code == 1
    assert "is running on this home" in result.output and ns.open(tmp_path).status.shards == 2


def test_no_shards_at_all_are_refused(tmp_path: Path) -> None:
    at_rest(tmp_path)
    assert "shards=0 is not possible" in call("rescale", tmp_path, 0).output
