"""A driver that is killed while others stand by, on a real server: one of them goes on, and what went out is the truth."""

import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import nosync as ns
from nosync.journal.chain import read_chain
from nosync.journal.names import RUNS, lease_name
from nosync.model.lease import Lease
from nosync.store.homes import WARM_UP
from nosync.store.objects import Objects
from tests.crash.answers import calls_of, check_sink, written_epochs
from tests.crash.host_driver import SINKS, shared_flow
from tests.crash.orders import feed, judge
from tests.crash.processes import environment, kill_all, started
from tests.crash.seen import Seen
from tests.crash.waiting import until
from tests.servers.s3 import Server


class StandingBy:
    """A run in this process, once it leads."""

    def __init__(self, flow: ns.Flow, home: Path, remote: str) -> None:
        self.home = home
        self.run: ns.Run | None = None
        self.error: BaseException | None = None

        def stand_by() -> None:
            try:
                self.run = flow.start(home, remote=remote, standby=True, quiet=True)
            except BaseException as error:
                self.error = error

        threading.Thread(target=stand_by, daemon=True).start()

    @property
    def leads(self) -> bool:
        assert self.error is None, self.error
        return self.run is not None


@pytest.mark.slow
def test_of_two_that_stand_by_one_goes_on_when_the_driver_is_killed_and_the_other_when_that_one_stops(
    quick: SparkSession, tmp_path: Path, s3: Callable[..., Objects], real_s3: Server
) -> None:
    shared = tmp_path / "a place"
    remote = s3(real_s3.endpoint, key=real_s3.key, secret=real_s3.secret)
    feed(shared / "in", range(2))
    flows = [shared_flow(quick, shared) for _ in range(2)]
    command = [sys.executable, "-m", "tests.crash.host_driver", "local[1,8]", str(shared / "driver"), str(shared), remote.address]
    driver = started(command, shared, shared / "log", environment())
    try:
        until(lambda: remote.sizes(RUNS) or driver.poll() is not None, instead=(shared / "log").read_text)
        both = [StandingBy(flow, shared / str(number), remote.address) for number, flow in enumerate(flows)]
        until(lambda: _beats(remote) > 3 and read_chain(remote).image().epoch >= 2, instead=(shared / "log").read_text)
        until(lambda: len(ns.open(shared / "driver" / "home").status.standbys) == 2)
        feed(shared / "in", range(2, 4))
        os.killpg(driver.pid, signal.SIGKILL)
        until(lambda: any(one.leads for one in both))
        leading, waiting = sorted(both, key=lambda one: one.leads, reverse=True)
        assert leading.run is not None and not waiting.leads
        feed(shared / "in", range(4, 5))
        leading.run.processAllAvailable()
        leading.run.stop()
        feed(shared / "in", range(5, 6))
        until(lambda: waiting.leads)
        assert waiting.run is not None
        with waiting.run as last:
            last.processAllAvailable()
        files = Seen(None, remote, shared / "cache").taken()
        assert sorted(name for names in files.values() for name in names) == [f"{number:05d}.json" for number in range(6)]
        for folder, view in SINKS.items():
            written = written_epochs(shared / folder)
            check_sink(written, view, files)
            assert max(written) <= max(files)
        calls_of(shared / "calls")
        assert not list(shared.glob(f"*/{WARM_UP}*"))
        judge(quick, waiting.home, shared / "in", taken_by=files)
    finally:
        kill_all(driver)


def _beats(remote: Objects) -> int:
    lease = Lease.from_bytes(remote.read(lease_name(1)))
    return lease.beat if lease else 0
