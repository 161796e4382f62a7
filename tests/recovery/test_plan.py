"""The plan of a recovery: what is there is taken, what is missing is recomputed, from where the state before it can be read."""

from dataclasses import replace

from nosync.journal.entries import Computed, Entry, Merged, Opened, Released, Restored, Skipped, TakenOver, Trimmed
from nosync.journal.image import Image, fold
from nosync.model.identifiers import NO_EPOCH, Epoch
from nosync.model.layers import LayerInfo
from nosync.model.shards import shard_ranges
from nosync.recovery.plan import Plan, Shape, plan
from nosync.recovery.recompute import Recompute
from nosync.recovery.survey import Survey

HALVES = shard_ranges(2)

SHAPE = Shape({"a": frozenset(["a"]), "b": frozenset(["a", "b"]), "out": frozenset(["a", "b", "out"])}, {"out": "sink"})


def layer(trace: str, shard: int, lower: int, upper: int | None = None) -> LayerInfo:
    upper = upper or lower + 1
    return LayerInfo(trace, HALVES[shard], lower, upper, "upserts", f"{trace}/{shard}/{lower}-{upper}", 1, 10, "x")


def history(epochs: int, *more: Entry, files: bool = False) -> Image:
    """Operator a feeds b feeds the sink; every epoch changes two shards of each, and one of the sink."""
    return fold([*entries_of(epochs, files), *more])


def entries_of(epochs: int, files: bool = False) -> list[Entry]:
    entries: list[Entry] = []
    for epoch in range(1, epochs + 1):
        layers = tuple(layer(trace, shard, epoch) for trace in ("a", "b") for shard in (0, 1))
        entries.append(Opened(epoch, 0.0, {"s": {}}, {f"input/{epoch}": "mark"} if files else {}))
        entries.append(Computed(epoch, (*layers, layer("out", 0, epoch)), {}, {}))
    return entries


def planned(image: Image, home: set[str], remote: set[str] | None = None, shape: Shape = SHAPE) -> Plan | None:
    return plan(image, Survey(frozenset(home), frozenset(remote or ())), shape)


def everything(image: Image) -> set[str]:
    return {one.path for one in image.layers()}


DELIVERED = Released("sink", 9)


def test_nothing_is_done_where_nothing_is_missing() -> None:
    image = history(3, DELIVERED)
    assert planned(image, everything(image)) == Plan(3, 3)


def test_what_the_remote_has_is_fetched() -> None:
    image = history(3, DELIVERED)
    found = planned(image, everything(image) - {"a/0/2-3"}, {"a/0/2-3", "b/1/1-2"})
    assert found == Plan(3, 3, fetch=("a/0/2-3",))


def test_one_lost_layer_is_one_shard_of_one_epoch() -> None:
    image = history(3, DELIVERED)
    found = planned(image, everything(image) - {"a/1/2-3"})
    assert found is not None and found.jobs == (Recompute(2, 2, {"a": frozenset([HALVES[1]])}),) and found.lost == ("a/1/2-3",)


def test_neighbouring_losses_become_one_job() -> None:
    image = history(5, DELIVERED)
    found = planned(image, everything(image) - {"a/1/2-3", "a/0/3-4", "a/1/4-5"})
    assert found is not None and found.jobs == (Recompute(2, 4, {"a": frozenset(HALVES)}),)


def test_a_lost_merged_layer_is_replaced_by_its_inputs() -> None:
    image = history(4, Merged(layer("a", 0, 1, 4)), DELIVERED)
    found = planned(image, everything(image) - {"a/0/1-4"})
    assert found is not None and not found.jobs
    assert {one.path for one in found.found if one.trace == "a" and one.range == HALVES[0]} == {f"a/0/{e}-{e + 1}" for e in (1, 2, 3, 4)}


def test_a_job_begins_where_the_state_before_it_can_be_read() -> None:
    image = history(5, Merged(layer("a", 0, 2, 5)), DELIVERED)
    gone = {"b/0/4-5", "a/0/2-3", "a/0/3-4", "a/0/4-5"}  # of a, shard 0, only the merged layer of epochs 2 to 4 is left
    found = planned(image, everything(image) - gone)
    assert found is not None and [(job.first, job.last) for job in found.jobs] == [(2, 4)]


def test_outputs_that_a_sink_has_yet_to_get_are_recomputed_epoch_by_epoch_with_all_that_feeds_them() -> None:
    image = history(4, Merged(layer("a", 1, 2, 5)), Released("sink", 1))
    gone = {"out/0/2-3", "out/0/3-4", "a/1/2-3", "a/1/3-4", "a/1/4-5"}
    found = planned(image, everything(image) - gone)
    both = frozenset(HALVES)
    assert found is not None
    assert found.jobs == tuple(Recompute(epoch, epoch, {"a": both, "b": both, "out": frozenset([HALVES[0]])}) for epoch in (2, 3))


