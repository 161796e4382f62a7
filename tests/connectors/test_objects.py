"""Files in a bucket of a real S3 server as a source: each object in one epoch, read again as it was taken or not at all."""

import shutil
from collections.abc import Callable
from pathlib import Path

import obstore
import pytest
from obstore.store import ObjectStore
from pyspark.sql import SparkSession

import nosync as ns
from nosync.store.addresses import client_of
from nosync.store.objects import Objects
from tests.servers.s3 import Server
from tests.sources.test_sources import names, slices_of


@pytest.mark.parametrize("growing", [False, True])
def test_objects_are_taken_once_and_read_again_as_they_were(
    quick: SparkSession, tmp_path: Path, s3: Callable[..., Objects], real_s3: Server, growing: bool
) -> None:
    import os

    address, home = s3(real_s3.endpoint, key=real_s3.key, secret=real_s3.secret).address, tmp_path / "home"
    bucket: ObjectStore = client_of(address, os.environ)

    def put(name: str, value: int) -> None:
        obstore.put(bucket, name, f'{{"x": {value}, "name": "n{value}"}}\n'.encode())

    def flow() -> ns.Flow:
        flow = ns.Flow("objects", quick)
        flow.source("s", ns.files(address, format="json", schema="x int, name string", maxFilesPerTrigger=2, growing=growing))
        flow.sql("create view v as select name, x from s")
        return flow

    for number, name in enumerate(("day=1/a", "day=1/b", "day=2/a", "_SUCCESS", "day=1/.part")):
        put(name, number)
    with flow().start(home, shards=1) as run:
        run.processAllAvailable()
        put("day=3/a", 7)
        put("day=0/a", 8)
        run._loop.wait_for(lambda: run.epoch >= 3)
        run.processAllAvailable()
    assert names(home) == ["n0", "n1", "n2", "n7"] + ([] if growing else ["n8"])
    assert [len(slice["files"]) for slice in slices_of(home)][:2] == [2, 1]
    shutil.rmtree(home / "input")
    for layer in home.glob("layers/**/*.arrow"):
        layer.unlink()
    with flow().start(home) as run:
        run.processAllAvailable()
    assert len(names(home)) == 4 + (not growing)
    put("day=1/a", 99)
    shutil.rmtree(home / "input")
    for layer in home.glob("layers/**/*.arrow"):
        layer.unlink()
    with pytest.raises(ns.NosyncError, match="is not the one that was taken"), flow().start(home) as run:
        run.processAllAvailable()
