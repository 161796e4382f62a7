"""Joins without an equal key that need not have one key for all.

Where one side has one row at most, there are `SPREAD` copies of that row, and the rows of the other side are spread over them by
hash: a join on the number of the copy, like any other. `not in` with one column becomes a join on the key and one with a row that says what
nulls and emptiness on the right mean for everybody.
"""

from nosync.bridge.catalyst import Catalyst, Java, children, items, kind

SPREAD = 64  # the upper 6 bits of a hash of 32
LEFT_MANY = ("Inner", "Cross", "LeftOuter", "LeftSingle", "LeftSemi", "LeftAnti", "ExistenceJoin")
RIGHT_MANY = ("Inner", "Cross", "RightOuter")


def spread_keyless_joins(catalyst: Catalyst, plan: Java) -> Java:
    """The same query with such joins spread."""
    before = children(plan)
    after = [spread_keyless_joins(catalyst, child) for child in before]
    if any(one is not other for one, other in zip(before, after, strict=True)):
        plan = catalyst.with_children(plan, after)
    if kind(plan) != "Join" or catalyst.equi_join_keys(plan) is not None:
        return plan
    keys = catalyst.null_aware_key(plan)
    if keys is not None:
        return _not_in(catalyst, plan, *keys)
    sort, (left, right) = kind(plan.joinType()).rstrip("$"), children(plan)
    if sort in LEFT_MANY and _one_row(right):
        left, right, same_copy = with_copies(catalyst, left, right, items(right.output()))
    elif sort in RIGHT_MANY and _one_row(left):
        right, left, same_copy = with_copies(catalyst, right, left, items(left.output()))
    else:
        return plan
    condition = catalyst.expressions.And(same_copy, plan.condition().get()) if plan.condition().isDefined() else same_copy
    joined = catalyst.logical.Join(left, right, plan.joinType(), catalyst.option(condition), plan.hint())
    return catalyst.project(items(plan.output()), joined)


def _one_row(plan: Java) -> bool:
    most = plan.maxRows()
    return bool(most.isDefined()) and int(most.get()) <= 1


def with_copies(catalyst: Catalyst, many: Java, one: Java, columns: list[Java]) -> tuple[Java, Java, Java]:
    """Both sides with the number of a copy, and the condition that they are equal; the one row's columns come under these attributes."""
    types, output = catalyst.types, items(many.output())
    hashed = catalyst.expressions.Murmur3Hash(catalyst.seq(output or [catalyst.null(types.IntegerType)]), 42)
    chosen = catalyst.alias(catalyst.expressions.ShiftRightUnsigned(hashed, catalyst.literal(26, types.IntegerType)), "chosen")
    copy = catalyst.attribute("copy", types.IntegerType, nullable=False)
    copies = [catalyst.seq([*items(one.output()), catalyst.literal(i, types.IntegerType)]) for i in range(SPREAD)]
    copied = catalyst.logical.Expand(catalyst.seq(copies), catalyst.seq([*columns, copy]), one)
    return catalyst.project([*output, chosen], many), copied, catalyst.expressions.EqualTo(chosen.toAttribute(), copy)


def _not_in(catalyst: Catalyst, plan: Java, key: Java, other: Java) -> Java:
    """Without rows on the right everybody stays; with a null there nobody does; else those stay who have a key without a match."""
    left, right = children(plan)
    expressions = catalyst.expressions
    rows, known = catalyst.alias(catalyst.count(), "rows"), catalyst.alias(catalyst.count(other), "known")
    counts = catalyst.logical.Aggregate(catalyst.seq([]), catalyst.seq([rows, known]), right, catalyst.none)
    rows, known = rows.toAttribute(), known.toAttribute()
    nothing = catalyst.alias(expressions.EqualTo(rows, catalyst.zero), "nothing")
    unknown = catalyst.alias(expressions.Not(expressions.EqualTo(rows, known)), "unknown")
    facts = catalyst.project([nothing, unknown], counts)
    spread, facts, same_copy = with_copies(catalyst, left, facts, items(facts.output()))
    asked = expressions.And(expressions.Not(unknown.toAttribute()), expressions.IsNotNull(key))
    staying = catalyst.logical.Filter(expressions.Or(nothing.toAttribute(), asked), catalyst.join(spread, facts, "Inner", same_copy))
    joined = catalyst.join(catalyst.project(items(left.output()), staying), right, "LeftAnti", expressions.EqualTo(key, other))
    return catalyst.project(items(plan.output()), joined)
