"""Readers and running epochs."""

import shutil
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from pyspark.sql import functions as F

import nosync as ns
from nosync.runtime import run as running
from nosync.store.objects import open_remote
from tests.crash.waiting import until


def test_an_epoch_overtakes_a_long_reader(spark, tmp_path):
    flow = ns.Flow("shared", spark)
    rows = ns.memory("x int")
    flow.view("total", flow.source("rows", rows).agg(F.sum("x").alias("x")))
    begun = tmp_path / "begun"

    def slowly(batches):
        begun.touch()
        for batch in batches:
            time.sleep(0.7)
            yield batch

    def read():
        spark.range(0, 16, 1, 16).mapInArrow(slowly, "id bigint").collect()

    with flow.start(tmp_path / "home", shards=2) as run:
        rows.add([(1,)])
        run.processAllAvailable()
        reader = threading.Thread(target=read)
        reader.start()
        while not begun.exists():
            time.sleep(0.01)
        rows.add([(2,)])
        run.processAllAvailable()
        assert reader.is_alive(), "the epoch waited until the reader had finished"
        assert run.view("total").collect() == [(3,)]
        reader.join()


def test_a_view_stays_as_it_was_when_the_flow_goes_on(spark, tmp_path):
    flow = ns.Flow("steady", spark)
    rows = ns.memory("x int")
    flow.view("all", flow.source("rows", rows))
    with flow.start(tmp_path / "home", shards=2) as run:
        rows.add([(1,)])
        run.processAllAvailable()
        before = run.view("all")
        rows.add([(2,)])
        run.processAllAvailable()
        assert [row.x for row in before.collect()] == [1]
        assert sorted(row.x for row in run.view("all").collect()) == [1, 2]
        assert [row.x for row in run.view("all", at=1).collect()] == [1]


class Cut:
    """A remote behind a network that can be cut: then every call hangs until the test lets go, and fails."""

    def __init__(self, remote: Any) -> None:
        self.remote, self.address = remote, remote.address
        self.cut, self.let_go = False, threading.Event()

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> Any:
            if self.cut:
                self.let_go.wait(60)
                raise ns.Unavailable("the network is down")
            return getattr(self.remote, name)(*arguments)

        return call


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cut]:
    network = Cut(open_remote(f"memory://{uuid4().hex}"))
    monkeypatch.setattr(running, "open_remote", lambda url: network)
    yield network
    network.let_go.set()


def test_the_past_is_read_at_home_when_the_remote_hangs_and_no_epoch_waits_for_a_reader(quick, tmp_path, network):
    flow, rows, home = ns.Flow("cut off", quick), ns.memory("x int"), tmp_path / "home"
    flow.view("all", flow.source("rows", rows))
    with flow.start(home, shards=1, remote="memory://any") as run:
        stepping = run._loop.ready()
        stepping.upkeep.roller.every = 4
        moments = []
        for x in range(1, 5):
            rows.add([(x,)])
            run.processAllAvailable()
            moments.append(datetime.now(UTC))
        until(lambda: run._loop.tending.wake() or min(stepping.image.opened, default=9) > 2)
        network.cut = True
        rows.add([(5,)])
        run.processAllAvailable()
        for at in (2, moments[1], moments[1].isoformat(), datetime.fromtimestamp(moments[1].timestamp())):
            assert sorted(row.x for row in run.view("all", at=at).collect()) == [1, 2]
            assert sorted(ns.open(home).view("all", at=at).column("x").to_pylist()) == [1, 2]
        with pytest.raises(ns.NotInHistory, match="no epoch had been opened"):
            run.view("all", at="2001-01-01 00:00")
        for folder in ("segments", "openings"):
            shutil.rmtree(home / "journal" / folder)
        asking = threading.Thread(target=pytest.raises, args=(ns.Unavailable, run.view, "all", "2001-01-01 00:00"))
        asking.start()
        rows.add([(6,)])
        run.processAllAvailable()
        assert run.epoch == 6 and asking.is_alive()
        network.let_go.set()
        asking.join()


def test_columns_of_a_view_may_have_the_same_name(spark, tmp_path):
    flow, rows = ns.Flow("alike", spark), ns.memory("k int, x int")
    flow.source("rows", rows)
    flow.sql("create view both as select * from rows l join rows r on l.k = r.k and l.x < r.x")
    with flow.start(tmp_path / "home", shards=2) as run:
        rows.add([(1, 2), (1, 3)])
        run.processAllAvailable()
        found = run.view("both")
        assert (found.columns, found.collect()) == (["k", "x", "k", "x"], [(1, 2, 1, 3)])
    with pytest.raises(ns.Refused, match='sink "out" would have the column "k" twice'):
        flow.sink("out", flow.sql("select * from both"), ns.console())
