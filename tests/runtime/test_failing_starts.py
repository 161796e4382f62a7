"""A start that fails after it has fenced others leaves word of it."""

from pathlib import Path

import pytest

import nosync as ns
from nosync.history.status import read_live
from nosync.journal.entries import Opened
from nosync.journal.journal import Journal
from nosync.model.identifiers import Epoch
from nosync.model.run import this_process
from nosync.runtime.reporting import failing_start
from nosync.store.disk import LocalDisk


def begun(home: Path) -> tuple[Journal, LocalDisk]:
    disk = LocalDisk(home)
    return Journal(disk, None, this_process(0.0)), disk


@pytest.mark.parametrize("error", [ns.Failed('sink "out" cannot be opened: no connection'), SystemExit("no connection")], ids=repr)
def test_a_start_that_fails_says_so_in_the_status(tmp_path: Path, error: BaseException) -> None:
    journal, disk = begun(tmp_path)
    with pytest.raises(type(error)), failing_start(journal, disk):
        raise error
    live = read_live(disk, journal.image)
    assert live.phase == "failed" and "no connection" in live.message


def test_a_start_that_failed_records_nothing_more(tmp_path: Path) -> None:
    journal, disk = begun(tmp_path)
    with pytest.raises(ns.Failed), failing_start(journal, disk):
        raise ns.Failed("no connection")
    with pytest.raises(ns.Fenced):
        journal.append(Opened(Epoch(1), 0.0, {}))


def test_a_start_that_fails_leaves_the_status_of_a_newer_run_alone(tmp_path: Path) -> None:
    first, disk = begun(tmp_path)
    second, _ = begun(tmp_path)
    with pytest.raises(ns.Failed), failing_start(first, disk):
        raise ns.Failed("no connection")
    assert read_live(disk, second.image).phase == "starting"