def test_what_depends_on_the_cut_into_epochs_is_recomputed_epoch_by_epoch_with_all_that_feeds_it() -> None:
    image, both = history(4, DELIVERED), frozenset(HALVES)
    gone = {"b/0/2-3", "b/0/3-4"}
    found = planned(image, everything(image) - gone, shape=Shape(SHAPE.feeders, SHAPE.sinks, frozenset(["a"])))
    assert found is not None and found.jobs == tuple(Recompute(epoch, epoch, {"a": both, "b": both}) for epoch in (2, 3))
    found = planned(image, everything(image) - {"b/0/2-3"}, shape=Shape(SHAPE.feeders, SHAPE.sinks, frozenset(["a"])))
    assert found is not None and found.jobs == (Recompute(2, 2, {"b": frozenset([HALVES[0]])}),)


# a is not deterministic: what it emitted is recorded under "emitted", and b stands on that
UNSURE = Shape(
    {"a": frozenset(["a"]), "emitted": frozenset(["a", "emitted"]), "b": frozenset(["emitted", "b"])}, {"b": "sink"},
    stepwise=frozenset(["a", "emitted"]), unrepeatable=frozenset(["a", "emitted"]), records=frozenset(["emitted"]),
)  # fmt: skip


def imported(epochs: int) -> Image:
    """The first epoch is imported state, of a and of b; no trace has anything before it."""
    first = Opened(Epoch(1), 0.0, {"s": {}}, {"input/~imported/1": "mark"}, "a checkpoint", {"a": ["input/~imported/1"]})
    begun = TakenOver(NO_EPOCH, (), {"a": Epoch(1), "b": Epoch(1)}, False, {})
    return fold([*(first if entry == Opened(Epoch(1), 0.0, {"s": {}}, {}) else entry for entry in entries_of(epochs)), begun, DELIVERED])


def test_from_imported_state_on_epochs_are_recomputed_one_by_one() -> None:
    """What it changes in b is in the state that was imported for b: in one job with later epochs it would count twice."""
    image = imported(3)
    there = everything(image) | {"input/~imported/1"}
    found = planned(image, there - {f"b/0/{epoch}-{epoch + 1}" for epoch in (1, 2, 3)})
    assert found is not None and [(job.first, job.last) for job in found.jobs] == [(1, 1), (2, 2), (3, 3)]
    assert all({*job.targets} == {"a", "b"} for job in found.jobs)
    later = planned(image, there - {"b/0/2-3", "b/0/3-4"})
    assert later is not None and [(job.first, job.last) for job in later.jobs] == [(2, 3)]


def test_no_way_leads_back_behind_imported_state() -> None:
    image = imported(1)
    assert planned(image, everything(image) - {"a/0/1-2"}) is None


def unsure(doubted: set[str], gone: set[str], *more: Entry, epochs: int = 3) -> Plan | None:
    """The plan where these layers are gone, some of them before they were safe."""
    entries: list[Entry] = []
    for epoch in range(1, epochs + 1):
        layers = tuple(layer(trace, shard, epoch) for trace in ("a", "emitted", "b") for shard in (0, 1))
        entries += [Opened(epoch, 0.0, {"s": {}}), Computed(epoch, layers, {}, {})]
    image = fold([*entries, Merged(layer("emitted", 0, 1, 3)), *more])
    return plan(image, Survey(frozenset(everything(image) - gone), frozenset(), frozenset(doubted)), UNSURE)


def test_what_stands_on_a_record_is_recomputed_from_it_and_nothing_above() -> None:
    found, both = unsure(set(), {"b/0/2-3", "b/1/3-4"}), frozenset(HALVES)
    assert found is not None and found.jobs == tuple(Recompute(epoch, epoch, {"b": both}) for epoch in (2, 3))


def test_what_cannot_be_computed_again_is_not_papered_over() -> None:
    assert unsure(set(), {"a/0/3-4"}) is None
    assert unsure(set(), {"emitted/1/2-3"}) is None
    assert unsure(set(), {"b/0/2-3", "emitted/0/2-3"}) is None  # the merged layer there holds both epochs as one


def test_what_was_lost_before_it_was_safe_comes_out_anew_on_the_same_input() -> None:
    found = unsure({"a/0/2-3", "a/0/3-4", "b/0/3-4"}, {"a/0/2-3", "b/0/3-4"})
    assert found is not None and (found.epoch, found.opened, found.jobs) == (1, 3, ())
    assert unsure({"a/0/3-4"}, {"a/0/2-3"}) is None


