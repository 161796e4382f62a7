"""Ladders: which epochs stay, however often one asks, whatever is held."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nosync.model.errors import Invalid
from nosync.model.ladder import ALL, DEFAULT, Ladder, ladder_of
from nosync.model.retention import Hold, Kept

MINUTE, HOUR, DAY = 60, 3_600, 86_400

ladders = st.sampled_from(
    [
        DEFAULT,
        ALL,
        *map(ladder_of, (1, 7, 40, "90 seconds", "1 hour", {"1 minute": "10 seconds", "1 hour": "7 minutes"})),
        ladder_of({"5 seconds": "every epoch", "1 minute": "7 seconds", "10 minutes": "1 minute"}),
    ]
)
gaps = st.lists(st.floats(0.0, 90.0), min_size=1, max_size=120)
holds = st.lists(st.tuples(st.integers(1, 130), st.integers(0, 5) | st.none()), max_size=3).map(
    lambda found: [Hold("held", first, None if more is None else first + more) for first, more in found]
)


def times_of(gaps: list[float]) -> dict[int, float]:
    found, at = {}, 1_000_000_000.0
    for epoch, gap in enumerate(gaps, start=1):
        at += gap
        found[epoch] = at
    return found


def left(times: dict[int, float], kept: Kept) -> dict[int, float]:
    return {epoch: at for epoch, at in times.items() if epoch in kept}


@given(ladders, gaps, holds, st.floats(0.0, 5_000.0))
def test_what_is_held_and_the_newest_epoch_are_never_given_up(ladder: Ladder, gaps: list[float], holds: list[Hold], later: float) -> None:
    times = times_of(gaps)
    kept = ladder.kept(len(times), times, times[len(times)] + later, holds)
    assert len(times) in kept
    held = [epoch for hold in holds for epoch in range(hold.first, (hold.last or len(times)) + 1) if epoch in times]
    assert all(epoch in kept for epoch in held)


@given(ladders, gaps, holds, st.floats(0.0, 5_000.0))
def test_asking_again_gives_up_nothing_more(ladder: Ladder, gaps: list[float], holds: list[Hold], later: float) -> None:
    times = times_of(gaps)
    now = times[len(times)] + later
    kept = ladder.kept(len(times), times, now, holds)
    assert kept.of(ladder.kept(len(times), left(times, kept), now, holds)) == kept


@given(ladders, gaps, st.floats(0.0, 2_000.0), st.floats(0.0, 2_000.0))
def test_asking_often_leaves_no_more_than_asking_once_and_every_rung_what_it_names(
    ladder: Ladder, gaps: list[float], later: float, much_later: float
) -> None:
    times = times_of(gaps)
    newest, now = len(times), times[len(times)] + later
    often = ladder.kept(newest, left(times, ladder.kept(newest, times, now, [])), now + much_later, [])
    once = ladder.kept(newest, times, now + much_later, [])
    for kept in (often, once):
        for rung in ladder.rungs:
            young = [epoch for epoch, at in times.items() if now + much_later - at < rung.age / 1e6]
            named = young if not rung.step else _lasts(young, times, rung.step / 1e6)
            assert not rung.step or all(_near(epoch, kept, times, rung.step / 1e6) for epoch in named)
            assert rung.step or all(epoch in kept for epoch in named)


def _lasts(epochs: list[int], times: dict[int, float], step: float) -> list[int]:
    return list({times[epoch] // step: epoch for epoch in epochs}.values())


def _near(epoch: int, kept: Kept, times: dict[int, float], step: float) -> bool:
    """Some epoch of the same time, give or take a step, is there."""
    return any(abs(times[other] - times[epoch]) <= step for other in times if other in kept)


def test_the_default_keeps_ten_minutes_a_day_of_minutes_and_a_month_of_hours() -> None:
    times = {epoch: float(epoch * 10) for epoch in range(1, 40 * DAY // 10)}
    newest = max(times)
    kept = DEFAULT.kept(newest, times, times[newest], [])
    ages = [times[newest] - times[epoch] for epoch in kept.among]
    assert 600 <= times[newest] - times[kept.since] <= 660
    assert 24 * 59 <= sum(age < DAY for age in ages) <= 24 * 60 + 1
    assert 29 * 24 <= sum(age >= DAY for age in ages) <= 29 * 24 + 60 + 2
    assert max(ages) <= 30 * DAY + HOUR


def test_the_answer_moves_in_steps() -> None:
    times = {epoch: float(epoch) for epoch in range(1, 2_000)}
    answers = {DEFAULT.kept(1_999, times, 1_999.0 + second, []) for second in range(120)}
    assert len(answers) <= 4
    assert len({ladder_of(100).kept(newest, times, 0.0, []).since for newest in range(1_000, 1_100)}) <= 11


def test_how_it_is_said() -> None:
    assert DEFAULT.said == "10 minutes: every epoch, 1 day: 1 minute, 30 days: 1 hour"
    for keep in ("all", 5, "5", "5 epochs", "7 days", DEFAULT.said, {"1 hour": "1 minute"}):
        assert ladder_of(ladder_of(keep).said) == ladder_of(keep)
    assert ladder_of("5") == ladder_of(5) != ladder_of("5 seconds")


@pytest.mark.parametrize(
    "keep", [0, -3, True, "", "soon", "0 seconds", {}, {"1 day": "every epoch", "1 hour": "1 minute"}, "1 day: 1 h, 2 d"]
)
def test_what_is_no_ladder_is_refused(keep: object) -> None:
    with pytest.raises(Invalid):
        ladder_of(keep)  # type: ignore[arg-type]


@given(ladders, gaps, st.floats(0.0, 2_000.0))
def test_what_goes_next_is_said_before_it_goes(ladder: Ladder, gaps: list[float], later: float) -> None:
    times = times_of(gaps)
    newest, now = len(times), times[len(times)] + later
    times = left(times, ladder.kept(newest, times, now, []))
    found = ladder.next_loss(newest, times, now)
    if found is None:
        return
    at, count = found
    assert at > now and count == len(times) - len(left(times, ladder.kept(newest, times, at, [])))
    assert left(times, ladder.kept(newest, times, (now + at) / 2, [])) == times


def test_epochs_that_age_does_not_decide_have_no_next_loss() -> None:
    times = {1: 10.0, 2: 11.0}
    assert ALL.next_loss(2, times, 12.0) is None and ladder_of(1).next_loss(2, times, 12.0) is None
    assert ladder_of("10 seconds").next_loss(2, times, 12.0) == (21.0, 1)
