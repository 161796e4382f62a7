"""Random schemas, rows, changes and queries from a seed. Values are few, so that groups meet, empty and come back."""

import math
import random
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType

from nosync.testing import Change

Maker = Callable[[random.Random], Any]
TEXTS = ["", "a", "A", " ", "ä", "日本", "\0", "a,b\n\"", "😀", "nul\0l"]
DOUBLES = [0.0, -0.0, 1.5, -2.25, 1e15, 0.1, math.nan, math.inf, -math.inf, 1e-300]
FLOATS = [0.0, -0.0, 0.5, -1.25, math.nan, math.inf, 8.0]
MAKERS: dict[str, Maker] = {
    "int": lambda r: r.randint(-3, 6),
    "bigint": lambda r: r.choice([0, 1, -1, 2**40, -(2**40), 7]),
    "smallint": lambda r: r.randint(-2, 3),
    "tinyint": lambda r: r.randint(0, 3),
    "boolean": lambda r: r.random() < 0.5,
    "float": lambda r: r.choice(FLOATS),
    "double": lambda r: r.choice(DOUBLES),
    "decimal(9,2)": lambda r: Decimal(r.randint(-500, 500)) / 100,
    "decimal(38,10)": lambda r: Decimal(r.randint(-(10**20), 10**20)) / 10**10,
    "string": lambda r: r.choice(TEXTS),
    "binary": lambda r: bytearray(r.choice(TEXTS).encode()),
    "date": lambda r: date(2024, 2, 28) + timedelta(days=r.randint(0, 3)),
    "timestamp": lambda r: datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC) + timedelta(microseconds=r.randint(0, 3) * 700_001),
    "struct<p:int,q:string>": lambda r: (r.randint(0, 1), r.choice(["x", None])),
    "array<int>": lambda r: [r.choice([1, 2, None]) for _ in range(r.randint(0, 2))],
}
NUMBERS = ("int", "bigint", "smallint", "tinyint", "float", "double", "decimal(9,2)", "decimal(38,10)")
FILTERS = ("n > 0", "t <> 'a'", "size(a) > 0")
WHOLE = ("int", "bigint", "smallint", "tinyint")
ORDERED = tuple(MAKERS)


