"""How trees grow: a form for each thing SQL can do with one input or with two."""

import random
from collections.abc import Sequence

from tests.random_sql.expressions import COLUMNS, TYPED, call, cast, condition, order, predicate, value
from tests.random_sql.rows import Table
from tests.random_sql.trees import Node

JOINS = ["", "left", "right", "full", "left semi", "left anti", "cross"]
SETS = ["union all", "union", "intersect", "except", "intersect all", "except all"]
RANKS = [
    "row_number() over (partition by l.t order by {all})", "rank() over (partition by l.k order by l.v)",
    "dense_rank() over (order by l.d desc)", "lag(l.k) over (partition by l.t order by {all})",
    "lead(l.k, 2, 0L) over (partition by l.d order by {all})", "count(*) over (partition by l.k)",
    "sum(l.k) over (partition by l.t order by {all} rows between 2 preceding and current row)", "max(l.k) over ()",
    "sum(l.k) over (partition by l.t order by l.v)", "first_value(l.k) over (partition by l.k order by {all})",
    "ntile(2) over (order by {all})",
]  # fmt: skip
FIXED = "values (1L, 1.5D, 'a', 0.25BD), (2L, null, 'b', null), (null, 2.5D, null, 1.00BD) as fixed(k, v, t, d)"
NUMBERS = ("int", "bigint", "tinyint", "smallint", "double", "float", "decimal(9,2)", "decimal(38,10)")


def _columns(chance: random.Random, alias: str) -> tuple[tuple[str, str, str], ...]:
    return tuple((column, value(chance, column, alias), f"{alias}.{column}") for column in COLUMNS)


SELECT = "select {k} k, {v} v, {t} t, {d} d from ({0}) l "


