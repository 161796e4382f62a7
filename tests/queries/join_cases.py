"""Two sources whose rows come, meet, go and come back, from a seed. Keys are few and of awkward kinds."""

import math
import random
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from nosync.testing import Change, check

SCHEMAS = {
    "a": "k int, x double, t string, d decimal(9,2), s struct<p:int,q:string>",
    "b": "k bigint, y double, u string, e decimal(12,3), z struct<p:int,q:string>",
}


def _row(chance: random.Random) -> tuple[Any, ...]:
    made = (
        1 if chance.random() < 0.3 else chance.randint(1, 4),
        chance.choice([0.0, -0.0, math.nan, 1.5, 2.5]),
        chance.choice(["", "a", "b", "日本"]),
        Decimal(chance.randint(0, 3)) / 4,
        (chance.randint(0, 1), chance.choice([None, "x"])),
    )
    return tuple(None if chance.random() < 0.2 else value for value in made)


def changes(seed: int, epochs: int = 3) -> list[Change]:
    """Additions and removals; sometimes only one side changes, sometimes a side loses all."""
    chance = random.Random(seed)
    alive: dict[str, list[Any]] = {"a": [], "b": []}
    found = []
    for epoch in range(epochs):
        added: dict[str, list[Any]] = {}
        removed: dict[str, list[Any]] = {}
        still = chance.choice(["a", "b", ""]) if epoch else ""
        for name, rows in alive.items():
            if name == still:
                continue
            gone = chance.sample(rows, chance.choice([0, len(rows) // 2, len(rows)]))
            alive[name] = [row for row in rows if not any(row is other for other in gone)]
            added[name] = [_row(chance) for _ in range(chance.choice([1, 4, 8]))]
            alive[name] += added[name]
            removed |= {name: gone} if gone else {}
        found.append(Change(added, removed))
    return found


def check_queries(spark: SparkSession, home: Path, queries: Sequence[str], seed: int, shards: int, epochs: int = 3) -> None:
    """Each query is a view over the sources `a` and `b`; all are compared with Spark's answers at every epoch."""

    def program(flow: Any) -> None:
        flow.source("a")
        flow.source("b")
        for number, query in enumerate(queries):
            flow.sql(f"create view v{number} as {query}")

    check(spark, program, SCHEMAS, changes(seed, epochs), home, shards)
