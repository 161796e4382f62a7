"""What was promised so far in a history, and whether it is kept: safe points, openings on a tier, what sinks have, what may be trimmed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nosync.journal.entries import Opened
from nosync.journal.image import Image
from nosync.journal.past import TieredReader, openings
from nosync.model.safety import Standing
from nosync.recovery.restore import Recovered

from .places import Peek
from .program import HALVES
from .world import Broken

if TYPE_CHECKING:
    from .history import History
    from .life import Life


class Promises:
    """By kind of failure: `claims` are the newest safe points reported, `reported` all of them, `opened` the last epoch whose opening is on
    the tier. `content` is what each epoch has taken, `rolled` what was rolled in it.
    """

    def __init__(self, history: History) -> None:
        self.history = history
        self.claims: dict[str, int] = {}
        self.reported: dict[str, frozenset[int]] = {}
        self.opened: dict[str, int] = {}
        self.content: dict[int, str] = {}
        self.rolled: dict[int, str] = {}

    def copied(self, history: History) -> Promises:
        other = Promises(history)
        other.claims, other.reported, other.opened = dict(self.claims), dict(self.reported), dict(self.opened)
        other.content, other.rolled = dict(self.content), dict(self.rolled)
        return other

    def note(self, life: Life) -> None:
        """Whatever a run says of itself now. Of one that is fenced or left behind and does not know it, only what it says of the remote is
        worth anything.
        """
        if not life.ready or life.journal is None or life.journal.fenced is not None or life.journal.lock.owner is not None:
            return
        image, current = life.journal.image, life.current and life.host is self.history.host
        host, layers = life.upkeep.host, life.upkeep.layers
        news = image.number, life.journal.shipped, host.number, (layers.objects, layers.number) if layers else (), current
        if news == life.last_news:
            return
        life.last_news = news
        standings = life.upkeep.standings()
        safe = life.upkeep.policy.safe_points(image.epoch, standings)
        for kind in safe if current else ("site",) if "site" in safe else ():
            self.claim(kind, safe[kind])
        known = image.last_opened if current else safe.get("site", 0)
        for epoch, entry in image.opened.items():
            if epoch <= known:
                self.content.setdefault(epoch, json.dumps(entry.slices))
        if current:
            self.rolled |= rolls(image)
            self._note_openings(standings, image)

    def _note_openings(self, standings: Sequence[Standing], image: Image) -> None:
        numbers = {"process": image.number} | {tier.survives: tier.number for tier in standings}
        for kind, number in numbers.items():
            there = next((epoch for epoch in sorted(image.opened_in, reverse=True) if image.opened_in[epoch] <= number), 0)
            self.opened[kind] = max(self.opened.get(kind, 0), there)

    def claim(self, kind: str, epoch: int) -> None:
        kind = "process" if kind == "executor" else kind  # one ends with the other
        self.claims[kind] = max(self.claims.get(kind, 0), epoch)
        self.reported[kind] = self.reported.get(kind, frozenset()) | {epoch}

    def expect(self, failure: str) -> None:
        """Only what was claimed to survive is asked for from here on."""
        left = self.survivors(failure)
        self.reported = {kind: epochs & left for kind, epochs in self.reported.items()}
        claimed, opened = self.claims.get(failure, 0), self.opened.get(failure, 0)
        self.claims = {kind: min(epoch, claimed) for kind, epoch in self.claims.items()}
        self.opened = {kind: min(epoch, opened) for kind, epoch in self.opened.items()}
        kept = max(claimed, opened, self.delivered)
        self.content = {epoch: text for epoch, text in self.content.items() if epoch <= kept}
        self.rolled = {epoch: text for epoch, text in self.rolled.items() if epoch <= max(claimed, self.history.sinks["other"].last)}

    def survivors(self, failure: str) -> frozenset[int]:
        """The epochs that were ever reported to survive a failure, or a worse one."""
        worse = ("process", "host", "site")
        return frozenset().union(*(self.reported.get(kind, frozenset()) for kind in worse[worse.index(failure) :]))

    @property
    def delivered(self) -> int:
        return max(sink.last for sink in self.history.sinks.values())

    def check_recovery(self, done: Recovered) -> None:
        """What was safe is taken from the log."""
        if done.missing_from and not self.history.rotten and done.missing_from <= self.claims.get("process", 0):
            raise Broken(f"epoch {done.missing_from} was missing although {self.claims} were safe")

    def check_state(self, life: Life) -> None:
        """What a run starts from is what was promised."""
        assert life.journal is not None
        image = life.journal.image
        promised = max(self.claims.get("process", 0), self.opened.get("process", 0), self.delivered)
        if image.last_opened < promised:
            raise Broken(f"epoch {promised} was promised or delivered; the flow is back at {image.epoch}, opened {image.last_opened}")
        if image.epoch < self.claims.get("process", 0):
            raise Broken(f"epoch {self.claims['process']} was safe; the flow is back at {image.epoch}")
        for entry in self.openings(life):
            known = self.content.get(entry.epoch)
            if known is not None and json.dumps(entry.slices) != known:
                raise Broken(f"epoch {entry.epoch} had {known} and now has {entry.slices}")
        for epoch, text in rolls(image).items():
            if self.rolled.get(epoch, text) != text and epoch <= self.claims.get("process", 0):
                raise Broken(f"what was rolled in epoch {epoch} was rolled again")

    def openings(self, life: Life) -> list[Opened]:
        """Every epoch of the one history, from the journal."""
        assert life.journal is not None
        remote = self.history.remote
        reader = TieredReader(Peek(life.disk), Peek(remote) if remote else None)  # type: ignore[arg-type]
        return openings(reader, life.journal.base, life.journal.after(life.journal.base))

    def check_trim(self, life: Life, slice: dict[str, Any]) -> None:
        """Called by the source when it is told to let go."""
        assert life.journal is not None
        image = life.journal.image
        known = image.opened.items() if any(entry.slices.get("lasting") == slice for entry in image.opened.values()) else ()
        found = [epoch for epoch, entry in known if entry.slices.get("lasting") == slice]
        found = found or [entry.epoch for entry in self.openings(life) if entry.slices.get("lasting") == slice]
        if not found:
            raise Broken(f"{slice} is trimmed and was never taken")
        if image.trimmed.get("lasting", 0) < found[0]:
            raise Broken(f"epoch {found[0]} is trimmed and no record says so")
        for name, sink in self.history.sinks.items():
            if any(life.output(name, epoch) for epoch in range(sink.last + 1, found[0] + 1)):
                raise Broken(f"epoch {found[0]} is trimmed before {name} has it")


def rolls(image: Image) -> dict[int, str]:
    """What was rolled in each epoch, by the checksum of its record."""
    return {layer.lower: layer.checksum for layer in image.traces.get("rolls", {}).get(HALVES[0], ())}
