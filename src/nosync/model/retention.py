"""What may be given up. Pure: holds in, a boundary out.

A *hold* is a reason to keep epochs: a tier that a recovery could not come back from without them, a sink that has yet to get them. A
*rule* (`Retention`) says what stays besides. Whoever gives something up asks here, and so does whoever reads what may be gone:

* the trimmer and the sweeper ask `Retention.boundary` before they delete input, and files that no record names;
* which epochs the state can still be read as of (`Retention.kept`) is asked behind the stream, recorded (`Thinned`), and from there on held
  to by readers, who refuse all others, and by the merger, which merges first where a merged layer may stand for its inputs;
* what rolls the journal up asks `boundary` with holds on records instead of epochs.

A rule is one file: a class like `EveryEpoch`.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from nosync.model.identifiers import Epoch
from nosync.model.safety import Standing

FIRST = Epoch(1)
KEEPING = "How much history stays is said by keep= of flow.start, or `nosync keep HOME`."


@dataclass(frozen=True, slots=True)
class Hold:
    """Why epochs from `first` to `last` must stay; without `last`, all from `first` on."""

    reason: str
    first: int
    last: int | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """The epochs as of which state can be read: all from `since` on, and `among` those before, in ascending order."""

    since: Epoch = FIRST
    among: tuple[Epoch, ...] = ()

    def __contains__(self, epoch: object) -> bool:
        return isinstance(epoch, int) and (epoch >= self.since or epoch in self.among)

    def stands_alone(self, lower: Epoch, upper: Epoch) -> bool:
        """Whether a layer of epochs [lower, upper) may stand for all layers within it: no epoch but its last can be asked for."""
        index = bisect_left(self.among, lower)
        return upper - 1 <= max(lower, self.since) and all(epoch >= upper - 1 for epoch in self.among[index : index + 1])

    def count(self, first: Epoch, last: Epoch) -> int:
        """How many epochs from the first to the last, both included, are kept."""
        older = bisect_left(self.among, last + 1) - bisect_left(self.among, first)
        return older + max(0, last + 1 - max(first, self.since))

    def between(self, first: Epoch, last: Epoch) -> tuple[tuple[Epoch, ...], Epoch]:
        """The epochs from the first to the last, both included, that are kept: some, and all from another on."""
        older = self.among[bisect_left(self.among, first) : bisect_left(self.among, last + 1)]
        return older, max(first, min(self.since, Epoch(last + 1)))

    def of(self, other: "Kept") -> "Kept":
        """What both keep: what was given up once does not come back."""
        either = sorted({*self.among, *other.among})
        return Kept(max(self.since, other.since), tuple(epoch for epoch in either if epoch in self and epoch in other))

    def less(self, since: Epoch, among: Iterable[Epoch], gone: Iterable[Epoch]) -> "Kept":
        """With fewer epochs: `among` those between the `since` before and the one from here on, and without `gone`."""
        return Kept(since, tuple(sorted({*self.among, *among} - set(gone))))

    def near(self, epoch: Epoch) -> list[Epoch]:
        """The kept epochs next to one that is not."""
        known = [*self.among, self.since]
        index = bisect_left(known, epoch)
        return known[max(0, index - 1) : index + 1]


ALL_EPOCHS = Kept()


class Retention(Protocol):
    """A rule. A pure value: the same questions have the same answers."""

    def kept(self, newest: Epoch, times: Mapping[Epoch, float], now: float, holds: Sequence[Hold]) -> Kept:
        """The epochs as of which the state stays readable. `times` says when they were opened, as far as that is known. An epoch that was
        given up once stays so, whatever this says."""

    def boundary(self, newest: Epoch, holds: Sequence[Hold]) -> Epoch:
        """Up to here input, and files that no record names, may be deleted."""


@dataclass(frozen=True, slots=True)
class EveryEpoch:
    """The state of every epoch is kept. Input goes once nothing holds it."""

    def kept(self, newest: Epoch, times: Mapping[Epoch, float], now: float, holds: Sequence[Hold]) -> Kept:
        return ALL_EPOCHS

    def boundary(self, newest: Epoch, holds: Sequence[Hold]) -> Epoch:
        return Epoch(boundary(newest, holds))


EVERY_EPOCH = EveryEpoch()


def not_there(epoch: int, newest: Epoch) -> str:
    """Why nobody can have an epoch that is not among those that are kept."""
    return f"is not there yet: the newest is {newest}" if epoch > newest > 0 else "is not kept"


def boundary(newest: int, holds: Iterable[Hold]) -> int:
    """All up to this epoch, or record, may be given up."""
    return min([newest, *(hold.first - 1 for hold in holds)])


def recovery_holds(tiers: Iterable[Standing]) -> list[Hold]:
    """On epochs: what a tier lacks is recomputed from input."""
    return [Hold(f"not yet safe after loss of the {tier.survives}", tier.epoch + 1) for tier in tiers]


def release_holds(released: Mapping[str, Epoch]) -> list[Hold]:
    """On epochs, by sink and the newest epoch that it has."""
    return [Hold(f'sink "{sink}" has yet to get it', epoch + 1) for sink, epoch in released.items()]


def pin_holds(pins: Mapping[str, Epoch]) -> list[Hold]:
    """On epochs that were given names."""
    return [Hold(f'pin "{name}"', epoch, epoch) for name, epoch in pins.items()]


def record_holds(tiers: Iterable[Standing]) -> list[Hold]:
    """On records: a tier that lags is joined to the others by those that it lacks."""
    return [Hold(f"not yet on the tier that survives loss of the {tier.survives}", tier.number + 1) for tier in tiers]
