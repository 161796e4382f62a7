"""What must not matter: the way to the kernel, the cut into epochs, shards, restarts, merging, the split of the input."""

import math
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import nosync as ns
from tests.metamorphic import ALWAYS_WIDE, NEVER_WIDE, checksums, contents, run_all

SCHEMA = "k string, g int, i bigint, d double, e decimal(12,3), b boolean"
DOUBLES = [1e300, -1e300, 1.0, 0.1, 1e-310, -0.0, 0.0, math.nan, math.inf, 3.5]


def rows(seed: int, count: int) -> list[tuple[Any, ...]]:
    chance = random.Random(seed)

    def one() -> tuple[Any, ...]:
        key = chance.choice(["a", "b", "", "日本", None, f"rare{chance.randint(0, 30)}"])
        values = chance.randint(-5, 5), chance.randint(-(2**40), 2**40), chance.choice(DOUBLES), Decimal(chance.randint(-9999, 9999)) / 1000
        return (key, *(None if chance.random() < 0.1 else value for value in (*values, chance.random() < 0.5)))

    return [one() for _ in range(count)]


def flow_over(spark: SparkSession, source: Any) -> ns.Flow:
    flow = ns.Flow("bits", spark)
    flow.source("s", source, checked=False)
    many = "count(*) as n, sum(i) as i, avg(d) as d, sum(d) as t, sum(e) as e, min(d) as least, max(k) as most, var_pop(g) as v"
    many += ", bool_and(b) as b"
    flow.sql(f"create view plain as select k, {many} from s group by k")
    flow.sql(f"create view computed as select g + 1 as h, upper(k) as u, {many} from s where g is null or g > -5 group by 1, 2")
    flow.sql("create view doubles as select d as x, count(*) as n, corr(g, i) as c from s group by d")
    flow.sql(f"create view whole as select {many} from s")
    flow.sql("create view level as select n, count(*) as m, sum(e) as e, percentile(t, 0.5) as p from plain group by n")
    return flow


def memory_of(spark: SparkSession, append_only: bool = True) -> tuple[ns.Flow, Any]:
    source = ns.memory(SCHEMA)
    source.append_only = append_only
    return flow_over(spark, source), source


def write(folder: Path, name: str, batch: list[tuple[Any, ...]]) -> None:
    folder.mkdir(exist_ok=True)
    types = [pa.string(), pa.int32(), pa.int64(), pa.float64(), pa.decimal128(12, 3), pa.bool_()]
    arrays = [pa.array([row[i] for row in batch], type) for i, type in enumerate(types)]
    pq.write_table(pa.table(arrays, names=["k", "g", "i", "d", "e", "b"]), folder / name)


@pytest.mark.spark
@pytest.mark.parametrize(("session", "shards"), [("spark", 1), ("quick", 5)])  # with generated code, and without
def test_all_ways_from_parquet_to_the_kernel_give_the_same_bits(
    request: pytest.FixtureRequest, tmp_path: Path, session: str, shards: int
) -> None:
    spark = request.getfixturevalue(session)
    for number in range(3):
        write(tmp_path / "in", f"{number}.parquet", rows(number, 60))
    write(tmp_path / "in", "3.parquet", [])
    through_spark = {"mergeSchema": "false"}  # with any option of Spark's reader, tasks do not read files themselves
    for name, wide, options in (("general", NEVER_WIDE, through_spark), ("fast", ALWAYS_WIDE, through_spark), ("direct", ALWAYS_WIDE, {})):
        source = ns.files(tmp_path / "in", schema=SCHEMA, maxFilesPerTrigger=2, **options)
        run_all(flow_over(spark, source), tmp_path / name, wide_bytes=wide, shards=shards, way="wide")
    for name in ("fast", "direct"):
        assert checksums(tmp_path / "general") == checksums(tmp_path / name) != {}
        assert contents(tmp_path / "general") == contents(tmp_path / name)


@pytest.mark.spark
@pytest.mark.parametrize(("session", "shards"), [("spark", 1), ("quick", 2), ("quick", 5)])
def test_operators_that_need_nothing_of_spark_give_the_same_bits(
    request: pytest.FixtureRequest, tmp_path: Path, session: str, shards: int
) -> None:
    spark = request.getfixturevalue(session)
    for number in range(3):
        write(tmp_path / "in", f"{number}.parquet", rows(number, 60))

    def flow(**options: Any) -> ns.Flow:
        flow = ns.Flow("bits", spark)
        flow.source("s", ns.files(tmp_path / "in", schema=SCHEMA, maxFilesPerTrigger=2, **options))
        flow.sql("create view texts as select k, sum(d) as d, sum(e) as e, min(d) as least, max(i) as most from s group by k")
        flow.sql("create view numbers as select g, b, count(k) as n, avg(i) as i from s group by g, b")
        return flow

    run_all(flow(mergeSchema="false"), tmp_path / "general", wide_bytes=NEVER_WIDE, shards=shards, way="wide")
    run_all(flow(), tmp_path / "alone", shards=shards, way="wide")
    assert checksums(tmp_path / "general") == checksums(tmp_path / "alone") != {}
    assert contents(tmp_path / "general") == contents(tmp_path / "alone")


