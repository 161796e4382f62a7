"""The plan of a recovery takes no more than it needs, and gives up no more than it must: what lies on either side of each bound."""

import pytest

from nosync.journal.entries import Computed, Entry, Merged, Opened, Released, Restored, Skipped, TakenOver, Trimmed
from nosync.journal.image import Image, fold
from nosync.model.layers import LayerInfo
from nosync.recovery.plan import Plan, Recompute, Shape, plan
from nosync.recovery.survey import Survey
from tests.other_policies import GAP

from .test_plan import DELIVERED, HALVES, SHAPE, UNSURE, everything, history, layer, planned, unsure

ONE, BOTH = frozenset([HALVES[0]]), frozenset(HALVES)
OTHER = frozenset([HALVES[1]])


def leaves(trace: str, *epochs: int, shard: int = 0) -> set[str]:
    return {f"{trace}/{shard}/{epoch}-{epoch + 1}" for epoch in epochs}


def inputs(*epochs: int) -> set[str]:
    return {f"input/{epoch}" for epoch in epochs}


# What is fetched


def test_what_a_sink_has_yet_to_get_is_fetched_and_what_it_has_is_not() -> None:
    image = history(4, Released("sink", 2))
    found = planned(image, everything(image) - leaves("out", 1, 2, 3), leaves("out", 1, 2, 3))
    assert found == Plan(4, 4, fetch=("out/0/3-4",))


def test_layers_that_a_merged_one_stands_for_are_not_fetched() -> None:
    image = history(4, Merged(layer("a", 0, 1, 5)), DELIVERED)
    assert planned(image, everything(image) - leaves("a", 2), leaves("a", 2)) == Plan(4, 4)


def test_a_job_has_what_it_reads_fetched_and_nothing_else() -> None:
    fine = leaves("a", 1, 2, 3, 4) | leaves("b", 1, 2, 3, 4) | leaves("out", 1, 2)
    image = history(4, Merged(layer("a", 0, 1, 5)), Merged(layer("b", 0, 1, 5)), Released("sink", 2))
    below = planned(image, everything(image) - fine - leaves("a", 3, shard=1), fine)
    assert below is not None and below.jobs == (Recompute(3, 3, {"a": OTHER}),)
    assert {*below.fetch} == leaves("a", 1, 2)
    above = planned(image, everything(image) - fine - leaves("out", 3), fine)
    assert above is not None and above.jobs == (Recompute(3, 3, {"out": ONE}),)
    assert {*above.fetch} == leaves("a", 1, 2) | leaves("b", 1, 2)


def test_of_a_record_what_it_holds_of_the_epochs_of_a_job_is_fetched() -> None:
    entries: list[Entry] = []
    for epoch in range(1, 6):
        layers = tuple(layer(trace, shard, epoch) for trace in ("a", "emitted", "b") for shard in (0, 1))
        entries += [Opened(epoch, 0.0, {"s": {}}), Computed(epoch, layers, {}, {})]
    image = fold([*entries, Merged(layer("emitted", 0, 1, 3)), Merged(layer("emitted", 0, 4, 6)), DELIVERED])
    fine, shape = leaves("emitted", 1, 2, 3, 4, 5), Shape(UNSURE.feeders, {}, frozenset(), UNSURE.unrepeatable, UNSURE.records)
    for epochs in ((2,), (4,), (2, 3)):
        found = plan(image, Survey(frozenset(everything(image) - fine - leaves("b", *epochs)), frozenset(fine)), shape)
        assert found is not None and found.jobs == (Recompute(epochs[0], epochs[-1], {"b": ONE}),)
        assert {*found.fetch} == leaves("emitted", *epochs) | leaves("emitted", 3)  # of epoch 3 no merged layer tells


def test_input_is_fetched_of_epochs_that_will_be_computed() -> None:
    image = history(3, DELIVERED, Opened(4, 0.0, {"s": {}}, {"input/4": "mark"}), files=True)
    found = planned(image, everything(image), inputs(1, 2, 3, 4))
    assert found == Plan(3, 4, fetch=("input/4",))
    found = planned(image, everything(image) - leaves("a", 2), inputs(1, 2, 3, 4))
    assert found is not None and found.fetch == ("input/2", "input/4")


def test_what_is_nowhere_is_not_to_be_fetched() -> None:
    image = history(2, DELIVERED, Opened(3, 0.0, {"s": {}}, {"input/3": "mark"}))
    assert planned(image, everything(image)) == Plan(2, 2)