def test_back_at_an_epoch_inside_a_layer_that_stands_for_lost_ones_its_state_is_computed_again() -> None:
    leaves = tuple(f"a/0/{epoch}-{epoch + 1}" for epoch in (1, 2, 3))
    image = history(4, Merged(layer("a", 0, 1, 4)), Restored(leaves, ()), DELIVERED, files=True)
    there = everything(image) - {"b/0/3-4"} | {f"input/{epoch}" for epoch in (1, 2, 4)}
    found = planned(image, there, shape=Shape(SHAPE.feeders))
    assert found is not None and found.epoch == 2
    assert found.jobs == (Recompute(1, 2, {"a": frozenset([HALVES[0]])}),) and "" not in found.lost


def test_what_a_sink_was_given_does_not_hold_back_what_comes_out_anew_on_the_same_input() -> None:
    found = unsure({"a/0/3-4"}, {"a/0/3-4"}, Released("sink", 3))
    assert found is not None and (found.epoch, found.opened) == (2, 3)


def test_outputs_that_a_sink_has_are_not_missed() -> None:
    image = history(4, Released("sink", 3))
    assert planned(image, everything(image) - {"out/0/1-2", "out/0/3-4"}) is not None
    found = planned(image, everything(image) - {"out/0/1-2"})
    assert found is not None and found.jobs == ()


def test_an_epoch_whose_input_was_lost_with_its_layers_is_rolled_back() -> None:
    image = history(3, Released("sink", 2), files=True)
    inputs = {"input/1", "input/2"}
    found = planned(image, (everything(image) | inputs) - {"a/0/3-4"})
    assert found is not None and (found.epoch, found.opened, found.jobs) == (2, 2, ())


def test_epochs_after_one_that_was_lost_go_with_it_although_they_have_their_input() -> None:
    image = history(5, Released("sink", 1), files=True)
    inputs = {f"input/{epoch}" for epoch in (1, 3, 4, 5)}
    found = planned(image, (everything(image) | inputs) - {"a/0/2-3"})
    assert found is not None and (found.epoch, found.opened, found.jobs) == (1, 1, ())


def test_an_epoch_that_a_sink_was_given_is_not_given_up() -> None:
    image = history(3, Released("sink", 3), files=True)
    assert planned(image, (everything(image) | {"input/1", "input/2"}) - {"a/0/3-4"}) is None


def test_an_opened_epoch_without_its_input_is_rolled_back() -> None:
    image = history(2, DELIVERED, Opened(3, 0.0, {"s": {}}, {"input/3": "mark"}))
    found = planned(image, everything(image))
    assert found is not None and (found.epoch, found.opened) == (2, 2)


def test_what_is_lost_for_good_is_not_papered_over() -> None:
    image = history(3, DELIVERED, Trimmed("s", 2))
    assert planned(image, everything(image) - {"a/0/1-2"}) is None
    assert planned(image, everything(image) - {"a/0/3-4"}) is not None


def test_all_from_the_epoch_of_input_that_was_set_aside_is_computed_without_it() -> None:
    image = history(4, DELIVERED, Skipped("s", {"f": 3, "g": 0}, 0.0))
    every = frozenset(HALVES)
    found = planned(image, everything(image) - {"b/0/3-4"})
    assert found is not None and found.jobs == (Recompute(3, 4, {"a": every, "b": every}),)
    assert {"a/0/3-4", "a/1/4-5", "b/1/4-5"} <= {*found.lost} and "a/0/2-3" not in found.lost


def test_input_that_was_set_aside_changes_nothing_that_is_there() -> None:
    image = history(4, DELIVERED, Skipped("s", {"f": 3}, 0.0))
    assert planned(image, everything(image)) == Plan(4, 4)
    found = planned(image, everything(image) - {"a/1/2-3"})
    assert found is not None and found.lost == ("a/1/2-3",)


def test_what_a_larger_layer_stands_for_is_not_given_up() -> None:
    image = history(3, DELIVERED, Merged(layer("a", 0, 1, 4)), Merged(layer("a", 1, 1, 3)), Merged(layer("a", 1, 1, 4)))
    found = planned(image, everything(image) - {"a/0/1-2", "a/0/3-4", "a/1/1-3"})
    assert found is not None and not found.jobs and not found.missing
    assert set(found.gone) == {"a/0/1-2", "a/0/3-4"} and found.lost == ("a/1/1-3",)


def test_of_two_layers_for_the_same_epochs_the_one_that_can_be_read_is_enough() -> None:
    twin = replace(layer("a", 0, 2), path="a/0/again")
    image = history(3, DELIVERED, Merged(layer("a", 0, 1, 4)), Restored((), (twin,)))
    found = planned(image, everything(image) - {"a/0/2-3"})
    assert found is not None and found.lost == ("a/0/2-3",) and not found.gone
