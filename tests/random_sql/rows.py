"""Random tables from a seed, and the lives of their rows. Values are few and awkward, so that keys meet, groups empty and come back."""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from nosync.testing import Change

TEXTS = ["", "a", "A", "b", " ", "ä", "日本", "\0", "a,b\n\"", "😀"]


@dataclass(frozen=True, slots=True)
class Sort:
    """A sort of column: its SQL type, how a value is made, and what it gives as a whole number, a double, a text and a decimal."""

    type: str
    make: Callable[[random.Random], Any]
    k: str = ""
    v: str = ""
    t: str = ""
    d: str = ""


SORTS = [
    Sort("int", lambda r: r.randint(-2, 4), k="cast({} as bigint)", v="{} / 2.0D", d="cast({} as decimal(9,2))"),
    Sort("bigint", lambda r: r.choice([0, 1, -1, 2, 2**40, 7]), k="{}"),
    Sort("smallint", lambda r: r.randint(-2, 3), k="cast({} as bigint)", t="cast({} as string)"),
    Sort("tinyint", lambda r: r.randint(0, 3), k="cast({} as bigint)"),
    Sort("boolean", lambda r: r.random() < 0.5, k="cast(cast({} as int) as bigint)"),
    Sort("float", lambda r: r.choice([0.0, -0.0, 0.5, -1.25, math.nan, math.inf, 8.0]), v="cast({} as double)"),
    Sort("double", lambda r: r.choice([0.0, -0.0, 1.5, 2.5, -2.25, 0.75, math.nan, math.inf]), v="{}"),
    Sort("double", lambda r: r.choice([1e15, 0.1, 1e-300, 3.3, -math.inf])),  # sums of these are compared, never built upon
    Sort("decimal(9,2)", lambda r: Decimal(r.randint(-4, 8)) / 4, v="cast({} as double)", d="{}"),
    Sort("decimal(38,10)", lambda r: Decimal(r.randint(-(10**20), 10**20)) / 10**10),
    Sort("string", lambda r: r.choice(TEXTS), k="cast(length({}) as bigint)", t="{}"),
    Sort("binary", lambda r: bytearray(r.choice(TEXTS).encode()), t="hex({})"),
    Sort("date", lambda r: date(2024, 2, 28) + timedelta(days=r.randint(0, 3)), k="cast(day({}) as bigint)", t="cast({} as string)"),
    Sort(
        "timestamp",
        lambda r: datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC) + timedelta(microseconds=r.randint(0, 3) * 700_001),
        k="pmod(unix_micros({}), 3L)",
    ),
    Sort("struct<p:int,q:string>", lambda r: (r.randint(0, 1), r.choice(["x", None])), k="cast({}.p as bigint)", t="{}.q"),
    Sort("array<int>", lambda r: [r.choice([1, 2, None]) for _ in range(r.randint(0, 2))], k="cast(size({}) as bigint)"),
]
PLAIN = [SORTS[0], SORTS[6], SORTS[10], SORTS[8]]  # every table has one of each: it can give k, v, t and d
NEVER = 99


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    columns: tuple[Sort, ...]  # named c0, c1...

    @property
    def schema(self) -> str:
        return ", ".join(f"c{i} {sort.type}" for i, sort in enumerate(self.columns))


@dataclass(frozen=True, slots=True)
class Life:
    """A row of a table that is there from epoch `born` until before epoch `gone`."""

    table: str
    row: tuple[Any, ...]
    born: int
    gone: int = NEVER


def tables(chance: random.Random, count: int = 2) -> list[Table]:
    return [Table(f"s{i}", tuple(PLAIN + chance.choices(SORTS, k=3))) for i in range(count)]


def _row(chance: random.Random, table: Table) -> tuple[Any, ...]:
    return tuple(None if chance.random() < 0.15 else sort.make(chance) for sort in table.columns)


def lives(chance: random.Random, among: Sequence[Table], epochs: int, rows: int) -> list[Life]:
    """Rows come at any time, some twice; most go again. Some tables only grow; sometimes one loses all it has."""
    found: list[Life] = []
    for table in among:
        grows, emptied = chance.random() < 0.25, chance.choice([None, None, epochs])
        known: list[tuple[Any, ...]] = []
        for _ in range(chance.randint(rows // 2, rows)):
            row = chance.choice(known) if known and chance.random() < 0.2 else _row(chance, table)
            known.append(row)
            born = chance.choice([1, 1, *range(1, epochs + 1)])
            gone = NEVER if grows or born == epochs or chance.random() < 0.5 else chance.randint(born + 1, epochs)
            gone = emptied if emptied and not grows and born < emptied < gone else gone
            found.append(Life(table.name, row, born, gone))
    return found


def changes(rows: Sequence[Life]) -> list[Change]:
    """What happens epoch by epoch; epochs in which nothing happens are left out."""
    found = []
    for epoch in sorted({life.born for life in rows} | {life.gone for life in rows} - {NEVER}):
        added: dict[str, list[Any]] = {}
        removed: dict[str, list[Any]] = {}
        for life in rows:
            if life.born == epoch:
                added.setdefault(life.table, []).append(life.row)
            if life.gone == epoch:
                removed.setdefault(life.table, []).append(life.row)
        found.append(Change(added, removed))
    return found