# What is missing


def test_the_epoch_that_a_sink_was_given_last_is_not_missed() -> None:
    image = history(4, Released("sink", 3))
    assert planned(image, everything(image) - leaves("out", 3)) == Plan(4, 4, lost=("out/0/3-4",), found=found_in(image, "out/0/3-4"))


def found_in(image: Image, *gone: str) -> tuple[LayerInfo, ...]:
    """The newest covers, without what is gone."""
    return tuple(one for covers in image.newest.values() for held in covers.values() for one in held if one.path not in gone)


def test_a_merged_layer_whose_inputs_are_all_known_is_not_missed() -> None:
    image = history(4, Merged(layer("a", 0, 3, 5)), DELIVERED)
    image.forget_past(4)
    found = planned(image, everything(image) - {"a/0/3-5"})
    assert found is not None and found.jobs == () and found.missing == ()


def test_what_the_policy_forgets_is_neither_recomputed_nor_missed_for_ever() -> None:
    image = history(3)
    found = planned(image, everything(image) - leaves("a", 2), shape=Shape(SHAPE.feeders, SHAPE.sinks, policy=GAP))
    assert found is not None and found.jobs == () and found.lost == ("a/0/2-3",)


# Which jobs there are


def test_losses_far_apart_are_jobs_of_their_own() -> None:
    image = history(5, DELIVERED)
    found = planned(image, everything(image) - leaves("b", 1) - leaves("a", 3))
    assert found is not None and found.jobs == (Recompute(1, 1, {"b": ONE}), Recompute(3, 3, {"a": ONE}))


def test_a_job_that_must_begin_earlier_takes_in_those_that_it_reaches() -> None:
    image = history(5, Merged(layer("a", 0, 2, 5)), DELIVERED)
    found = planned(image, everything(image) - leaves("a", 2, 3, 4) - leaves("a", 2, shard=1) - leaves("b", 4))
    assert found is not None and found.jobs == (Recompute(2, 4, {"a": OTHER, "b": ONE}),)


def test_only_what_feeds_a_job_decides_where_it_begins() -> None:
    image = history(5, Merged(layer("b", 0, 2, 5)), DELIVERED)
    found = planned(image, everything(image) - leaves("b", 2, 3, 4) - leaves("a", 3))
    assert found is not None and found.jobs == (Recompute(3, 3, {"a": ONE}),)


def test_neither_outputs_nor_records_of_before_decide_where_a_job_begins() -> None:
    image = history(4, Released("sink", 2))
    found = planned(image, everything(image) - leaves("out", 1, 3))
    assert found is not None and found.jobs == (Recompute(3, 3, {"out": ONE}),)
    found = unsure(set(), {"b/0/2-3", "emitted/0/1-2"})
    assert found is not None and found.jobs == (Recompute(2, 2, {"b": ONE}),)


def test_a_sink_that_came_with_a_changed_program_gets_all_before_it_at_once() -> None:
    made = (layer("new", 0, 1, 4), layer("new", 1, 1, 4))
    image = history(3, TakenOver(3, made, {"new": 3}, False, {}), DELIVERED)
    shape = Shape(SHAPE.feeders | {"new": frozenset(["a", "new"])}, SHAPE.sinks | {"new": "newer"})
    found = planned(image, everything(image) - {one.path for one in made} - leaves("a", 2), shape=shape)
    assert found is not None and found.jobs == (Recompute(1, 3, {"new": BOTH}), Recompute(2, 2, {"a": ONE}))


def test_state_of_several_epochs_is_recomputed_with_its_neighbours() -> None:
    image = history(5, Merged(layer("a", 0, 2, 5)), Restored(tuple(leaves("a", 2, 3, 4)), ()), DELIVERED)
    found = planned(image, everything(image) - {"a/0/2-5"} - leaves("b", 5))
    assert found is not None and found.jobs == (Recompute(2, 5, {"a": ONE, "b": ONE}),)


def test_one_output_among_the_targets_is_enough_to_go_epoch_by_epoch() -> None:
    image = history(4, Released("sink", 1))
    found = planned(image, everything(image) - leaves("out", 2, 3) - leaves("a", 2))
    assert found is not None and [(job.first, job.last) for job in found.jobs] == [(2, 2), (3, 3)]


# What is given up


