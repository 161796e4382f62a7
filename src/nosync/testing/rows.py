"""Whether two tables hold the same multiset of rows, as SQL sees rows.

NaN equals NaN, -0.0 equals 0.0, doubles may differ by rounding, everything else is equal or it is not. Where a query leaves the
answer open, the caller says for the column which answers are admissible.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

Admissible = Callable[[Any, Any], bool]  # (expected, actual): whether the answer is one of those the query allows
SHOWN = 5


def difference(expected: pa.Table, actual: pa.Table, tolerance: float = 1e-9, admissible: Mapping[str, Admissible] | None = None) -> str:
    """What is missing and what is too much, in words; empty where the tables hold the same rows."""
    if len(expected.schema) != len(actual.schema):
        return f"columns {expected.schema.names} became {actual.schema.names}"
    wanted, found = _rows(expected), _rows(actual)
    common = Counter(map(repr, wanted)) & Counter(map(repr, found))
    if not admissible:  # rows that are equal to the letter need no closer look
        wanted, found = _without(wanted, common), _without(found, common)
    tests = [(admissible or {}).get(name) for name in expected.schema.names]
    missing, extra = _matched(wanted, found, tests, tolerance)
    if not missing and not extra:
        return ""
    return f"missing {len(missing)}: {missing[:SHOWN]}; too much {len(extra)}: {extra[:SHOWN]}"


def _rows(table: pa.Table) -> list[tuple[Any, ...]]:
    """Rows by position: names may repeat."""
    columns = [[_plain(value) for value in column.to_pylist()] for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def _plain(value: Any) -> Any:
    """The value with one NaN and one zero, at any depth."""
    if isinstance(value, float):
        return math.nan if math.isnan(value) else value + 0.0
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value


def _without(rows: list[tuple[Any, ...]], common: Counter[str]) -> list[tuple[Any, ...]]:
    rest = Counter(common)
    kept = []
    for row in rows:
        text = repr(row)
        if rest[text]:
            rest[text] -= 1
        else:
            kept.append(row)
    return kept


Test = Admissible | None


def _matched(
    wanted: list[tuple[Any, ...]], found: list[tuple[Any, ...]], tests: Sequence[Test], tolerance: float
) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """What is left on either side after each wanted row has taken one that answers it."""
    missing, rest = [], list(found)
    for row in wanted:
        index = next((i for i, other in enumerate(rest) if _answers(row, other, tests, tolerance)), None)
        if index is None:
            missing.append(row)
        else:
            del rest[index]
    return missing, rest


def _answers(row: tuple[Any, ...], other: tuple[Any, ...], tests: Sequence[Test], tolerance: float) -> bool:
    return all(
        close(a, b, tolerance) if test is None else test(a, b) for a, b, test in zip(row, other, tests, strict=True)
    )


def close(a: Any, b: Any, tolerance: float = 1e-9) -> bool:
    """Equal, or doubles apart by rounding only, at any depth."""
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or a == b or math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance * 1e-3)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(close(a[name], b[name], tolerance) for name in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(close(x, y, tolerance) for x, y in zip(a, b, strict=True))
    return type(a) is type(b) and bool(a == b)
