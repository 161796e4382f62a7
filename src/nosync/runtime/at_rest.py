"""Compacting a home at rest: all that goes on behind a run, until nothing is left to do, without a run and without Spark.

What has closed by event time stays until a run merges: only the program knows it.
"""

from functools import partial
from pathlib import Path

from nosync.duties.merging import Merger
from nosync.duties.upkeep import Duty, Upkeep
from nosync.journal.entries import Merged
from nosync.journal.journal import Journal
from nosync.model.compaction import DEFAULT, Compaction
from nosync.model.errors import Internal
from nosync.model.identifiers import Epoch, TraceName
from nosync.model.layers import LayerInfo
from nosync.model.policies.table import policy_named
from nosync.model.sink import Terms
from nosync.recovery.check import is_whole
from nosync.store.disk import LocalDisk


class NoOutlet:
    """Nothing is delivered at rest: what a sink has yet to get is held."""

    def precise(self, sink: str) -> bool:
        raise Internal(f'sink "{sink}" was asked at rest')

    def deliver(self, sink: str, first: Epoch, last: Epoch) -> None:
        raise Internal(f'epochs {first} to {last} were delivered to sink "{sink}" at rest')


def compact(journal: Journal, home: Path, knobs: Compaction = DEFAULT) -> int:
    """Merges, folds and thins what is due, gives up what no tier needs, and deletes it. Says how many files wait for readers to end.

    Whatever lies in the home is synced, shipped and claimed as it is: all of it must be whole (see `recovery.restore.check_whole`).
    """
    declared = journal.image.declared
    if declared is None:
        return 0
    sinks = {name: Terms(sink.get("release", "safe")) for name, sink in declared.sinks.items()}
    policy, whole = policy_named(declared.policy), partial(is_whole, home)
    upkeep = Upkeep(journal, LocalDisk(home), journal.remote, sinks, NoOutlet(), {}, policy=policy, verify=whole, knobs=knobs)
    unmerged = frozenset(TraceName(sink["trace"]) for sink in declared.sinks.values() if "trace" in sink)
    merger = Merger(str(home), declared.flow, journal.run, unmerged, knobs=knobs)
    duties = [duty for name, duty in upkeep.duties().items() if not name.startswith("sink ")]
    try:
        upkeep.look_for_orphans()
        while True:
            _until_idle(duties)
            before = journal.number
            merger.merge_all(journal.image, lambda layer: _record(journal, layer), upkeep.may_go(journal.image.epoch))
            if journal.number == before:
                return len(upkeep.compactor.due)
    finally:
        merger.close()


def _until_idle(duties: list[Duty]) -> None:
    while any(duty() for duty in duties):
        pass


def _record(journal: Journal, layer: LayerInfo) -> None:
    journal.append(Merged(layer))