def test_there_is_no_way_back_behind_a_changed_program() -> None:
    image = history(5, Released("sink", 1), files=True)
    there = everything(image) | inputs(1, 2, 3, 5)
    assert (back := planned(image, there - leaves("a", 4))) is not None and (back.epoch, back.opened) == (3, 3)
    image = history(5, TakenOver(4, (), {"b": 2, "a": 4}, True, {}), Released("sink", 1), files=True)
    assert planned(image, there - leaves("a", 4)) is None
    there = everything(image) | inputs(1, 2, 3, 4)
    assert (back := planned(image, there - leaves("a", 5))) is not None and back.epoch == 4


def test_the_sink_that_has_most_decides_what_may_be_given_up() -> None:
    image = history(3, Released("sink", 1), Released("other", 3), files=True)
    shape = Shape(SHAPE.feeders, {"out": "sink", "more": "other"})
    assert planned(image, (everything(image) | inputs(1, 2)) - leaves("a", 3), shape=shape) is None


def test_input_that_was_lost_late_does_not_hide_what_was_lost_before() -> None:
    image = history(5, Released("sink", 1), files=True)
    found = planned(image, (everything(image) | inputs(1, 3, 4)) - leaves("a", 2))
    assert found is not None and (found.epoch, found.opened) == (1, 1)


@pytest.mark.parametrize("epoch", [1, 2])
def test_epochs_whose_input_was_trimmed_are_not_given_up(epoch: int) -> None:
    image = history(3, Trimmed("s", 2), files=True)
    there = (everything(image) | inputs(3)) - leaves("a", epoch)
    assert planned(image, there, shape=Shape(SHAPE.feeders)) is None


@pytest.mark.parametrize("source", ["s", "t"])
def test_an_epoch_of_which_one_source_was_trimmed_is_neither_given_up_nor_computed_again(source: str) -> None:
    entries: list[Entry] = []
    for epoch in (1, 2, 3):
        entries.append(Opened(epoch, 0.0, {"s": {}, "t": {}}, {f"input/{epoch}": "mark"}))
        entries.append(Computed(epoch, (layer("a", 0, epoch),), {}, {}))
    image = fold([*entries, Trimmed(source, 2)])
    for there in (inputs(1, 3), inputs(1, 2, 3)):
        assert planned(image, (everything(image) | there) - leaves("a", 2), shape=Shape({"a": frozenset(["a"])})) is None


def test_what_was_lost_after_it_was_safe_is_not_given_up_for_what_was_lost_before() -> None:
    assert unsure({"a/0/3-4"}, {"a/0/3-4", "a/0/2-3"}) is None
    assert unsure({"a/0/2-3"}, {"a/0/3-4"}) is None


def test_back_at_the_first_epoch_of_a_layer_that_stands_for_lost_ones_its_state_is_computed_again() -> None:
    image = history(4, Merged(layer("a", 0, 2, 5)), Restored(tuple(leaves("a", 2, 3, 4)), ()), DELIVERED, files=True)
    found = planned(image, (everything(image) | inputs(1, 2, 4)) - leaves("b", 3), shape=Shape(SHAPE.feeders))
    assert found is not None and (found.epoch, found.jobs) == (2, (Recompute(2, 2, {"a": ONE}),))


def test_epochs_whose_openings_were_forgotten_cannot_be_computed_again_from_this_image() -> None:
    image = history(4, DELIVERED)
    image.forget_past(4)
    assert planned(image, everything(image) - leaves("a", 2)) is None


# Input that was set aside


def test_what_is_lost_for_good_stays_so_where_input_was_set_aside() -> None:
    image = history(3, DELIVERED, Trimmed("s", 2), Skipped("s", {"f": 3}, 0.0))
    assert planned(image, everything(image) - leaves("a", 1)) is None


def test_all_from_the_first_epoch_that_had_such_input_is_computed_without_it() -> None:
    image = history(5, DELIVERED, Skipped("s", {"f": 4, "g": 3}, 0.0))
    found = planned(image, everything(image) - leaves("b", 2, 3, 4))
    assert found is not None and found.jobs == (Recompute(2, 5, {"a": BOTH, "b": BOTH}),)
    assert leaves("a", 3) <= {*found.lost} and "a/0/2-3" not in found.lost


def test_what_cannot_be_computed_again_stays_although_such_input_is_in_it() -> None:
    found = unsure(set(), leaves("b", 2), Skipped("s", {"f": 2}, 0.0))
    assert found is not None and [(job.first, {*job.targets}) for job in found.jobs] == [(2, {"b"}), (3, {"b"})]
    assert not {path for path in found.lost if not path.startswith("b")}
