"""Window functions, limits and offsets: at every epoch what Spark answers in batch, whatever comes and goes."""

import random
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F

from nosync.testing import Change, check

SCHEMAS = {"s": "k string, x int, y double, t string", "b": "k string, z int"}


def rows(seed: int, count: int) -> list[tuple[Any, ...]]:
    chance = random.Random(seed)

    def value(*choices: Any) -> Any:
        return chance.choice([None, *choices, *choices])

    def row() -> tuple[Any, ...]:
        return value("a", "b", "c"), value(1, 2, 3, 4), value(0.5, -1.25, 8.0, 3.5), value("p", "q", "longer text", "longer tests")

    return [row() for _ in range(count)]


def changes(seed: int) -> list[Change]:
    first, more = rows(seed, 14), [*rows(seed + 1, 8), ("d", 1, 1.0, "only")]
    b = [("a", 1), ("b", 2), (None, 3)]
    gone = [row for row in first[7:] if row not in more]
    return [
        Change({"s": first, "b": b}),
        Change({"s": more}, {"s": first[:7], "b": b[:1]}),
        Change({"s": rows(seed + 2, 2)}, {"s": [*gone, *more]}),
    ]


def program_of(queries: list[str]) -> Any:
    def program(flow: Any) -> None:
        flow.source("s")
        flow.source("b")
        for number, query in enumerate(queries):
            flow.sql(f"create view v{number} as {query}")

    return program


TOTAL = "order by x desc, y, t"
FUNCTIONS = [
    # functions that see equal rows as equal, in an order with ties
    "select *, rank() over w as r, dense_rank() over w as e, percent_rank() over w as p, cume_dist() over w as c,"
    " sum(y) over w as s, count(x) over (partition by k order by x range between 1 preceding and 1 following) as n from s"
    " window w as (partition by k order by x)",
    # functions that see rows one by one, in an order without ties
    f"select *, row_number() over w as r, ntile(2) over w as n, lag(x, 2) over w as l, lead(t, 1, 'none') over w as f,"
    f" first(y) over w as o, last(t) ignore nulls over w as i, nth_value(x, 2) over w as h,"
    f" avg(y) over (partition by k {TOTAL} rows 1 preceding) as a,"
    f" collect_list(x) over (partition by k {TOTAL} rows between 1 preceding and 1 following) as c from s"
    f" window w as (partition by k {TOTAL})",
    # several partitions and none
    f"select k, x, t, sum(x) over (partition by t) as a, max(y) over () as b, row_number() over ({TOTAL}, k) as c,"
    f" min(x) over (partition by k, t) as d, x - avg(x) over (partition by k) as e from s",
    # over aggregates and joins, under them and over each other
    "select k, sum(x) as total, rank() over (order by sum(x) desc) as r, sum(sum(x)) over () as whole from s group by k",
    "select s.k, z, x, rank() over (partition by z order by x) as r from s join b on s.k = b.k",
    f"select r, count(*) as n, sum(x) as x from (select x, row_number() over (partition by k {TOTAL}) as r from s) group by r",
    "select k, m, dense_rank() over (order by m) as d from (select distinct k, max(x) over (partition by k) as m from s)",
]


def test_window_functions(quick: SparkSession, tmp_path: Path) -> None:
    check(quick, program_of(FUNCTIONS), SCHEMAS, changes(3), tmp_path, 3)