def test_the_general_and_the_fast_way_give_the_same_bits_under_removals(spark: SparkSession, tmp_path: Path) -> None:
    given = rows(5, 80)
    for name, wide in (("general", NEVER_WIDE), ("fast", ALWAYS_WIDE)):
        flow, source = memory_of(spark, append_only=False)
        feeds = [lambda s=source: s.add(given), lambda s=source: s.remove(given[:60]), lambda s=source: s.remove(given[60:])]
        run_all(flow, tmp_path / name, feeds, wide_bytes=wide, shards=3, way="wide")
    assert checksums(tmp_path / "general") == checksums(tmp_path / "fast") != {}


def fed(spark: SparkSession, home: Path, batches: list[list[tuple[Any, ...]]], **knobs: Any) -> dict[str, list[str]]:
    flow, source = memory_of(spark)
    run_all(flow, home, [lambda batch=batch: source.add(batch) for batch in batches], **knobs)
    return contents(home)


def test_epochs_shards_order_and_merging_do_not_matter(quick: SparkSession, tmp_path: Path) -> None:
    given = rows(11, 90)
    whole = fed(quick, tmp_path / "one", [given], shards=2)
    many = [given[start : start + 10] for start in range(0, 90, 10)]
    assert fed(quick, tmp_path / "many", many, shards=2) == whole
    assert fed(quick, tmp_path / "merged", many, shards=2, merged=True) == whole
    assert fed(quick, tmp_path / "other", [list(reversed(given))], shards=5) == whole
    assert any(layer.upper > layer.lower + 1 for layer in ns.open(tmp_path / "merged").image.layers())
    for epoch in (1, 4, 8):
        assert contents(tmp_path / "many", at=epoch) == contents(tmp_path / "merged", at=epoch)


def test_a_restart_between_epochs_does_not_matter(quick: SparkSession, tmp_path: Path) -> None:
    batches = [rows(seed, 20) for seed in range(3)]
    unbroken = fed(quick, tmp_path / "unbroken", batches)
    for batch in batches:
        fed(quick, tmp_path / "broken", [batch])
    assert contents(tmp_path / "broken") == unbroken
    assert checksums(tmp_path / "broken") == checksums(tmp_path / "unbroken")


def test_an_opened_epoch_is_repeated_as_recorded(quick: SparkSession, tmp_path: Path) -> None:
    batches = [rows(seed, 20) for seed in range(2)]
    unbroken = fed(quick, tmp_path / "unbroken", batches)
    fed(quick, tmp_path / "broken", batches)
    records = sorted((tmp_path / "broken/journal/records").iterdir())
    last = max(i for i, record in enumerate(records) if b'"entry":"computed"' in record.read_bytes())
    for record in records[last:]:  # as if the process had died before recording epoch 2
        record.unlink()
    flow, _ = memory_of(quick)
    [progress] = run_all(flow, tmp_path / "broken")
    assert progress["epoch"] == 2 and contents(tmp_path / "broken") == unbroken


def test_doubles_cancel_exactly(quick: SparkSession, tmp_path: Path) -> None:
    flow = ns.Flow("exact", quick)
    source = ns.memory("d double")
    flow.view("v", flow.source("s", source).agg(F.sum("d").alias("t")))
    run_all(flow, tmp_path, [lambda x=x: source.add([(x,)]) for x in (1e300, 1.0, -1e300)])
    assert ns.open(tmp_path).view("v").to_pylist() == [{"t": 1.0}]


def test_a_layer_once_written_is_never_changed(quick: SparkSession, tmp_path: Path) -> None:
    batches = [rows(seed, 30) for seed in range(4)]
    before: dict[str, bytes] = {}
    flow, source = memory_of(quick)

    def look(batch: list[tuple[Any, ...]]) -> None:
        for path, content in before.items():
            assert Path(path).read_bytes() == content
        before.update({str(path): path.read_bytes() for path in tmp_path.rglob("*.arrow")})
        source.add(batch)

    run_all(flow, tmp_path, [lambda batch=batch: look(batch) for batch in batches], merged=True)
    assert len(before) > 10
