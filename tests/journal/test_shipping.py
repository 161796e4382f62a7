"""Bringing records to the remote: with the input they need, and only while no other run has taken over there."""

from pathlib import Path
from uuid import uuid4

import pytest

from nosync.journal.chain import read_chain
from nosync.journal.entries import Opened
from nosync.journal.journal import Journal
from nosync.journal.names import RECORDS, ROLLUPS, run_name
from nosync.journal.rolling import Roller
from nosync.model.errors import Fenced
from nosync.model.run import Runner
from nosync.model.store import fingerprint
from nosync.store.disk import LocalDisk
from nosync.store.objects import Objects, open_remote


@pytest.fixture
def remote() -> Objects:
    return open_remote(f"memory://{uuid4().hex}")


@pytest.fixture
def journal(tmp_path: Path, remote: Objects) -> Journal:
    return Journal(LocalDisk(tmp_path, fsync=lambda descriptor: None), remote, Runner(1, "host", "boot", 0.0, "00000001"))


def test_input_that_cannot_be_had_again_goes_before_its_opening(journal: Journal, remote: Objects) -> None:
    for name in ("input/s/1", "input/s/2"):
        journal.disk.replace(name, b"rows")
    journal.append(Opened(1, 0.0, {}, {"input/s/1": fingerprint(b"rows"), "input/s/2": fingerprint(b"rows that were torn")}))
    journal.ship()
    assert set(remote.sizes("input")) == {"input/s/1"}
    assert journal.shipped == journal.number


def test_what_arrives_when_another_run_has_taken_over_does_not_count(
    journal: Journal, remote: Objects, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = remote.create

    def overtaken(name: str, content: bytes) -> None:
        create(run_name(2), b"{}")
        create(name, content)

    journal.append(Opened(1, 0.0, {}))
    monkeypatch.setattr(remote, "create", overtaken)
    with pytest.raises(Fenced):
        journal.ship()
    assert journal.shipped == 1


def test_a_run_that_was_overtaken_brings_neither_records_nor_a_rollup(journal: Journal, remote: Objects) -> None:
    roller = Roller(journal, journal.disk, None, every=1)
    journal.append(Opened(1, 0.0, {}))
    assert roller.step(0) and roller.step(journal.number)
    journal.chain, journal.shipped = read_chain(journal.disk), 0  # as a run has it that begins with a new remote
    journal.append(Opened(2, 0.0, {}))
    remote.create(run_name(2), b"{}")
    before = set(remote.sizes(RECORDS))
    with pytest.raises(Fenced):
        journal.ship()
    assert not remote.sizes(ROLLUPS)
    assert set(remote.sizes(RECORDS)) == before


@pytest.mark.parametrize("rolled_up_before", [False, True])
def test_a_rollup_that_is_not_the_one_the_history_was_read_from_is_not_brought(
    journal: Journal, remote: Objects, rolled_up_before: bool
) -> None:
    roller = Roller(journal, journal.disk, None, every=1)
    for epoch in (1, 2):
        journal.append(Opened(epoch, 0.0, {}))
        assert roller.step(0) and roller.step(journal.number)
        if epoch == 1 and rolled_up_before:
            journal.chain = read_chain(journal.disk)
    journal.append(Opened(3, 0.0, {}))
    journal.shipped = 0
    with pytest.raises(ValueError, match="nothing joins them"):
        journal.ship()
    assert not remote.sizes(ROLLUPS)
