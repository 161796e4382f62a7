"""A flow that goes on from a checkpoint answers as the stream would have, had it never stopped."""

import shutil
from decimal import Decimal

import pytest
from pyspark.sql import functions as F

import nosync as ns
from nosync.importing.begin import carry_out, check_accepted, planned
from nosync.model.errors import Invalid
from nosync.runtime.starting import Starting
from nosync.testing.rows import difference
from tests.importing.streams import SCHEMA, put, read, run

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
BEFORE = [
    [("ann", "tea", 1.5, 1, 3.25, True, "2026-01-01T00:00:05"), ("bob", "pot", 2.5, 2, 1.05, False, "2026-01-01T00:00:40")],
    [("ann", "pot", 0.1, None, None, True, "2026-01-01T00:01:10"), ("cleo", None, None, 7, 9.99, None, "2026-01-01T00:01:20")],
    [("ann", "tea", 0.2, 4, 2.00, True, "2026-01-01T00:01:30"), ("bob", "pot", -2.5, 2, 1.05, True, "2026-01-01T00:01:50")],
]
AFTER = [
    [("ann", "cup", 0.3, 3, 7.77, False, "2026-01-01T00:01:55"), ("dan", "tea", 8.0, 1, 0.01, True, "2026-01-01T00:02:10")],
    [("bob", "pot", 1e16, -5, 1.05, True, "2026-01-01T00:05:00"), ("cleo", "cup", 1.0, None, 1.00, False, "2026-01-01T00:00:01")],
]


@pytest.fixture
def folder(tmp_path):
    for number, rows in enumerate(BEFORE):
        put(tmp_path / "in", number, rows)
    return tmp_path


def add_the_rest(folder):
    for number, rows in enumerate(AFTER, start=len(BEFORE)):
        put(folder / "in", number, rows)


def import_into(flow, folder, accepted=False, emitted=False):
    wanted = planned(flow.program(), folder / "checkpoint")
    check_accepted(wanted, accepted)
    carry_out(wanted, folder / "home", None, emitted, shards=3)
    return wanted.matched


def go_on(flow, folder):
    with flow.start(folder / "home", trigger="availableNow") as started:
        started.awaitTermination()
        return started


def flow_over(folder, **options):
    flow = ns.Flow("till")
    return flow, flow.source("orders", ns.files(folder / "in", format="json", schema=SCHEMA, maxFilesPerTrigger=1), **options)


def batch(spark, folder):
    return spark.read.schema(SCHEMA).json(str(folder / "in"))


def every_aggregate(orders):
    return orders.groupBy("user").agg(
        F.count("*").alias("rows"), F.count("item").alias("items"), F.sum("qty").alias("pieces"), F.avg("qty").alias("usual"),
        F.sum("price").alias("spent"), F.avg("price").alias("mean"), F.sum("cost").alias("cost"), F.avg("cost").alias("dear"),
        F.min("item").alias("least"), F.max("at").alias("last"), F.stddev("price").alias("spread"), F.var_pop("qty").alias("wide"),
        F.covar_samp("price", "qty").alias("together"), F.corr("price", "qty").alias("corr"), F.bool_and("paid").alias("honest"),
        F.bool_or("paid").alias("ever"), F.bit_or("qty").alias("bits"), F.bit_xor("qty").alias("xor"),
        F.sum(F.when(F.col("paid"), F.col("cost"))).alias("taken"), F.max("price").alias("most"),
    )  # fmt: skip


def test_every_aggregate_goes_on_as_the_uninterrupted_stream(spark, folder):
    run(every_aggregate(read(spark, folder / "in")), folder / "checkpoint", "update")
    flow, orders = flow_over(folder)
    flow.view("spend", every_aggregate(orders))
    import_into(flow, folder)
    assert not difference(every_aggregate(batch(spark, folder)).toArrow(), ns.open(folder / "home").view("spend").to_arrow())
    add_the_rest(folder)
    assert not difference(every_aggregate(batch(spark, folder)).toArrow(), go_on(flow, folder).view("spend").toArrow())

    flow, orders = flow_over(folder)
    spend = flow.view("spend", every_aggregate(orders))
    flow.view("grand", spend.agg(F.sum("rows").alias("rows")))
    with flow.start(folder / "home", on_change="rebuild") as started:
        assert started.view("grand").collect() == [(10,)]
    flow, orders = flow_over(folder)
    flow.view("items", orders.groupBy("item").count())
    with pytest.raises(Invalid, match="of what came before the import only the imported state is there"):
        flow.start(folder / "home", on_change="rebuild")


