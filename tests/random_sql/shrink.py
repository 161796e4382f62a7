"""Makes a failing case small: fewer nodes in the query, fewer rows, fewer epochs, one shard, as long as it still fails."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.random_sql.judge import Case

Fails = Callable[[Case], bool]


def shrunk(case: Case, fails: Fails, tries: int = 60) -> Case:
    """The smallest failing case found in so many tries. The case has one view."""
    left = tries
    while True:
        for smaller in _candidates(case):
            if left == 0:
                return case
            left -= 1
            if fails(smaller):
                case = smaller
                break
        else:
            return case


def _candidates(case: Case) -> Iterator[Case]:
    yield from sorted((case.alone(view) for view in case.views[0].smaller()), key=lambda other: other.views[0].size)
    if case.shards > 1:
        yield replace(case, shards=1)
    yield from _fewer_rows(case)
    used = tuple(table for table in case.tables if f" {table.name}" in case.views[0].sql)
    if used != case.tables:
        yield replace(case, tables=used, lives=tuple(life for life in case.lives if life.table in {table.name for table in used}))


def _fewer_rows(case: Case) -> Iterator[Case]:
    """Without a half, a quarter, ... of the rows."""
    piece = (len(case.lives) + 1) // 2
    while piece:
        for start in range(0, len(case.lives), piece):
            yield replace(case, lives=case.lives[:start] + case.lives[start + piece :])
        piece //= 2
