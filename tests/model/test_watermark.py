"""The watermark of an epoch: a function of what the epochs before it have seen."""

from nosync.model.watermark import EventClock, Expiry, Moment, newest

HISTORY = {1: {}, 2: {"s": 100}, 3: {"s": 150, "t": 90}, 4: {"s": 150, "t": 170}}


def seen(epoch: int) -> dict[str, int]:
    return HISTORY.get(epoch, {})


def test_the_slowest_of_several_sources_decides() -> None:
    clock = EventClock((("s", 20), ("t", 10)))
    assert [clock.watermark(epoch, seen) for epoch in (1, 2, 3, 4)] == [None, None, 80, 130]


def test_what_waited_for_a_window_to_close_goes_by_the_epoch_before() -> None:
    assert EventClock((("s", 20),), lag=1).watermark(3, seen) == 80
    assert Moment(3, seen).watermark_before(EventClock((("s", 20),))) == 80
    assert Moment(1, seen).watermark_before(EventClock((("s", 20),))) is None


def test_seen_times_never_fall() -> None:
    assert newest({"s": 7, "t": 3}, {"s": 5, "u": 1}) == {"s": 7, "t": 3, "u": 1}


def test_state_expires_its_slack_behind_the_watermark() -> None:
    assert Expiry("k0", EventClock((("s", 20),)), slack=30).until(3, seen) == 100
    assert Expiry("k0", EventClock((("s", 20),))).until(1, seen) is None