@pytest.fixture(params=["", "false", "true"], ids=["files", "RocksDB", "RocksDB with a changelog"])
def state_store(request, quick):
    """Where Structured Streaming keeps its state: its own format, or RocksDB, in snapshots or with the changes between them."""
    if request.param:
        quick.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
        quick.conf.set("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", request.param)
    yield request.param
    for name in ("providerClass", "rocksdb.changelogCheckpointing.enabled"):
        quick.conf.unset(f"spark.sql.streaming.stateStore.{name}")


def test_state_is_read_from_any_store(quick, folder, state_store):
    """Of a batch that is not the first, so that a changelog has something in it."""

    def counted(orders):
        return orders.groupBy("user").agg(F.count("*").alias("items"), F.sum("cost").alias("cost"))

    stream = counted(quick.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder / "in")))
    run(stream, folder / "checkpoint", "update")
    changelogs = list((folder / "checkpoint" / "state").rglob("*.changelog"))
    assert bool(changelogs) == (state_store == "true")
    flow = ns.Flow("till", quick)
    flow.view("items", counted(flow.source("orders", ns.files(folder / "in", format="json", schema=SCHEMA))))
    import_into(flow, folder)
    assert not difference(counted(batch(quick, folder)).toArrow(), ns.open(folder / "home").view("items").to_arrow())
    add_the_rest(folder)
    assert not difference(counted(batch(quick, folder)).toArrow(), go_on(flow, folder).view("items").toArrow())


def windows(orders):
    return orders.groupBy(F.window("at", "1 minute"), "user").agg(F.count("*").alias("rows"), F.sum("qty").alias("pieces"))


def test_windows_close_as_in_the_uninterrupted_stream(spark, folder):
    """In append mode: what had closed is not in the state, what is late stays out, the rest is emitted once."""
    emitted = []

    def collected(rows, batch):
        emitted.extend(map(tuple, rows.select("window.start", "user", "rows", "pieces").collect()))

    def stream():
        return windows(read(spark, folder / "in").withWatermark("at", "10 seconds"))

    run(stream(), folder / "checkpoint", "append", collected)
    flow, orders = flow_over(folder)
    closed = flow.view("closed", windows(orders.withWatermark("at", "10 seconds")), emit="final")
    flow.sink("out", closed, ns.parquet(folder / "out", mode="append"))
    found = import_into(flow, folder, emitted=True)
    assert any("had passed" in remark for remark in found.remarks)
    before = len(emitted)
    add_the_rest(folder)
    run(stream(), folder / "checkpoint", "append", collected)
    assert before and len(emitted) > before
    go_on(flow, folder)
    out = spark.read.parquet(str(folder / "out")).select("window.start", "user", "rows", "pieces")
    assert sorted(map(tuple, out.collect())) == sorted(emitted[before:])