TOPS = [
    f"select * from (select *, row_number() over (partition by k {TOTAL}) as r from s) where r <= 2",
    "select * from (select k, x, rank() over (partition by k order by x desc) as r from s) where r <= 2",
    "select k, x, t from (select *, dense_rank() over (partition by k order by x) as d from s) where d < 3 and t <> 'p'",
    f"select k, t from s qualify row_number() over (partition by k {TOTAL}) = 1",
    f"select * from (select *, row_number() over ({TOTAL}, k) as r from s) where r <= 3",
    "select * from s order by t desc nulls last, x, y, k limit 3",
    "select k, t from s order by y desc, x, t, k limit 4 offset 2",
    "select * from (select k, count(*) as n from s group by k) order by n desc, k limit 2",
    "select k, sum(x) as x from (select * from s order by x desc, y, t, k limit 5) group by k",
    f"select * from (select *, sum(x) over (partition by k {TOTAL}) as s, row_number() over (partition by k {TOTAL}) as r from s)"
    " where s > 3 and r between 2 and 3",
    "select s.k, s.x, y from s join (select x, k from s order by x, k limit 1) one on one.x = s.x",
    "select * from (select k, t from s order by k nulls last, t) offset 3",
    "select k, x, (select z from b where b.k = s.k order by z limit 1) as z,"
    " (select min(x) from (select x from s order by x limit 2)) as m from s",
    "select b.k, x from b, lateral (select x from s where s.k = b.k order by x desc nulls last limit 1)",
    "select count(*) as n from (select k from s limit 3)",
]


def test_top_rows_limits_and_offsets(quick: SparkSession, tmp_path: Path) -> None:
    check(quick, program_of(TOPS), SCHEMAS, changes(5), tmp_path, 2)


def test_rows_that_the_order_leaves_equal_go_by_their_columns(quick: SparkSession, tmp_path: Path) -> None:
    def program(more: str, all: str) -> Any:
        window = f"over (partition by k order by x{more})"
        return program_of(
            [
                f"select *, row_number() {window} as r, first(t) {window} as f, lag(y) {window} as l from s",
                f"select * from s order by x desc{more} limit 4",
                f"select t, x from s {all} limit 5",
                f"select * from (select *, row_number() over (partition by t order by y{more}) as r from s) where r = 1",
            ]
        )

    flow, spark = program("", ""), program(", k, x, y, t", "order by t, x")
    check(quick, flow, SCHEMAS, changes(7), tmp_path, 2, admissible={}, expected=spark)


def typed(seed: int, count: int) -> list[tuple[Any, ...]]:
    chance = random.Random(seed)
    choices: list[tuple[Any, ...]] = [
        ({"a": 1}, {"a": 1, "b": 2}),
        (Decimal("1.5"), Decimal("-99999999999999999999.0001"), Decimal(7)),
        (datetime(2020, 1, 1), datetime(1960, 1, 1, 3)),
        (1.5, float("nan"), -0.0, 0.0, float("-inf")),
        ("", "abcdefghi", "abcdefghj", "ABCDEFGHJ", "é"),
        ([], [1], [1, None]),
    ]
    return [tuple(chance.choice([None, *values, *values]) for values in choices) for _ in range(count)]


def test_values_of_every_type_have_an_order(quick: SparkSession, tmp_path: Path) -> None:
    ranks = {"d": "d desc nulls first", "at": "at", "f": "f nulls last", "t": "t desc", "c": "collate(t, 'UTF8_LCASE')", "l": "l desc"}
    queries = [f"select d, at, f, t, l, rank() over (order by {order}) as r from s qualify r <= 3" for order in ranks.values()]
    queries += [
        "select m, f, count(*) over (partition by f) as n, min(t) over (partition by l order by at) as least from s",
        "select count(*) as n from (select m from s limit 3)",
    ]

    def program(flow: Any) -> None:
        flow.source("s")
        for number, query in enumerate(queries):
            flow.sql(f"create view v{number} as {query}")

    first, more = typed(1, 12), typed(2, 6)
    given = [Change({"s": first}), Change({"s": more}, {"s": first[:8]})]
    schema = "m map<string,int>, d decimal(30,4), at timestamp, f float, t string, l array<int>"
    check(quick, program, {"s": schema}, given, tmp_path, 2)


def test_pandas_functions_over_windows(quick: SparkSession, tmp_path: Path) -> None:
    @F.pandas_udf("double")
    def middle(values: pd.Series) -> float:
        return float(values.median())

    def program(flow: Any) -> None:
        s = flow.source("s")
        flow.source("b")
        running = Window.partitionBy("k").orderBy("x", "y", "t").rowsBetween(-1, 0)
        flow.view("v", s.withColumn("m", middle("y").over(running)).withColumn("n", middle("x").over(Window.partitionBy("k"))))

    check(quick, program, SCHEMAS, changes(9), tmp_path, 2)
