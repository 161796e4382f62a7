"""Files of a home that are lost or damaged while the flow is stopped: what a remote has is fetched, the rest recomputed, nothing more."""

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import nosync as ns
from nosync.duties.merge_worker import merge
from nosync.model.layers import LayerInfo
from nosync.model.shards import shard_ranges
from nosync.recovery.suspicion import SUSPECT
from nosync.state.layer import open_layer
from nosync.state.leaves import within
from nosync.state.spine import WIDTH
from nosync.store.disk import LocalDisk
from nosync.store.objects import open_remote
from tests.crash.orders import feed, judge, orders_flow
from tests.crash.waiting import until
from tests.metamorphic import checksums, contents

HALVES = shard_ranges(2)

EPOCHS = 3


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    feed(tmp_path / "in", range(EPOCHS))
    return tmp_path / "in"


def go_on(spark: SparkSession, folder: Path, home: Path, remote: Path | None = None) -> ns.Run:
    """Processes what is there and stops in good order."""
    flow, _ = orders_flow(spark, folder)
    with flow.start(home, shards=2, remote=f"file://{remote}" if remote else None) as run:
        run.processAllAvailable()
    return run


def layer_of(home: Path, trace: str, shard: int, epoch: int) -> LayerInfo:
    [layer] = [one for one in ns.open(home).image.traces[trace][HALVES[shard]] if (one.lower, one.upper) == (epoch, epoch + 1)]
    return layer


def flip(path: Path, position: int) -> None:
    """As another file: a worker that has the old one open would not look at it again."""
    content = bytearray(path.read_bytes())
    content[position] ^= 0xFF
    path.with_name(".flipped").write_bytes(content)
    path.with_name(".flipped").replace(path)


def flip_a_count(home: Path, layer: LayerInfo) -> None:
    """Changes a value: nothing but the checksum of its block shows it."""
    values = open_layer(home, layer).blocks[0].column("n").buffers()[1].to_pybytes()
    flip(home / layer.path, (home / layer.path).read_bytes().index(values))


def test_all_is_there_again_after_the_home_was_lost(quick: SparkSession, tmp_path: Path, folder: Path) -> None:
    home, remote = tmp_path / "home", tmp_path / "remote"
    go_on(quick, folder, home, remote)
    before = contents(home)
    shutil.rmtree(home)
    run = go_on(quick, folder, home, remote)
    assert run.recovered.recomputed == 0 and run.recovered.fetched >= run.recovered.layers > 0
    assert contents(home) == before
    feed(folder, [EPOCHS])
    go_on(quick, folder, home, remote)
    judge(quick, home, folder)


def test_a_lost_layer_is_recomputed_alone(quick: SparkSession, tmp_path: Path, folder: Path) -> None:
    home = tmp_path / "home"
    go_on(quick, folder, home)
    before = checksums(home)
    layer = layer_of(home, "customers/aggregate", 1, 2)
    (home / layer.path).unlink()
    done = go_on(quick, folder, home).recovered
    assert (done.jobs, done.recomputed, done.recomputed_epochs, done.missing_from) == (1, 1, 1, 2)
    assert checksums(home) == before
    judge(quick, home, folder, [1, 2, 3])


def test_a_lost_layer_is_fetched_where_there_is_a_remote(quick: SparkSession, tmp_path: Path, folder: Path) -> None:
    home, remote = tmp_path / "home", tmp_path / "remote"
    go_on(quick, folder, home, remote)
    layer = layer_of(home, "levels/aggregate", 0, 1)
    (home / layer.path).unlink()
    done = go_on(quick, folder, home, remote).recovered
    assert (done.jobs, done.recomputed, done.fetched, done.fetched_bytes) == (0, 0, 1, layer.bytes)
    judge(quick, home, folder, [1, 3])


def test_an_epoch_that_the_remote_got_as_one_with_others_is_not_kept_once_its_home_is_lost(quick: SparkSession, tmp_path: Path) -> None:
    home, folder, remote = tmp_path / "home", tmp_path / "in", open_remote(f"file://{tmp_path}/remote")
    feed(folder, range(WIDTH + 2))

    def merged() -> list[LayerInfo]:
        ranges = ns.open(home).image.traces["customers/aggregate"].values()
        return [layer for layers in ranges for layer in layers if layer.lower <= 2 and layer.upper > 4]

    with orders_flow(quick, folder)[0].start(home, shards=2, remote=remote.url) as run:
        run.processAllAvailable()
        until(lambda: {layer.range for layer in merged()} == set(HALVES))
    for layer in merged():
        remote.upload(layer.path, LocalDisk(home))
        for other in ns.open(home).image.traces["customers/aggregate"][layer.range]:
            if within(other, layer) and other.path not in {one.path for one in merged()}:
                remote.delete(other.path)
    shutil.rmtree(home)
    with orders_flow(quick, folder)[0].start(home, shards=2, remote=remote.url) as run:
        assert run.recovered.recomputed == 0 and run.view("customers").count() > 0
        with pytest.raises(ns.NotInHistory, match='epoch 3 of view "customers" is not kept') as error:
            run.view("customers", at=3)
        assert "Ask for epoch" in error.value.hint


