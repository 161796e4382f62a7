"""Readers and running epochs."""

import threading
import time

from pyspark.sql import functions as F

import nosync as ns


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
