"""What windows, limits and functions of groups must not depend on, and how little of their state an epoch looks at."""

import random
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.sql import SparkSession

import nosync as ns
from tests.metamorphic import checksums, contents, run_all

SCHEMA = "k string, x int, y double"


def rows(seed: int, count: int) -> list[tuple[Any, ...]]:
    """Ties everywhere, and doubles whose sums depend on their order."""
    chance = random.Random(seed)
    return [(chance.choice("ab"), chance.choice([None, 1, 2]), chance.choice([1e300, -1e300, 1.0, 0.1, None])) for _ in range(count)]


def in_order(frame: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame({"k": frame["k"].iloc[:1], "text": [str(frame["y"].tolist())]})


def flow_over(spark: SparkSession) -> tuple[ns.Flow, Any]:
    flow, source = ns.Flow("touched", spark), ns.memory(SCHEMA, removals=True)
    s = flow.source("s", source, checked=False)
    flow.sql(
        "create view running as select *, sum(y) over w as total, row_number() over w as r, first(y) over w as f,"
        " sum(y) over (partition by x) as whole from s window w as (partition by k order by x)"
    )
    flow.sql("create view best as select * from (select *, row_number() over (partition by k order by x desc) as r from s) where r <= 3")
    flow.sql("create view few as select k, y from s order by x limit 4 offset 1")
    flow.view("texts", s.groupBy("k").applyInPandas(in_order, "k string, text string"))
    return flow, source


def fed(spark: SparkSession, home: Path, batches: list[list[tuple[Any, ...]]], gone: list[tuple[Any, ...]], **knobs: Any) -> None:
    flow, source = flow_over(spark)
    feeds = [lambda batch=batch: source.add(batch) for batch in batches]
    run_all(flow, home, [*feeds, lambda: source.remove(gone)], **knobs)


def test_epochs_shards_order_and_merging_do_not_matter(quick: SparkSession, tmp_path: Path) -> None:
    given = rows(1, 24)
    fed(quick, tmp_path / "one", [given], given[:6], shards=1)
    fed(quick, tmp_path / "again", [given], given[:6], shards=1)
    fed(quick, tmp_path / "many", [given[12:], given[:6], given[6:12]], given[:6], shards=3, merged=True)
    fed(quick, tmp_path / "other", [list(reversed(given))], given[:6], shards=2)
    whole = contents(tmp_path / "one")
    assert whole == contents(tmp_path / "many") == contents(tmp_path / "other")
    assert checksums(tmp_path / "one") == checksums(tmp_path / "again") != {}


def test_lost_layers_are_recomputed_as_they_were(quick: SparkSession, tmp_path: Path) -> None:
    given = rows(2, 16)
    fed(quick, tmp_path, [given[:10], given[10:]], given[:6], shards=2)
    whole, sums = contents(tmp_path), checksums(tmp_path)
    for layer in ns.open(tmp_path).image.layers():
        if layer.lower == 3:
            (tmp_path / layer.path).unlink()
    flow, _ = flow_over(quick)
    run_all(flow, tmp_path, shards=2)
    assert contents(tmp_path) == whole and checksums(tmp_path) == sums


def test_only_touched_groups_and_first_rows_are_recomputed(quick: SparkSession, tmp_path: Path) -> None:
    flow, source = ns.Flow("touched", quick), ns.memory("k string, x int", removals=True)
    flow.source("s", source, checked=False)
    flow.sql("create view numbered as select *, row_number() over (partition by k order by x) as r from s")
    flow.sql("create view least as select * from s order by x limit 3")
    flow.sql("create view last as select * from s order by x % 2, x desc limit 2")  # no change below comes near
    flow.sql("create view first as select * from (select *, rank() over (partition by k order by x) as r from s) where r <= 2")
    feeds = [
        lambda: source.add([(key, x) for key in "abcd" for x in range(0, 400, 4)]),
        lambda: source.add([("b", 999)]),  # behind all limits
        lambda: source.add([("b", 5)]),
        lambda: source.remove([("b", 0)]),
    ]
    _, behind, inside, gone = (_recomputed(progress) for progress in run_all(flow, tmp_path, feeds, shards=2))
    assert behind == {"numbered/window": 101}
    assert inside == {"numbered/window": 102}  # 5 is the third of its group, and the fifth of all
    assert gone == {"numbered/window": 101, "least/limit": 3 + 1, "first/window": 2 + 1}  # the first rows and a ghost
    first = ns.open(tmp_path).view("first").to_pylist()
    assert sorted((row["x"], row["r"]) for row in first if row["k"] == "b") == [(4, 1), (5, 2)]


def _recomputed(progress: dict[str, Any]) -> dict[str, int]:
    """Rows that Spark has recomputed, by operator."""
    figures = {operator["operatorName"]: operator["numRowsInput"] for operator in progress["stateOperators"]}
    return {name: rows for name, rows in figures.items() if f"{name}/rows" in figures}
