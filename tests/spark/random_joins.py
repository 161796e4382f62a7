"""Random queries of joins, subqueries, set operations and aggregates over one another, over the sources of `join_cases`, from a seed."""

import random

BASES = [
    "select cast(k as bigint) k, x v, t from a",
    "select k, y v, u t from b",
    "select k, cast(e as double) v, z.q t from b",
    "select cast(d * 4 as bigint) k, x v, s.q t from a",
    "select * from values (1L, 1.5D, 'a'), (2L, null, 'b'), (null, 2.5D, null) as fixed(k, v, t)",
]
CONDITIONS = [
    "{l}.k = {r}.k", "{l}.t <=> {r}.t", "{l}.k = {r}.k and {l}.v < {r}.v", "{l}.v = {r}.v or {l}.k = {r}.k", "{l}.v < {r}.v",
    "{l}.t = {r}.t and {l}.k <=> {r}.k", "{l}.v = {r}.v and {l}.t <> {r}.t",
]  # fmt: skip
ALONE = [
    "select * from ({L}) {l} where v > 0",
    "select * from ({L}) {l} where k <> 1 or t is null",
    "select k, max(v) v, min(t) t from ({L}) {l} group by k having count(*) > 1",
    "select k, cast(count(distinct t) as double) v, max(t) t from ({L}) {l} group by k",
    "select count(*) k, max(v) v, min(t) t from ({L}) {l}",
    "select k, cast(count(*) as double) v, t from ({L}) {l} group by rollup(k, t)",
    "select distinct k, v, t from ({L}) {l}",
]
TOGETHER = [
    *(f"select {{l}}.k, {{r}}.v, coalesce({{l}}.t, {{r}}.t) t from ({{L}}) {{l}} {kind} join ({{R}}) {{r}} on {{on}}"
      for kind in ("", "left", "right", "full")),
    *(f"select * from ({{L}}) {{l}} left {kind} join ({{R}}) {{r}} on {{on}}" for kind in ("semi", "anti")),
    *(f"select * from ({{L}}) {operation} select * from ({{R}})" for operation in ("union all", "intersect", "except", "except all")),
    "select * from ({L}) {l} where v >= (select min(v) from ({R}) {r})",
    "select k, (select count(v) from ({R}) {r}) * 1.0D v, t from ({L}) {l}",
    "select * from ({L}) {l} where k not in (select k from ({R}) {r})",
    "select * from ({L}) {l} where not exists (select 1 from ({R}) {r} where v > 1)",
    "select * from ({L}) {l} where k = 1 or exists (select 1 from ({R}) {r} where {on}) or k not in (select k from ({R}) again)",
]  # fmt: skip


def query(chance: random.Random, depth: int) -> str:
    """A query with the columns k, v, t."""
    if depth == 0:
        return chance.choice(BASES)
    names = {"l": f"l{depth}", "r": f"r{depth}"}
    left, form = query(chance, depth - 1), chance.choice(TOGETHER if chance.random() < 0.7 else ALONE)
    right = query(chance, chance.choice([0, depth - 1]))
    return form.format(L=left, R=right, on=chance.choice(CONDITIONS).format(**names), **names)
