"""How a run is made durable, as the user said it."""

from dataclasses import dataclass, field

from nosync.journal.joining import NO_REMOTE
from nosync.model.duration import seconds
from nosync.model.errors import Invalid
from nosync.model.policies.log_structured import LOG_STRUCTURED, LogStructured
from nosync.model.policy import Policy


@dataclass(frozen=True, slots=True)
class Durability:
    """`remote`: where copies go; `detached`: the user said that there shall be none. `policy`: what goes there, and when. `standby`: begin
    only once no other run leads.
    """

    remote: str | None = field(default=None, repr=False)
    detached: bool = False
    policy: Policy = LOG_STRUCTURED
    standby: bool = False


DURABILITY = Durability()


def durability_of(remote: str | None, recover_within: str | None, most_unshipped_bytes: int, standby: bool = False) -> Durability:
    """Reads what `flow.start` was given."""
    if most_unshipped_bytes < 1:
        raise Invalid(f"max_unshipped_bytes={most_unshipped_bytes} would stop the stream", hint="Pass at least the bytes of some epochs.")
    detached = remote == NO_REMOTE
    within = None if recover_within is None else seconds(recover_within, "a duration for recover_within")
    policy = LogStructured(most_unshipped_bytes, within)
    return Durability(None if detached else remote, detached, policy, standby)
