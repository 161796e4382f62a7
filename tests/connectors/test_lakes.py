"""Tables of lakes in buckets of real S3 servers, written by flows that are killed and raced."""

from collections.abc import Callable
from typing import Any

import pytest
from deltalake import DeltaTable

import nosync as ns
from nosync.store.objects import Objects
from tests.connectors.rows import changes
from tests.servers.s3 import Server
from tests.sinks.test_delta import TOTALS, opened


@pytest.fixture(params=["moto", "versitygw"])
def bucket(request: pytest.FixtureRequest, s3: Callable[..., Objects]) -> str:
    """A prefix in a bucket, reached by what the environment says."""
    if request.param == "moto":
        return s3(request.getfixturevalue("s3_endpoint")).address
    server: Server = request.getfixturevalue("real_s3")
    return s3(server.endpoint, key=server.key, secret=server.secret).address


def test_a_delta_table_in_a_bucket_has_each_epoch_once_and_refuses_a_replaced_run(bucket: str) -> None:
    old = opened(bucket, run="1.a", partitionBy="k")
    old.deliver(1, changes(1, TOTALS, ("a b", 1, 1), ("b", 1, 1)))
    new = opened(bucket, run="2.b", partitionBy="k")
    with pytest.raises(ns.Fenced):
        old.deliver(2, changes(2, TOTALS, ("late", 1, 1)))
    for _ in range(2):
        new.deliver(2, changes(2, TOTALS, ("a b", 1, -1), ("a b", 2, 1)))

    def found() -> list[dict[str, Any]]:
        rows = DeltaTable(bucket, storage_options=new.lake.options).to_pyarrow_table().to_pylist()
        return sorted(rows, key=lambda row: str(row["k"]))

    assert found() == [{"k": "a b", "n": 2}, {"k": "b", "n": 1}]
