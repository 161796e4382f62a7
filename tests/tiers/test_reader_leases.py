"""Leases of readers: none is lost, none of others is cleared away."""

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from nosync.journal.names import READERS
from nosync.store.disk import LocalDisk
from nosync.tiers.reader_leases import Lease, Leases

HOLDS, THREADS = 500, 8


@pytest.fixture
def hasty() -> Iterator[None]:
    """Threads hand over to each other all the time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hasty")
def test_of_many_readers_at_once_none_is_forgotten(tmp_path: Path) -> None:
    leases = Leases(LocalDisk(tmp_path), lambda: 0.0)
    threads = [threading.Thread(target=lambda: [leases.hold(9, 1.0) for _ in range(HOLDS)]) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(leases.own) == HOLDS * THREADS


def test_what_has_ended_holds_nothing_and_is_cleared_away_but_for_files_of_others(tmp_path: Path) -> None:
    disk, times = LocalDisk(tmp_path), [0.0]
    leases = Leases(disk, lambda: times[0])
    lease = Lease(disk, 10.0, lambda: times[0])
    lease.renew(5)
    leases.hold(4, 5.0)
    disk.replace(f"{READERS}/notes", b"of somebody else")
    assert leases.oldest() == 4
    times[0] = 6.0
    assert leases.oldest() == 5 and leases.own == []
    times[0] = 11.0
    assert leases.oldest() is None and set(disk.sizes(READERS)) == {f"{READERS}/notes"}