def test_a_layer_cut_short_is_as_good_as_lost(quick: SparkSession, tmp_path: Path, folder: Path) -> None:
    home = tmp_path / "home"
    go_on(quick, folder, home)
    layer = layer_of(home, "customers/aggregate", 0, 3)
    (home / layer.path).write_bytes((home / layer.path).read_bytes()[:-100])
    done = go_on(quick, folder, home).recovered
    assert (done.jobs, done.recomputed, done.recomputed_epochs) == (1, 1, 1)
    judge(quick, home, folder)


@pytest.mark.parametrize("kept", [True, False])
def test_a_changed_value_stops_the_flow_before_anything_is_made_of_it(
    quick: SparkSession, tmp_path: Path, folder: Path, kept: bool
) -> None:
    home, remote = tmp_path / "home", tmp_path / "remote" if kept else None
    go_on(quick, folder, home, remote)
    layer = layer_of(home, "customers/aggregate", 0, EPOCHS)
    flip_a_count(home, layer)
    with pytest.raises(ns.Corrupt, match=r"block 0 of layer .* has changed"):
        ns.open(home).view("customers").to_arrow()
    feed(folder, [EPOCHS])
    with pytest.raises(ns.Corrupt, match="met damage: block 0 of layer") as error:
        go_on(quick, folder, home, remote)
    assert layer.path in str(error.value) and "Start the flow" in error.value.hint
    done = go_on(quick, folder, home, remote).recovered
    assert (done.epoch, done.fetched, done.recomputed) == ((EPOCHS, 1, 0) if kept else (EPOCHS, 0, 1))
    judge(quick, home, folder)


def test_damage_that_a_view_meets_is_looked_for_by_the_next_start(quick: SparkSession, tmp_path: Path, folder: Path) -> None:
    home = tmp_path / "home"
    with orders_flow(quick, folder)[0].start(home, shards=2) as run:
        run.processAllAvailable()
        flip_a_count(home, layer_of(home, "customers/aggregate", 0, EPOCHS))
        with pytest.raises(Exception, match=r"block 0 of layer .* has changed"):
            run.view("customers").collect()
        assert (home / SUSPECT).exists()
    assert go_on(quick, folder, home).recovered.recomputed == 1
    assert not (home / SUSPECT).exists()
    judge(quick, home, folder)


def test_a_merge_refuses_what_has_changed(quick: SparkSession, tmp_path: Path, folder: Path) -> None:
    home = tmp_path / "home"
    go_on(quick, folder, home)
    layers = [layer_of(home, "customers/aggregate", 0, epoch) for epoch in range(EPOCHS, 0, -1)]
    flip_a_count(home, layers[1])
    with pytest.raises(ns.Corrupt, match="block 0 of layer"):
        order = {"layers": [layer.to_json() for layer in layers], "range": "0-7", "ranges": ["0-7"] * EPOCHS, "bottom": True}
        merge(str(home), "orders", "9.x", order)


def test_damage_that_a_task_meets_stops_the_flow_by_name(quick: SparkSession, tmp_path: Path, folder: Path) -> None:
    home = tmp_path / "home"
    go_on(quick, folder, home)
    layer = layer_of(home, "customers/aggregate", 0, 2)
    flip(home / layer.path, -3)  # the mark at the end of every Arrow file
    feed(folder, [EPOCHS])
    with pytest.raises(ns.Corrupt, match=f"epoch {EPOCHS + 1} met damage: layer .* is not readable"):
        go_on(quick, folder, home)
    done = go_on(quick, folder, home).recovered
    assert (done.epoch, done.recomputed) == (EPOCHS, 1)
    judge(quick, home, folder)


def test_a_torn_end_of_the_journal_is_as_if_never_written(quick: SparkSession, tmp_path: Path, folder: Path) -> None:
    home = tmp_path / "home"
    go_on(quick, folder, home)
    before = checksums(home)
    records = sorted((home / "journal/records").iterdir())
    last = max(record for record in records if b'"entry":"computed"' in record.read_bytes())
    last.write_bytes(last.read_bytes()[:-20])
    run = go_on(quick, folder, home)
    assert run.epoch == EPOCHS and checksums(home) == before
    judge(quick, home, folder)
