"""Whether a run has lost its lease is judged by one clock, the watcher's own."""

import pytest

from nosync.model.lease import FORGOTTEN_LOOKS, LEASE_SECONDS, NOTICE_SECONDS, Lease, Roll, Standby, Watch


def beat(number: int, ended: bool = False) -> bytes:
    return Lease("1.a", 7, "host", number, ended).to_bytes()


def watched() -> Watch:
    """At 0.2 by its own clock, it has seen a renewal."""
    watch = Watch()
    assert not watch.over(beat(1), 0.0, 0.1)
    assert not watch.over(beat(2), 0.1, 0.2)
    return watch


def first_over(watch: Watch, content: bytes | None, begin: float) -> float:
    """When a lease that stays the same from then on is found to be over, looking ten times a second."""
    now = begin
    while not watch.over(content, now, now):
        now += 0.1
    return now


def test_a_lease_that_stays_the_same_for_its_length_is_over() -> None:
    watch = watched()
    assert not watch.over(beat(2), 0.2 + LEASE_SECONDS - 0.01, 9.0)
    assert watch.over(beat(2), 0.2 + LEASE_SECONDS, 9.0) and watch.over_at == 0.2 + LEASE_SECONDS


def test_a_lease_that_changes_is_not_over_however_long_the_answer_took() -> None:
    watch = watched()
    assert not watch.over(beat(3), 0.3, 3.0)
    assert first_over(watch, beat(3), 3.1) == pytest.approx(3.0 + LEASE_SECONDS, abs=0.11)


def test_a_watcher_that_was_paused_with_the_answer_in_hand_blames_nobody() -> None:
    watch = watched()
    assert not watch.over(beat(2), 0.3, 100.0)
    assert not watch.over(beat(150), 100.0, 100.1)


def test_a_run_that_may_not_know_of_its_watcher_has_longer() -> None:
    assert first_over(Watch(), beat(1), 0.0) == pytest.approx(NOTICE_SECONDS + LEASE_SECONDS, abs=0.11)
    assert first_over(Watch(), None, 0.0) == pytest.approx(NOTICE_SECONDS + LEASE_SECONDS, abs=0.11)


def test_a_lease_that_appears_is_no_renewal_yet() -> None:
    watch = Watch()
    assert not watch.over(None, 0.0, 0.0)
    assert first_over(watch, beat(1), 3.0) == pytest.approx(3.0 + NOTICE_SECONDS + LEASE_SECONDS, abs=0.11)


@pytest.mark.parametrize("failed", [True, False])
def test_a_watcher_that_could_not_look_for_a_while_may_have_been_forgotten(failed: bool) -> None:
    watch, back = watched(), 0.3 if failed else 50.0
    if failed:
        watch.blind()
        assert watch.over_at is None
    assert first_over(watch, beat(2), back) == pytest.approx(back + NOTICE_SECONDS + LEASE_SECONDS, abs=0.11)


def test_a_run_that_says_that_it_has_ended_is_over_at_once() -> None:
    assert Watch().over(beat(4, ended=True), 0.0, 0.1)


def test_what_is_no_lease_is_watched_like_any_other() -> None:
    assert Lease.from_bytes(b"{") is None and Lease.from_bytes(b"[1]") is None and Lease.from_bytes(b'{"run": 1}') is None
    assert not Watch().over(b"junk", 0.0, 0.1)
    assert Standby.from_bytes(b"[]") is None and Standby.from_bytes(None) is None


def test_who_does_not_announce_itself_is_not_there_and_is_forgotten() -> None:
    roll, alive, dead = Roll.empty(), Standby(1, "b"), Standby(2, "c")
    for look in range(FORGOTTEN_LOOKS + 1):
        roll.look({"standbys/b": alive.announcement(look), "standbys/c": dead.announcement(0)})
        assert roll.present == ((alive, dead) if not look else (alive,))
    assert roll.forgotten == ["standbys/c"]
    roll.look({"standbys/c": dead.announcement(9)})
    assert roll.present == (dead,) and roll.forgotten == []
