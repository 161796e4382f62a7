"""Pieces of plans that let rows through by event time: those whose window is open, and those that come too late for it."""

from collections.abc import Iterable
from dataclasses import dataclass

from nosync.bridge.catalyst import Catalyst, Java
from nosync.graph.templates import Branch
from nosync.model.watermark import EventClock, Moment


@dataclass(eq=False, slots=True)
class OnTime(Branch):
    """Lets rows through whose window is open. `reader` is the name of the operator, or of its state, that late rows are counted under."""

    end: Java
    clock: EventClock
    reader: str = ""

    def filled(self, catalyst: Catalyst, below: list[Java], moment: Moment) -> Java:
        watermark = moment.watermark(self.clock)
        if watermark is None:
            return below[0]
        late = _is_late(catalyst, self.end, watermark)
        counted = catalyst.alias(catalyst.count(catalyst.when(late, catalyst.literal(1, catalyst.types.IntegerType))), "late")
        counting = catalyst.logical.CollectMetrics(f"nosync:late:{self.reader}", catalyst.seq([counted]), below[0], 0)
        kept = catalyst.expressions.Or(catalyst.expressions.IsNull(self.end), catalyst.expressions.Not(late))
        return catalyst.logical.Filter(kept, counting)


@dataclass(eq=False, slots=True)
class TooLate(Branch):
    """The rows that `OnTime` keeps out, with the epoch. `output` are the columns and the epoch, `carried` what rides along."""

    end: Java
    clock: EventClock
    output: list[Java]
    carried: list[Java]

    def filled(self, catalyst: Catalyst, below: list[Java], moment: Moment) -> Java:
        watermark = moment.watermark(self.clock)
        false = catalyst.expressions.Literal.FalseLiteral()
        late = false if watermark is None else _is_late(catalyst, self.end, watermark)
        epoch = catalyst.alias(catalyst.long(moment.epoch), "epoch", like=self.output[-1])
        return catalyst.project([*self.output[:-1], epoch, *self.carried], catalyst.logical.Filter(late, below[0]))


def _is_late(catalyst: Catalyst, end: Java, watermark: int) -> Java:
    return catalyst.expressions.LessThanOrEqual(end, catalyst.long(watermark))


def clocks(graph_pieces: Iterable[Branch]) -> Iterable[EventClock]:
    """The clocks that pieces of plans go by."""
    for piece in graph_pieces:
        if isinstance(piece, OnTime | TooLate):
            yield piece.clock
        yield from clocks(child for child in piece.children if isinstance(child, Branch))
