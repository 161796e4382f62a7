"""Flows on S3 servers of others: one whose conditional put is atomic, and one whose is not."""

import json
import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import nosync as ns
from nosync.store.objects import Objects
from tests.crash.orders import feed, judge, orders_flow
from tests.crash.waiting import until
from tests.servers.s3 import Server, s3s_fs

Remote = Callable[..., Objects]


def test_another_home_takes_over_on_a_real_server_and_the_first_run_is_fenced(
    quick: SparkSession, tmp_path: Path, s3: Remote, real_s3: Server, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    remote = s3(real_s3.endpoint, key=real_s3.key, secret=real_s3.secret).address
    first, second, folder = tmp_path / "first", tmp_path / "second", tmp_path / "in"
    feed(folder, range(2))
    run = orders_flow(quick, folder)[0].start(first, shards=2, remote=remote)
    run.processAllAvailable()
    until(lambda: run.safe["site"] == 2, instead=lambda: run.status)
    with orders_flow(quick, folder)[0].start(second, remote=remote) as other:
        assert other.recovered.epoch == 2 and other.recovered.recomputed == 0 and other.recovered.fetched > 0
        feed(folder, [2])
        with pytest.raises(ns.Fenced, match="took this flow over"):
            run.awaitTermination(60.0)
        other.processAllAvailable()
        until(lambda: other.safe["site"] == 3, instead=lambda: other.status)
    judge(quick, second, folder, [1, 2, 3])
    said = caplog.text + str(run.status) + json.dumps(run.status.to_json()) + str(run.exception()) + json.dumps(other.status.to_json())
    written = [file.read_bytes() for home in (first, second) for file in home.rglob("*") if file.is_file()]
    assert not any(word.encode() in content for word in (real_s3.key, real_s3.secret) for content in [said.encode(), *written])


@pytest.mark.servers
def test_a_server_that_looks_and_then_writes_is_refused_before_anything_is_there(
    quick: SparkSession, tmp_path: Path, s3: Remote
) -> None:
    feed(tmp_path / "in", [0])
    with s3s_fs(tmp_path / "server") as server:
        remote = s3(server.endpoint, key=server.key, secret=server.secret)
        with pytest.raises(ns.Invalid, match=r"cannot keep runs on two hosts apart: . of 8 rivals created the same name") as refused:
            orders_flow(quick, tmp_path / "in")[0].start(tmp_path / "home", remote=remote.address)
        assert "conditional put" in refused.value.hint and server.secret not in str(refused.value)
        assert remote.sizes("") == {}
    assert not [file for file in (tmp_path / "home").rglob("*") if file.is_file()]
