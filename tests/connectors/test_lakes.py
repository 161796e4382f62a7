"""Tables of lakes in buckets of S3 servers."""

from collections.abc import Callable
from pathlib import Path

import pytest

import nosync as ns
from nosync.store.objects import Objects
from tests.connectors.rows import changes
from tests.servers.s3 import Server
from tests.sinks.lakes import TOTALS, Delta, Iceberg, Place, opened, rows


@pytest.fixture
def server(request: pytest.FixtureRequest) -> tuple[str, str, str]:
    if request.param == "moto":
        return request.getfixturevalue("s3_endpoint"), "key", "secret"
    server: Server = request.getfixturevalue("real_s3")
    return server.endpoint, server.key, server.secret


@pytest.mark.parametrize(("server", "lake"), [("moto", "delta"), ("versitygw", "delta"), ("versitygw", "iceberg")], indirect=["server"])
def test_a_table_in_a_bucket_has_each_epoch_once_and_refuses_a_replaced_run(
    server: tuple[str, str, str], s3: Callable[..., Objects], tmp_path: Path, lake: str
) -> None:
    endpoint, key, secret = server
    address = s3(endpoint, key=key, secret=secret).address
    place: Place = Delta(address, {}) if lake == "delta" else Iceberg(tmp_path, {"warehouse": address, "s3.endpoint": endpoint})
    old = opened(place, run="1.a", partitionBy="k")
    old.deliver(1, changes(1, TOTALS, ("a b", 1, 1), ("b", 1, 1)))
    new = opened(place, run="2.b", partitionBy="k")
    with pytest.raises(ns.Fenced):
        old.deliver(2, changes(2, TOTALS, ("late", 1, 1)))
    for _ in range(2):
        new.deliver(2, changes(2, TOTALS, ("a b", 1, -1), ("a b", 2, 1)))
    assert rows(place) == [("a b", 2), ("b", 1)]