class Case:
    """One random program and its changes. The columns `n`, `a` and `t` are always there for the steps to work on."""

    def __init__(self, seed: int, removing: bool) -> None:
        self.random = random.Random(seed)
        types = ["int", "array<int>", "string", *self.random.choices(list(MAKERS), k=6)]
        names = ["n", "a", "t", *(f"c{i}" for i in range(6))]
        self.columns = dict(zip(names, types, strict=True))
        self.schemas = {"s": ", ".join(f"{name} {type}" for name, type in self.columns.items())}
        self.shards = self.random.randint(1, 5)
        self.changes = self._changes(removing)
        self.steps = self.random.sample(STEPS, k=self.random.randint(1, 3))
        self.keys = self.random.sample([n for n in names if n != "a"], k=self.random.randint(1, 2))
        self.calls = [self._call() for _ in range(8)]
        self.having = self.random.choice(["true", "count(*) > 1", "count(*) % 2 = 1"])
        self.sets = self.random.choice(["rollup", "cube"])
        self.other = ("whole", "again", "distinct", "sets")[seed // 2 % 4]

    def _row(self) -> tuple[Any, ...]:
        skewed = self.random.random() < 0.5
        made = (None if self.random.random() < 0.15 else MAKERS[type](self.random) for type in self.columns.values())
        return tuple(made) if not skewed else (1, *list(made)[1:])

    def _changes(self, removing: bool) -> list[Change]:
        alive: list[tuple[Any, ...]] = []
        changes = []
        for epoch in range(3):
            gone = self.random.sample(alive, k=self.random.randint(0, len(alive))) if removing and epoch != 1 else []
            if epoch == 2 and removing and self.random.random() < 0.5:
                gone = list(alive)
            for row in gone:
                alive.remove(next(other for other in alive if other is row))
            added = [self._row() for _ in range(self.random.choice([1, 5, 20]))] if epoch < 2 or not gone else []
            alive += added
            changes.append(Change({"s": added}, {"s": gone} if gone else {}) if removing else Change({"s": added}))
        return changes

    def _of(self, types: tuple[str, ...]) -> str:
        return self.random.choice([name for name, type in self.columns.items() if type in types])

    def _call(self) -> str:
        """A call of a function that has an accumulator, sometimes distinct, filtered, or inside an expression."""
        number, whole, any_, ordered = self._of(NUMBERS), self._of(WHOLE), self.random.choice(list(self.columns)), self._of(ORDERED)
        distinct = "distinct " if self.random.random() < 0.15 else ""
        call = self.random.choice(
            [
                "count(*)", f"count({distinct}{any_})", "count_if(n > 1)", f"sum({distinct}{number})", f"avg({number})",
                f"min({ordered})", f"max({ordered})", f"stddev({self._finite()})", f"var_pop({self._finite()})",
                f"covar_samp({self._finite()}, n)", f"corr({self._finite()}, n)", "bool_and(n > 0)", "bool_or(n > 3)",
                f"bit_and({whole})", f"bit_or({whole})", f"bit_xor({whole})", f"try_sum({whole})", f"try_avg({whole})",
            ]
        )
        if self.random.random() < 0.25:
            call += f" filter (where {self.random.choice(FILTERS)})"
        if self.random.random() < 0.15:
            call = f"struct({call} as inner, count(*) * 2 as twice)"
        return call

    def _finite(self) -> str:
        """Moments of values far apart in size are left to Spark's rounding, so these come from small numbers."""
        return self._of(("int", "smallint", "tinyint", "decimal(9,2)"))

    def program(self, flow: Any) -> None:
        rows = flow.source("s")
        for step in self.steps:
            rows = step(rows)
        rows = flow.view("rows", rows)
        calls = [F.expr(call).alias(f"r{i}") for i, call in enumerate(self.calls)]
        grouped = rows.groupBy(*self.keys).agg(*calls, F.expr(self.having).alias("kept"), F.count("*").alias("size"))
        grouped = flow.view("grouped", grouped.where("kept"))
        if self.other == "whole":
            flow.view("whole", rows.agg(*calls))
        elif self.other == "again":
            flow.view("again", grouped.groupBy("size").agg(F.count("*"), F.min(self.keys[0]), F.sum("size")))
        elif self.other == "distinct":
            flow.view("seen", rows.select("n", *self.keys[1:], "t").distinct())
        else:
            keys = ", ".join(dict.fromkeys([*self.keys, "n"]))
            flow.sql(f"create view sets as select {keys}, count(*), sum(n), max(t), grouping_id() from rows group by {self.sets}({keys})")


def _narrow(rows: DataFrame) -> DataFrame:
    return rows.where("n is null or n >= -1")


def _explode(rows: DataFrame) -> DataFrame:
    return rows.withColumn("one", F.explode_outer("a")).withColumn("n", F.coalesce("one", "n")).drop("one")


def _case(rows: DataFrame) -> DataFrame:
    return rows.withColumn("t", F.expr("case when n > 2 then 'big' when n is null then null else upper(t) end"))


def _union(rows: DataFrame) -> DataFrame:
    return rows.where("n > 0").unionAll(rows.withColumn("n", F.col("n") + 1))


def _python(rows: DataFrame) -> DataFrame:
    longer = F.udf(lambda text: None if text is None else text + "!", "string")
    return rows.withColumn("t", longer("t"))


def _pandas(rows: DataFrame) -> DataFrame:
    def doubled(values):  # type: ignore[no-untyped-def]
        return values * 2

    return rows.withColumn("n", F.pandas_udf(doubled, DoubleType())("n").cast("int"))


def _hashed(rows: DataFrame) -> DataFrame:
    return rows.withColumn("n", F.expr("cast(pmod(xxhash64(t, n), 4) as int)"))


STEPS = [_narrow, _explode, _case, _union, _python, _pandas, _hashed]