class Grower:
    """Makes queries over the tables; the same seed makes the same ones."""

    def __init__(self, chance: random.Random, tables: Sequence[Table]) -> None:
        self.chance, self.tables = chance, tables
        self.alone = [self._select, self._select, self._grouped, self._grouped, self._whole, self._sets, self._distinct, self._exploded,
                      self._ranked, self._ranked, self._limited]  # fmt: skip
        self.together = [self._joined] * 4 + [self._set] * 2 + [self._asked] * 2 + [self._scalar, self._related, self._either, self._twice]

    def tree(self, depth: int) -> Node:
        if depth == 0:
            return self._base()
        if self.chance.random() < 0.4:
            return self.chance.choice(self.alone)(self.tree(depth - 1))
        return self.chance.choice(self.together)(self.tree(depth - 1), self.tree(self.chance.choice([0, 0, depth - 1])))

    def _base(self) -> Node:
        if self.chance.random() < 0.07:
            return Node(f"select * from {FIXED}")
        table = self.chance.choice(self.tables)
        columns = []
        for column in COLUMNS:
            made = [getattr(sort, column).format(f"c{i}") for i, sort in enumerate(table.columns) if getattr(sort, column)]
            columns.append(f"{self.chance.choice(made)} {column}")
        return Node(f"select {', '.join(columns)} from {table.name}")

    def _select(self, one: Node) -> Node:
        where = f"where {predicate(self.chance, 'l')}" if self.chance.random() < 0.7 else ""
        return Node(SELECT + "{where}", (one,), (*_columns(self.chance, "l"), ("where", where, "")))

    def _aggregate(self, one: Node, keys: Sequence[str], grouping: str) -> Node:
        """The keys keep their names; the other columns are calls."""
        results = [(c, f"l.{c}" if c in keys else call(self.chance, c), f"l.{c}" if c in keys else f"max(l.{c})") for c in COLUMNS]
        having = self.chance.choice(["", "", "having count(*) > 1", "having max(l.v) > 0 or count(l.t) = 0"])
        return Node(SELECT + "{by} {having}", (one,), (*results, ("by", grouping, grouping), ("having", having, "")))

    def _grouped(self, one: Node) -> Node:
        keys = self.chance.sample(COLUMNS, self.chance.choice([1, 1, 2, 3]))
        return self._aggregate(one, keys, f"group by {', '.join(f'l.{key}' for key in keys)}")

    def _sets(self, one: Node) -> Node:
        keys = self.chance.sample(COLUMNS, 2)
        return self._aggregate(one, keys, f"group by {self.chance.choice(['rollup', 'cube'])}({', '.join(f'l.{key}' for key in keys)})")

    def _whole(self, one: Node) -> Node:
        return self._aggregate(one, (), "")

    def _distinct(self, one: Node) -> Node:
        return Node("select distinct {k} k, {v} v, {t} t, {d} d from ({0}) l", (one,), _columns(self.chance, "l"))

    def _exploded(self, one: Node) -> Node:
        outer = self.chance.choice(["", "outer"])
        form = f"select l.k, l.v, part t, l.d from ({{0}}) l lateral view {outer} explode(split(l.t, ',')) e as part"
        return Node(form, (one,))

    def _ranked(self, one: Node) -> Node:
        rank = cast("k", self.chance.choice(RANKS).format(all=order(self.chance)))
        form = "select {rank} k, l.v, l.t, l.d from ({0}) l"
        if self.chance.random() < 0.3:
            form = f"select * from ({form}) l where k <= 2"
        return Node(form, (one,), (("rank", rank, "row_number() over (order by l.k, l.v, l.t, l.d)"),))

    def _limited(self, one: Node) -> Node:
        size = self.chance.choice(["limit 1", "limit 3", "limit 4 offset 2"])
        return Node(f"select * from ({{0}}) l order by {order(self.chance)} {size}", (one,))

    def _joined(self, one: Node, other: Node) -> Node:
        kind = self.chance.choice(JOINS)
        if kind in ("left semi", "left anti"):
            form, slots = f"select * from ({{0}}) l {kind} join ({{1}}) r on {{on}}", ()
        else:
            sides = self.chance.choices("lr", k=4)
            slots = tuple((c, value(self.chance, c, side), f"{side}.{c}") for c, side in zip(COLUMNS, sides, strict=True))
            form = SELECT + f"{kind} join ({{1}}) r on {{on}}"
        if kind == "cross":
            form = form.replace(" on {on}", " where {on}")
        on = condition(self.chance, keyless=0.3 if one.size + other.size < 8 else 0.0)
        return Node(form, (one, other), (*slots, ("on", on, "l.k = r.k")))

    def _set(self, one: Node, other: Node) -> Node:
        return Node(f"select * from ({{0}}) {self.chance.choice(SETS)} select * from ({{1}})", (one, other))

    def _inner(self, column: str) -> str:
        return call(self.chance, column).replace("l.", "r.")

    def _scalar(self, one: Node, other: Node) -> Node:
        where = f"where {predicate(self.chance, 'r')}" if self.chance.random() < 0.5 else ""
        form = self.chance.choice([
            "select * from ({0}) l where l.v >= (select {call} from ({1}) r {where})",
            "select l.k, (select {call} from ({1}) r {where}) v, l.t, l.d from ({0}) l",
        ])  # fmt: skip
        return Node(form, (one, other), (("call", self._inner("v"), "max(r.v)"), ("where", where, "")))

    def _related(self, one: Node, other: Node) -> Node:
        """A scalar subquery that looks at the outer row, or a lateral join."""
        form = self.chance.choice([
            "select (select {call} from ({1}) r where r.t = l.t) k, l.v, l.t, l.d from ({0}) l",
            "select * from ({0}) l where l.k <= (select {call} from ({1}) r where r.t = l.t)",
            "select m k, l.v, l.t, l.d from ({0}) l, lateral (select {call} m from ({1}) r where r.t = l.t)",
        ])  # fmt: skip
        return Node(form, (one, other), (("call", self._inner("k"), "count(*)"),))

    def _asked(self, one: Node, other: Node) -> Node:
        negated, column = self.chance.choice(["", "not "]), self.chance.choice(COLUMNS)
        form = self.chance.choice([
            f"select * from ({{0}}) l where l.{column} {negated}in (select r.{column} from ({{1}}) r {{where}})",
            f"select * from ({{0}}) l where {negated}exists (select 1 from ({{1}}) r where {{on}})",
        ])  # fmt: skip
        where = f"where {predicate(self.chance, 'r')}" if self.chance.random() < 0.5 else ""
        return Node(form, (one, other), (("where", where, ""), ("on", condition(self.chance), "l.k = r.k")))

    def _either(self, one: Node, other: Node) -> Node:
        """Subqueries under `or` and among the columns: whether a row has a match becomes a value."""
        form = self.chance.choice([
            "select * from ({0}) l where {also} or exists (select 1 from ({1}) r where {on})",
            "select * from ({0}) l where {also} or l.k not in (select r.k from ({1}) r)",
            "select if(exists (select 1 from ({1}) r where {on}), 1L, l.k) k, l.v, l.t, l.d from ({0}) l where {also}",
        ])  # fmt: skip
        return Node(form, (one, other), (("also", predicate(self.chance, "l"), "l.k = 1"), ("on", condition(self.chance), "l.k = r.k")))

    def _twice(self, one: Node, other: Node) -> Node:
        """One common table, joined with itself."""
        on = condition(self.chance, keyless=0.0)
        kind = self.chance.choice(["", "left", "full"])
        return Node(f"with c as ({{0}}) select l.k, r.v, l.t, r.d from c l {kind} join c r on {{on}}", (one,), (("on", on, "l.k = r.k"),))

    def typed(self) -> Node:
        """An aggregate of columns of any type, by columns of any type, straight from a table. Nothing can be built upon it."""
        table = self.chance.choice(self.tables)
        names = [f"c{i}" for i in range(len(table.columns))]
        numbers = [name for name, sort in zip(names, table.columns, strict=True) if sort.type in NUMBERS]
        calls = [self.chance.choice(TYPED).format(c=self.chance.choice(names), n=self.chance.choice(numbers)) for _ in range(4)]
        keys = self.chance.sample(names, self.chance.choice([0, 1, 1, 2]))
        selected = [*keys, *(f"{{r{i}}} r{i}" for i in range(len(calls)))]
        form = f"select {', '.join(selected)} from {table.name}" + (f" group by {', '.join(keys)}" if keys else "")
        return Node(form, (), tuple((f"r{i}", text, "count(*)") for i, text in enumerate(calls)))
