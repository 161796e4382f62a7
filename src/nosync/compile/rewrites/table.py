"""The rewrites, in order."""

from collections.abc import Callable

from nosync.bridge.catalyst import Catalyst, Java
from nosync.compile.rewrites.distinct_aggregates import sort_distinct_aggregates
from nosync.compile.rewrites.keyless_joins import spread_keyless_joins
from nosync.compile.rewrites.numbered_rows import order_row_numbers
from nosync.compile.rewrites.scalar_subqueries import join_scalar_subqueries

REWRITES: tuple[Callable[[Catalyst, Java], Java], ...] = (
    order_row_numbers,
    join_scalar_subqueries,
    spread_keyless_joins,
    sort_distinct_aggregates,
)


def rewritten(catalyst: Catalyst, plan: Java) -> Java:
    """An equal plan, in the form that the rules read."""
    for rewrite in REWRITES:
        plan = catalyst.read(rewrite(catalyst, plan))
    return plan
