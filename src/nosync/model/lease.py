"""Whether the run that leads a flow still does, as those can tell who stand by on other hosts. Pure: no store, no clock.

On the store where runs meet (the remote; without one, the home):

    leases/<generation>   `Lease`: which run leads. Replaced again and again while somebody stands by, so that it never stays the same
    standbys/<name>       `Standby`: who stands by. Replaced again and again as well

Promise: clocks of two hosts are never compared, nor is a time ever written down. Whoever watches counts by its own monotonic clock how long
an object has stayed the same. A lease only decides when a standby tries to take over; what keeps two runs apart is the generation, which
one of them creates (see `journal`): a lease that is misjudged costs a takeover and nothing else.
"""

import json
from dataclasses import asdict, dataclass

from nosync.model.errors import MALFORMED
from nosync.model.text import json_of

RENEW_SECONDS = 0.7  # between renewals: one may be lost
LEASE_SECONDS = 1.6  # unchanged for so long, the run is taken for dead
LOOK_SECONDS = 0.25  # between looks at a lease
NOTICE_SECONDS = 10.0  # between a run's looks for those who stand by: without any there is nothing to renew
ANNOUNCE_SECONDS = 4.0
FORGOTTEN_LOOKS = 6  # an announcement that stays the same for so many is removed


@dataclass(frozen=True, slots=True)
class Lease:
    """`beat` counts renewals; `ended`: the run has stopped or failed, and says so."""

    run: str
    process: int
    host: str
    beat: int
    ended: bool = False

    def to_bytes(self) -> bytes:
        return json_of(self)

    @staticmethod
    def from_bytes(content: bytes | None) -> "Lease | None":
        """None for what is missing or not ours."""
        try:
            return Lease(**json.loads(content or b""))
        except MALFORMED:
            return None


@dataclass(frozen=True, slots=True)
class Standby:
    """A process that would take over."""

    process: int
    host: str

    def announcement(self, beat: int) -> bytes:
        """`beat` counts them, so that no two are the same."""
        return json.dumps({**asdict(self), "beat": beat}, separators=(",", ":")).encode()

    @staticmethod
    def from_bytes(content: bytes | None) -> "Standby | None":
        """None for what is missing or not ours."""
        try:
            facts = json.loads(content or b"")
            return Standby(facts["process"], facts["host"])
        except MALFORMED:
            return None


@dataclass(slots=True)
class Watch:
    """What somebody who stands by has seen of the lease of one run. Times are of its own monotonic clock."""

    content: bytes | None = None
    since: float | None = None  # when it was first seen to be as it is; None for one who has seen nothing
    looked_at: float = 0.0
    renewed: bool = False  # whether it has changed since

    def over(self, content: bytes | None, begun: float, ended: float) -> bool:
        """Takes one look into account, which was under way from `begun` to `ended`, and says whether the run has lost its lease.

        Only the time between the end of the first look and the beginning of this one counts, in which the lease certainly stayed the same:
        so a look that took long, or whose answer was not heard for long, blames nobody.
        """
        if begun - self.looked_at >= ANNOUNCE_SECONDS:
            self.blind()
        self.looked_at = begun
        if self.since is None or content != self.content:
            self.renewed = self.since is not None and self.content is not None
            self.content, self.since = content, ended
        lease = Lease.from_bytes(content)
        return (lease is not None and lease.ended) or begun - self.since >= self.patience

    @property
    def patience(self) -> float:
        """A run that may not know that it is watched need not renew its lease: it has time to notice."""
        return LEASE_SECONDS if self.renewed else NOTICE_SECONDS + LEASE_SECONDS

    @property
    def over_at(self) -> float | None:
        """When a look would find the lease over, if it stays the same."""
        return None if self.since is None else self.since + self.patience

    def blind(self) -> None:
        """A look has failed, or there was none for long. What kept this host from looking may have kept the other from renewing; and it
        kept this one from announcing itself, so that the other may count on nobody any more.
        """
        self.since, self.renewed = None, False


@dataclass(slots=True)
class Roll:
    """Who stands by, as the run that leads sees it, a look at a time."""

    seen: dict[str, bytes]
    unchanged: dict[str, int]

    @staticmethod
    def empty() -> "Roll":
        return Roll({}, {})

    def look(self, contents: dict[str, bytes]) -> None:
        """`contents` by name. Who has not announced itself since the last look is gone, until it does again."""
        same = {name for name, content in contents.items() if self.seen.get(name) == content}
        self.unchanged = {name: self.unchanged[name] + 1 if name in same else 0 for name in contents}
        self.seen = dict(contents)

    @property
    def present(self) -> tuple[Standby, ...]:
        known = [Standby.from_bytes(self.seen[name]) for name, looks in sorted(self.unchanged.items()) if not looks]
        return tuple(one for one in known if one is not None)

    @property
    def forgotten(self) -> list[str]:
        return [name for name, looks in self.unchanged.items() if looks >= FORGOTTEN_LOOKS]
