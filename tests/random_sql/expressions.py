"""Random expressions over the columns k, v, t, d of an input.

None can fail, none depends on the sign of a zero, and doubles stay multiples of small powers of two: their sums are exact in any order.
"""

import random

COLUMNS = ("k", "v", "t", "d")
TYPES = {"k": "bigint", "v": "double", "t": "string", "d": "decimal(9,2)"}
VALUES = {
    "k": ["{a}.k", "{a}.k + 1", "coalesce({a}.k, 0L)", "pmod({a}.k, 3L)", "cast(length({a}.t) as bigint)", "nullif({a}.k, 2L)",
          "try_cast({a}.d as bigint)"],
    "v": ["{a}.v", "{a}.v * 2", "cast({a}.d as double)", "nullif({a}.v, 1.5D)", "coalesce({a}.v, 0.5D)",
          "if({a}.t is null, {a}.v, -{a}.v)"],
    "t": ["{a}.t", "upper({a}.t)", "substring({a}.t, 1, 1)", "cast({a}.k as string)", "coalesce({a}.t, 'none')", "longer({a}.t)",
          "concat({a}.t, cast({a}.k as string))"],
    "d": ["{a}.d", "try_cast({a}.d * 2 as decimal(9,2))", "abs({a}.d)", "try_cast({a}.k as decimal(9,2))",
          "try_cast(round({a}.d) as decimal(9,2))"],
}  # fmt: skip
PREDICATES = [
    "{a}.k > 1", "{a}.t <> 'a'", "{a}.v is not null", "{a}.k in (1, 3, null)", "{a}.t like '%a%'", "{a}.d between 0 and 1",
    "{a}.v < {a}.k", "{a}.k <=> {a}.d", "{a}.t is null", "isnan({a}.v)", "{a}.v >= 1.5", "length({a}.t) = {a}.k",
]  # fmt: skip
EQUAL = [
    "{l}.k = {r}.k", "{l}.t = {r}.t", "{l}.k <=> {r}.k", "{l}.d = {r}.d and {l}.t <=> {r}.t", "{l}.v = {r}.v", "{l}.k = {r}.k + 1",
    "{l}.k = {r}.d",
]  # fmt: skip
BEYOND = ["{l}.v < {r}.v", "{l}.t <> {r}.t", "{l}.d >= {r}.d or {l}.k is null", "{l}.t like concat({r}.t, '%')"]
CALLS = {  # {f} is where a filter may stand
    "k": ["count(*){f}", "count(distinct l.t){f}", "sum(l.k){f}", "max(l.k){f}", "bit_xor(l.k){f}", "count(distinct l.k, l.t){f}",
          "count(l.d){f}", "count_if(l.v > 1){f}", "cast(size(collect_set(l.t){f}) as bigint)"],
    "v": ["sum(l.v){f}", "min(l.v){f}", "max(l.v){f}", "sum(distinct l.v){f}", "percentile(l.d, 0.5){f}",
          "round(avg(l.d){f} * 4) / 4", "floor(stddev_pop(l.d){f} * 1000 + 0.37)", "round(avg(l.k){f} * 4) / 4"],
    "t": ["min(l.t){f}", "max(l.t){f}", "concat_ws(',', sort_array(collect_list(l.t){f}))", "max_by(l.t, struct(l.d, l.t)){f}"],
    "d": ["sum(l.d){f}", "max(l.d){f}", "avg(l.d){f}", "min(l.d){f}", "sum(distinct l.d){f}"],
}  # fmt: skip
TYPED = [
    "count({c})", "count(distinct {c})", "min({c})", "max({c})", "sort_array(collect_set({c}))", "min_by(c0, struct({c}, c0))",
    "mode(c0, true)", "sum({n})", "avg({n})", "sum(distinct {n})", "stddev(c0)", "var_pop(c0)", "covar_samp(c0, c3)", "corr(c0, c3)",
    "bool_and(c0 > 0)", "bool_or(c0 > 3)", "bit_and(c0)", "bit_or(c0)", "bit_xor(c0)", "try_sum(c0)", "try_avg({n})", "count_if(c0 > 1)",
    "struct(max({c}) as inner, count(*) * 2 as twice)",
]  # fmt: skip


def cast(column: str, text: str) -> str:
    """The text as the column's type, null where it does not fit."""
    return text if column == "t" else f"try_cast({text} as {TYPES[column]})"


def value(chance: random.Random, column: str, alias: str) -> str:
    if chance.random() < 0.5:
        return f"{alias}.{column}"
    if chance.random() < 0.2:
        return f"case when {predicate(chance, alias)} then {value(chance, column, alias)} else {value(chance, column, alias)} end"
    return chance.choice(VALUES[column]).format(a=alias)


def predicate(chance: random.Random, alias: str) -> str:
    kind = chance.random()
    if kind < 0.1:
        return f"not ({predicate(chance, alias)})"
    if kind < 0.3:
        return f"({predicate(chance, alias)} {chance.choice(['and', 'or'])} {predicate(chance, alias)})"
    return chance.choice(PREDICATES).format(a=alias)


def condition(chance: random.Random, left: str = "l", right: str = "r", keyless: float = 0.1) -> str:
    """Of a join: mostly equal keys, often with more, seldom without any."""
    beyond = chance.choice(BEYOND).format(l=left, r=right)
    if chance.random() < keyless:
        return beyond
    equal = chance.choice(EQUAL).format(l=left, r=right)
    return equal if chance.random() < 0.6 else f"{equal} and ({beyond})"


def call(chance: random.Random, column: str) -> str:
    """A call of an aggregate function that gives the column's type."""
    filtered = f" filter (where {predicate(chance, 'l')})" if chance.random() < 0.2 else ""
    return cast(column, chance.choice(CALLS[column]).format(f=filtered))


def order(chance: random.Random) -> str:
    """All four columns in a random order: rows that are still equal are the same row."""
    ways = ["", " desc", " nulls last", " desc nulls first"]
    return ", ".join(f"l.{column}{chance.choice(ways)}" for column in chance.sample(COLUMNS, 4))
