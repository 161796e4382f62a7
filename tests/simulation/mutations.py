"""Ways to break the contract: each takes one fence, fsync, boundary or intent away. The simulation must notice every one of them."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from nosync.duties import compacting, release, trimming, upkeep
from nosync.duties.compacting import Compactor
from nosync.journal import chain, forgetting
from nosync.journal.journal import Journal
from nosync.journal.names import RECORDS, RUNS
from nosync.journal.rolling import Roller
from nosync.model.identifiers import Epoch
from nosync.model.policies.log_structured import LogStructured
from nosync.model.retention import Kept, release_holds
from nosync.tiers.reader_leases import Lease, Leases
from nosync.tiers.sweeper import Sweeper

from . import life
from .places import Cache, Link

Mutation = Callable[[], Any]
MUTATIONS: dict[str, tuple[Mutation, int]] = {}  # what is taken away, and a seed that is likely to notice


def mutation(likely: int) -> Callable[[Mutation], Mutation]:
    def register(make: Mutation) -> Mutation:
        MUTATIONS[make.__name__.replace("_", " ")] = (make, likely)
        return make

    return register


def _blind(kind: type, method: str, when: Callable[[str], bool], answer: Any) -> Any:
    """A store that gives one answer for some names."""
    plain = getattr(kind, method)

    def changed(self: Any, name: Any, *rest: Any) -> Any:
        return answer(self, name, *rest) if when(name) else plain(self, name, *rest)

    return patch.object(kind, method, changed)


@mutation(70)
def the_home_is_not_asked_for_newer_runs() -> Any:
    return _blind(Cache, "exists", lambda name: name.startswith(RUNS), lambda *_: False)


@mutation(66)
def the_remote_is_not_asked_for_newer_runs() -> Any:
    return _blind(Link, "exists", lambda name: name.startswith(RUNS), lambda *_: False)


@mutation(20)
def records_overwrite_each_other_in_the_home() -> Any:
    return _blind(Cache, "create", lambda name: name.startswith(RECORDS), lambda self, name, content: self.replace(name, content))


@mutation(172)
def records_overwrite_each_other_on_the_remote() -> Any:
    return _blind(Link, "create", lambda name: name.startswith(RECORDS), lambda self, name, content: self.replace(name, content))


@mutation(111)
def the_chain_of_digests_is_not_followed() -> Any:
    plain = chain.decode
    return patch.object(chain, "decode", lambda content, number, previous: plain(content, number, None))


def _unsynced(method: str, when: Callable[[str], bool]) -> Any:
    plain = getattr(Cache, method)
    return patch.object(Cache, method, lambda self, names: plain(self, [name for name in names if not when(name)]))


@mutation(0)
def layers_are_not_synced() -> Any:
    return _unsynced("sync_files", lambda name: name.startswith("layers/"))


@mutation(0)
def folders_of_layers_are_not_synced() -> Any:
    return _unsynced("sync_folders", lambda name: name.startswith("layers/"))


@mutation(25)
def input_is_not_synced() -> Any:
    return _unsynced("sync_files", lambda name: name.startswith("input/"))


@mutation(22)
def folders_of_input_are_not_synced() -> Any:
    return _unsynced("sync_folders", lambda name: name.startswith("input/"))


@mutation(2)
def records_are_not_synced() -> Any:
    return _unsynced("sync_files", lambda name: name.startswith("journal/records/"))


@mutation(0)
def the_folder_of_records_is_not_synced() -> Any:
    return _unsynced("sync_folders", lambda name: name.startswith("journal/records/"))


@mutation(15)
def rollups_are_not_synced() -> Any:
    return _unsynced("sync_files", lambda name: name.startswith("journal/rollups/"))


@mutation(15)
def the_folder_of_rollups_is_not_synced() -> Any:
    return _unsynced("sync_folders", lambda name: name.startswith("journal/rollups/"))


@mutation(15)
def segments_are_not_synced() -> Any:
    return _unsynced("sync_files", lambda name: name.startswith("journal/segments/"))


@mutation(15)
def the_folder_of_segments_is_not_synced() -> Any:
    return _unsynced("sync_folders", lambda name: name.startswith("journal/segments/"))


@mutation(15)
def what_is_left_of_segments_is_not_synced() -> Any:
    return _unsynced("sync_files", lambda name: name.startswith("journal/openings/"))


@mutation(1)
def nothing_is_left_of_segments() -> Any:
    return patch.object(forgetting, "text_of", lambda *given: b"")


@mutation(1)
def segments_are_given_up_before_what_is_left_is_on_the_remote() -> Any:
    return _blind(Link, "replace", lambda name: name.startswith("journal/openings/"), lambda *_: None)


@mutation(1)
def input_is_not_shipped() -> Any:
    return _blind(Link, "upload", lambda name: name.startswith("input/"), lambda *_: 0)


@mutation(11)
def layers_are_not_shipped() -> Any:
    return _blind(Link, "upload", lambda name: name.startswith("layers/"), lambda *_: 0)


@mutation(29)
def the_remote_is_believed_before_it_is_synced() -> Any:
    return patch.object(Link, "trust", lambda self: None)


@mutation(8)
def torn_layers_are_believed() -> Any:
    return patch.object(life, "doubtful", lambda *_: frozenset())


@mutation(56)
def no_intent_is_recorded_before_a_release() -> Any:
    def intend(self: Any, sink: str, done: int) -> bool:
        due = min(self.due(sink), done + 1)
        self.intended[sink] = release.Intent(due)
        return bool(due > done)

    return _both(patch.object(release.Releaser, "_intend", intend), patch.object(Journal, "look", lambda self: None))


@mutation(1)
def an_intent_need_not_be_on_the_remote() -> Any:
    def step(self: Any, sink: str) -> bool:
        shipped, self.journal.shipped = self.journal.shipped, 1 << 60
        try:
            return bool(plain(self, sink))
        finally:
            self.journal.shipped = shipped

    plain = release.Releaser.step
    return _both(patch.object(release.Releaser, "step", step), _away_unasked_by_look())


def _away_unasked_by_look() -> Any:
    def look(self: Any) -> None:
        self.resolve()

    return patch.object(Journal, "look", look)


@mutation(2)
def output_is_released_as_soon_as_it_is_computed() -> Any:
    return patch.object(LogStructured, "releasable", lambda self, kind, computed, *_: computed)


@mutation(0)
def epochs_are_passed_over_that_change_something() -> Any:
    def changed(self: Any, sink: str, done: int, last: int) -> Any:
        return found if (found := plain(self, sink, done, last)) == last else None

    plain = release.Releaser._next
    return patch.object(release.Releaser, "_next", changed)


@mutation(61)
def input_is_trimmed_before_it_is_safe() -> Any:
    return patch.object(LogStructured, "input_holds", lambda self, tiers: [])


@mutation(3)
def input_is_trimmed_before_it_is_released() -> Any:
    return patch.object(upkeep, "release_holds", lambda released: [])


@mutation(0)
def input_is_trimmed_before_the_boundary_is_recorded() -> Any:
    def step(self: Any, source: str) -> bool:
        image = self.journal.image
        due = self.boundary(image.epoch)
        if due <= self.trimmed[source]:
            return False
        for epoch, entry in image.opened.items():
            if epoch <= due and source in entry.slices:
                self.sources[source](entry.slices[source])
        self.trimmed[source] = due
        return True

    return patch.object(trimming.Trimmer, "_step", step)


@mutation(56)
def files_of_newer_runs_are_swept() -> Any:
    return patch("nosync.tiers.sweeper.sweepable", lambda name, generation, epoch: True)


@mutation(12)
def swept_without_a_boundary() -> Any:
    def look(self: Any, image: Any) -> int:
        known = {layer.path for layer in image.newest_layers()}
        for name in self.store.sizes("layers"):
            if name not in known:
                self.store.delete(name)
        return 0

    return patch.object(Sweeper, "look", look)


@mutation(4)
def records_are_rolled_up_before_every_tier_has_them() -> Any:
    plain = Roller.step
    return patch.object(Roller, "step", lambda self, everywhere: plain(self, 1 << 60))


@mutation(0)
def layers_are_given_up_whatever_is_kept() -> Any:
    plain = compacting.needed
    return patch.object(compacting, "needed", lambda layers, kept, *rest: plain(layers, Kept(Epoch(1 << 40)), *rest))


@mutation(62)
def leases_hold_nothing() -> Any:
    return patch.object(Leases, "oldest", lambda self: None)


@mutation(62)
def leases_that_are_renewed_end_all_the_same() -> Any:
    return patch.object(Lease, "renew", lambda self, record: setattr(self, "until", self.now() + self.seconds))


@mutation(0)
def leaves_are_given_up_before_they_are_safe() -> Any:
    plain = Compactor._without_use

    def blind(self: Any, image: Any) -> Any:
        floor, self.floor = self.floor, lambda newest: newest
        try:
            return plain(self, image)
        finally:
            self.floor = floor

    return patch.object(Compactor, "_without_use", blind)


def _floor(holds: Callable[[Any], Any]) -> Any:
    """Of compaction, with some of its holds alone."""
    plain = Compactor._without_use

    def changed(self: Any, image: Any) -> Any:
        floor, upkeep = self.floor, self.floor.__self__
        self.floor = lambda newest: upkeep.rule().boundary(newest, holds(upkeep))
        try:
            return plain(self, image)
        finally:
            self.floor = floor

    return patch.object(Compactor, "_without_use", changed)


@mutation(0)
def outputs_are_given_up_before_sinks_have_them() -> Any:
    return _floor(lambda upkeep: upkeep.policy.input_holds(upkeep.standings()))


@mutation(47)
def leaves_are_given_up_before_tiers_have_them() -> Any:
    return _floor(lambda upkeep: release_holds({sink: upkeep.journal.image.released.get(sink, 0) for sink in upkeep.releaser.sinks}))


@mutation(0)
def pins_hold_nothing() -> Any:
    return patch.object(upkeep, "pin_holds", lambda pins: [])


@mutation(119)
def a_stand_in_is_taken_before_it_is_synced() -> Any:
    return patch.object(Compactor, "_unsynced", lambda self: set())


@contextmanager
def _both(*patches: Any) -> Iterator[None]:
    with ExitStack() as stack:
        for one in patches:
            stack.enter_context(one)
        yield
