"""How far apart the event times of two rows of a join may be: what lets its sides expire.

A row of one side is of no use any more once all that may come on the other side is too far ahead of it. That can be said where keys, or
conditions beside them, compare event times of both sides, directly or with a fixed distance between: `a.at = b.at`, equal windows,
`b.at between a.at and a.at + interval 5 minutes`. Rows that come behind the watermark are late for such a join, as in Spark.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql.types import DayTimeIntervalType, StructType

from nosync.bridge.catalyst import Java, children, data_type, kind
from nosync.compile.event_time import SESSION, TIMED, WINDOW, is_time, marks_of
from nosync.model.duration import UNITS

UNBOUND = "neither its keys nor its condition bound event time on both sides"
ONE_SIDED = "its condition does not say how much later a row of the other side may be"
SHIFTS = 3 * UNITS["hour"]  # a day may have so much more or less than 24 hours
LEFT, RIGHT = 0, 1
Side = int


@dataclass(frozen=True, slots=True)
class Term:
    """The time in a column of a side, and a distance. `tolerance`: by how much that may be wrong, since Spark goes by local time."""

    side: Side
    index: int
    distance: int = 0
    tolerance: int = 0

    def later(self, distance: int, tolerance: int) -> "Term":
        return Term(self.side, self.index, self.distance + distance, self.tolerance + tolerance)


@dataclass(frozen=True, slots=True)
class Bounds:
    """The columns of the sides with their event times. `later`: by side, how much later a row of the other side may be than one of it;
    None where nothing says so.
    """

    columns: tuple[int, int]
    later: tuple[int | None, int | None]


def bounds_of(sides: tuple[Sequence[Java], Sequence[Java]], equal: Sequence[tuple[Java, Java]], rest: Java | None) -> Bounds | None:
    """Of a join between rows with these columns: by its pairs of equal keys, and by what else its condition says."""
    times = {_identity(a): Term(side, i) for side in (LEFT, RIGHT) for i, a in enumerate(sides[side]) if _is_event_time(a)}
    found: dict[tuple[int, int], list[int | None]] = {}
    for least, most in _inequalities(times, equal, rest):
        if least.side != most.side:
            early, late = least, most  # the time of `early` is at most that of `late`, and so much more
            distance = late.distance - early.distance + late.tolerance + early.tolerance
            pair = (early.index, late.index) if early.side == LEFT else (late.index, early.index)
            known = found.setdefault(pair, [None, None])
            before = known[late.side]
            known[late.side] = distance if before is None else min(distance, before)
    if not found:
        return None
    best = max(found, key=lambda pair: sum(bound is not None for bound in found[pair]))
    return Bounds(best, (found[best][LEFT], found[best][RIGHT]))


def _inequalities(times: dict[str, Term], equal: Sequence[tuple[Java, Java]], rest: Java | None) -> Iterator[tuple[Term, Term]]:
    """Pairs of times of which the first is at most the second."""
    for one, other in equal:
        if (left := _term(times, one)) is not None and (right := _term(times, other)) is not None:
            yield left, right
            yield right, left
    for condition in _conjuncts(rest):
        found = _compared(times, condition)
        if found is not None:
            yield found


def _conjuncts(condition: Java | None) -> Iterator[Java]:
    if condition is not None and kind(condition) == "And":
        for child in children(condition):
            yield from _conjuncts(child)
    elif condition is not None:
        yield condition


def _compared(times: dict[str, Term], condition: Java) -> tuple[Term, Term] | None:
    """The two times of an inequality, the earlier first."""
    if kind(condition) not in ("LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual"):
        return None
    less, more = children(condition) if kind(condition).startswith("Less") else children(condition)[::-1]
    if kind(less) == "SubtractTimestamps" and (most := _length(more)) is not None:  # a - b < length
        late, early = (_term(times, child) for child in children(less)[:2])
        return (late, early.later(most, SHIFTS)) if late is not None and early is not None else None
    if kind(more) == "SubtractTimestamps" and (least := _length(less)) is not None:  # length < a - b
        late, early = (_term(times, child) for child in children(more)[:2])
        return (early.later(least, SHIFTS), late) if late is not None and early is not None else None
    if isinstance(data_type(less), StructType):
        return None  # windows are compared by their starts
    one, other = _term(times, less), _term(times, more)
    return (one, other) if one is not None and other is not None else None


def _term(times: dict[str, Term], expression: Java) -> Term | None:
    """An event time, or one with a fixed distance added."""
    match kind(expression):
        case "AttributeReference":
            return times.get(_identity(expression))
        case "GetStructField" if int(expression.ordinal()) == 1 and kind(children(expression)[0]) == "AttributeReference":
            return times.get(_identity(children(expression)[0]))
        case "TimestampAddInterval" | "TimeAdd":
            time, interval = children(expression)
            found, length = _term(times, time), _length(interval)
            if found is None or length is None:
                return None
            return found.later(length, SHIFTS if abs(length) >= UNITS["day"] else 0)
    return None


def _length(interval: Java) -> int | None:
    """A fixed distance in microseconds."""
    if kind(interval) != "Literal" or not isinstance(data_type(interval), DayTimeIntervalType) or interval.value() is None:
        return None
    return int(interval.value())


def _is_event_time(attribute: Java) -> bool:
    """A session changes until one gap after its end: it is none."""
    marks, type = marks_of(attribute), data_type(attribute)
    return bool(marks & TIMED) and SESSION not in marks and (is_time(type) or (isinstance(type, StructType) and WINDOW in marks))


def _identity(attribute: Java) -> str:
    return str(attribute.exprId().toString())


def position_of(columns: Sequence[Java], attribute: Java) -> int | None:
    """Where a column stands among others."""
    named = (i for i, a in enumerate(columns) if kind(a) == "AttributeReference" and a.exprId().equals(attribute.exprId()))
    return next(named, None)


