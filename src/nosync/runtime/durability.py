"""How a run is made durable, as the user said it."""

import re
from dataclasses import dataclass, field

from nosync.journal.joining import NO_REMOTE
from nosync.model.errors import Invalid
from nosync.model.policies.log_structured import LOG_STRUCTURED, LogStructured
from nosync.model.policy import Policy

UNITS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class Durability:
    """`remote`: where copies go; `detached`: the user said that there shall be none. `policy`: what goes there, and when."""

    remote: str | None = field(default=None, repr=False)
    detached: bool = False
    policy: Policy = LOG_STRUCTURED


DURABILITY = Durability()


def durability_of(remote: str | None, recover_within: str | None, most_unshipped_bytes: int) -> Durability:
    """Reads what `flow.start` was given."""
    if most_unshipped_bytes < 1:
        raise Invalid(f"max_unshipped_bytes={most_unshipped_bytes} would stop the stream", hint="Pass at least the bytes of some epochs.")
    detached = remote == NO_REMOTE
    policy = LogStructured(most_unshipped_bytes, _seconds(recover_within) if recover_within is not None else None)
    return Durability(None if detached else remote, detached, policy)


def _seconds(recover_within: str) -> float:
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h)\s*", recover_within)
    if match is None:
        raise Invalid(f'recover_within="{recover_within}" is no duration', hint='Pass "500ms", "5s" or "2m".')
    return float(match[1]) * UNITS[match[2]]