def test_duplicates_stay_dropped_whatever_is_lost_after_the_opening(spark, folder, monkeypatch):
    """An import that dies before its opening is recorded is done again. After that the remote has what it takes, without any layer."""
    once = read(spark, folder / "in").dropDuplicates(["user", "item"])
    run(once, folder / "checkpoint", "append")
    flow, orders = flow_over(folder)
    flow.view("once", orders.dropDuplicates(["user", "item"]))
    wanted = planned(flow.program(), folder / "checkpoint")
    assert any("price, qty, cost, paid, at of rows from before" in remark for remark in wanted.matched.remarks)
    with monkeypatch.context() as dying:
        dying.setattr("nosync.importing.begin.blobs_of", dies)
        with pytest.raises(KeyboardInterrupt):
            carry_out(wanted, folder / "home", f"file://{folder}/remote", False)
    carry_out(wanted, folder / "home", f"file://{folder}/remote", False)
    shutil.rmtree(folder / "home")
    shutil.rmtree(folder / "remote" / "layers")
    add_the_rest(folder)
    with flow.start(folder / "home", remote=f"file://{folder}/remote", trigger="availableNow") as started:
        started.awaitTermination()
        rows = started.view("once").collect()
    assert sorted((row.user, str(row.item)) for row in rows if row.cost is None) == [
        ("ann", "pot"), ("ann", "tea"), ("bob", "pot"), ("cleo", "None"),
    ]  # fmt: skip
    assert sorted((row.user, row.item, row.cost) for row in rows if row.cost is not None) == [
        ("ann", "cup", Decimal("7.77")), ("cleo", "cup", Decimal("1.00")), ("dan", "tea", Decimal("0.01")),
    ]  # fmt: skip


def dies(*given):
    raise KeyboardInterrupt


def test_an_import_that_dies_after_its_opening_is_gone_on_with(spark, folder, monkeypatch):
    run(read(spark, folder / "in").select("user", "qty").dropDuplicates(["user"]), folder / "checkpoint", "append")
    flow, orders = flow_over(folder)
    flow.view("users", orders.select("user", "qty").dropDuplicates(["user"]))
    monkeypatch.setattr(Starting, "recover", dies)
    with pytest.raises(KeyboardInterrupt):
        import_into(flow, folder)
    monkeypatch.undo()
    add_the_rest(folder)
    rows = go_on(flow, folder).view("users").collect()
    assert {row.user: row.qty for row in rows} == {"ann": None, "bob": None, "cleo": None, "dan": 1}


def test_what_cannot_be_carried_over_is_said_before_anything_is_written(spark, folder):
    orders = read(spark, folder / "in")
    run(orders.groupBy(F.session_window("at", "1 minute"), "user").count(), folder / "checkpoint", "complete")
    flow, orders = flow_over(folder)
    flow.view("sessions", orders.groupBy(F.session_window("at", "1 minute"), "user").count())
    flow.view("paid", orders.where("paid"))
    with pytest.raises(Invalid) as refused:
        import_into(flow, folder)
    assert 'view "paid" begins without the rows from before' in str(refused.value)
    assert "session windows" in str(refused.value)
    assert not (folder / "home").exists()
    import_into(flow, folder, accepted=True)
    add_the_rest(folder)
    assert go_on(flow, folder).view("paid").count() == 2


def test_a_chain_goes_on_also_after_the_layers_made_of_it_are_lost(spark, folder):
    """What the first operator lets through in epoch 1 is in the state of the second already."""
    emitted = []

    def collected(rows, batch):
        emitted.extend(map(tuple, rows.select("window.start", "user", "rows").collect()))

    def chain(orders):
        once = orders.withWatermark("at", "10 seconds").dropDuplicates(["user", "at"])
        return once.groupBy(F.window("at", "1 minute"), "user").agg(F.count("*").alias("rows"))

    run(chain(read(spark, folder / "in")), folder / "checkpoint", "append", collected)
    flow, orders = flow_over(folder)
    flow.view("closed", chain(orders), emit="final")
    assert len(import_into(flow, folder).carried) == 2
    before = len(emitted)
    put(folder / "in", len(BEFORE), BEFORE[-1])
    for number, rows in enumerate(AFTER, start=len(BEFORE) + 1):
        put(folder / "in", number, rows)
    run(chain(read(spark, folder / "in")), folder / "checkpoint", "append", collected)

    def answered(started):
        return sorted(map(tuple, started.view("closed").select("window.start", "user", "rows").collect()))

    wanted = sorted(emitted[before:])
    assert wanted and answered(go_on(flow, folder)) == wanted
    for layer in (folder / "home" / "layers").rglob("*.arrow"):
        layer.unlink()
    started = go_on(flow, folder)
    assert started.recovered.recomputed
    assert answered(started) == wanted
