"""When what lies behind the stream is put together, in words that users of Kafka and Samza know. Pure.

A *segment* is what was written since the last time that something was put together: of a range of a trace its leaf layers, of the journal
its records. It is closed once it has the `segment size`, or its oldest epoch is older than the newest by the `segment age`; only closed
segments are folded, or rolled up. A layer is written anew once it is dirty: the `dirty ratio` is the part of it that no kept epoch needs,
or the part of the rows of a range that closed newer layers have.

Promise: whatever is set here, no answer changes: only when work is done, how many files there are, and how many bytes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from nosync.model.arguments import did_you_mean
from nosync.model.duration import seconds
from nosync.model.errors import Invalid
from nosync.model.identifiers import NO_EPOCH, Epoch
from nosync.model.sizes import bytes_of

DIRTY_RATIO = 0.5
KNOBS = ("segment size", "segment age", "dirty ratio")
Knobs = Mapping[str, str | int | float]


@dataclass(frozen=True, slots=True)
class Compaction:
    """None is the default: segments close by their number of files or records; what newer layers replace is merged by size."""

    segment_bytes: int | None = None
    segment_seconds: float | None = None
    dirty_ratio: float | None = None

    @property
    def by_segment(self) -> bool:
        return self.segment_bytes is not None or self.segment_seconds is not None

    @property
    def dirty(self) -> float:
        """The share of the versions of a layer that no kept epoch needs any more, from which on it is written anew."""
        return DIRTY_RATIO if self.dirty_ratio is None else self.dirty_ratio

    def closes(self, size: int, age: float) -> bool:
        """Whether a segment of so many bytes, whose oldest epoch is so many seconds older than the newest, is closed."""
        by_size = self.segment_bytes is not None and size >= self.segment_bytes
        return by_size or (self.segment_seconds is not None and age >= self.segment_seconds)

    def is_dirty(self, newer_rows: int, rows: int) -> bool:
        """Whether newer layers have so much of a range that it is merged whole."""
        return self.dirty_ratio is not None and newer_rows >= self.dirty_ratio * rows > 0


DEFAULT = Compaction()


@dataclass(frozen=True, slots=True)
class Ages:
    """How much older epochs are than the newest, by the times when they were opened. What nobody knows the time of is old."""

    times: Mapping[Epoch, float] = field(default_factory=dict)
    newest: Epoch = NO_EPOCH

    def of(self, epoch: Epoch) -> float:
        return self.times.get(self.newest, 0.0) - self.times.get(epoch, 0.0)


NO_AGES = Ages()


def compaction_of(knobs: Knobs | None) -> Compaction:
    """Reads what was passed as `compaction=`."""
    knobs = knobs or {}
    for name in knobs:
        if name not in KNOBS:
            said = ", ".join(f'"{one}"' for one in KNOBS)
            raise Invalid(f'compaction has no knob "{name}"', hint=f"{did_you_mean(str(name), KNOBS)}There are {said}.")
    size, age, ratio = (knobs.get(name) for name in KNOBS)
    found = Compaction(
        None if size is None else bytes_of(size, "a segment size"),
        None if age is None else seconds(str(age), "a segment age"),
        None if ratio is None else _ratio(ratio),
    )
    if 0 in (found.segment_bytes, found.segment_seconds):
        raise Invalid("compaction would close segments before anything is in them", hint="Pass a size and an age of more than nothing.")
    return found


def _ratio(said: object) -> float:
    try:
        found = float(str(said))
    except ValueError:
        found = 0.0
    if not 0 < found < 1:
        hint = "Pass 0.5 to rewrite what is half dirty; less takes fewer bytes, and more work."
        raise Invalid(f"dirty ratio {said} is not between 0 and 1", hint=hint)
    return found
