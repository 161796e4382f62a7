"""`dropDuplicatesWithinWatermark`: its event time becomes the last of its keys, or Spark's optimiser would leave it out of what lies below
as a column that nobody asks for. The rule takes it off again.
"""

from nosync.bridge.catalyst import Catalyst, Java, children, data_type, items
from nosync.compile.event_time import TIMED, is_time, marks_of
from nosync.model.errors import Refused


def keep_time(catalyst: Catalyst, plan: Java, view: str) -> Java:
    """The node with its event time as a key."""
    below = children(plan)[0]
    times = [a for a in items(below.output()) if marks_of(a) & TIMED and is_time(data_type(a))]
    if len(times) != 1:
        names = " and ".join(str(a.name()) for a in times)
        what = f"rows with several event times, {names}" if times else "rows without an event time"
        hint = 'Give the source a watermark, flow.source(..., watermark=("at", "10 seconds")), and let the rows have that one column.'
        raise Refused(f'view "{view}" calls dropDuplicatesWithinWatermark on {what}', hint=hint)
    more = [plan.productElement(number) for number in range(2, plan.productArity())]
    return catalyst.logical.DeduplicateWithinWatermark(catalyst.seq([*items(plan.keys()), times[0]]), below, *more)


def within_all(catalyst: Catalyst, plan: Java, below: Java) -> Java:
    """The node as `dropDuplicates`, over these rows: what Spark has in batch."""
    more = [plan.productElement(number) for number in range(2, plan.productArity())]
    return catalyst.logical.Deduplicate(plan.keys(), below, *more)
