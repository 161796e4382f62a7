"""What goes wrong behind the stream is counted and shown, and logged once."""

import logging
from pathlib import Path

import pytest

from nosync.duties.troubles import Troubles
from nosync.model.errors import Corrupt, Unavailable
from nosync.model.safety import Problem
from nosync.recovery.suspicion import SUSPECT
from nosync.store.disk import LocalDisk


@pytest.fixture
def now() -> list[float]:
    return [1.0]


@pytest.fixture
def troubles(now: list[float]) -> Troubles:
    return Troubles(lambda: now[0])


def facts(troubles: Troubles) -> list[tuple[str, int, str, float, float | None]]:
    return [(one.duty, one.count, one.message, one.at, one.since) for one in troubles.all()]


def test_errors_in_a_row_are_one_trouble_since_the_first(troubles: Troubles, now: list[float]) -> None:
    for at in (1.0, 2.0, 3.0):
        now[0] = at
        troubles.met("host", Unavailable("the disk\n is full"))
    assert facts(troubles) == [("host", 3, "the disk is full", 3.0, 1.0)]
    assert troubles.problem("host") == Problem("the disk is full", 1.0)


def test_a_duty_that_works_again_stands_still_no_more_and_its_errors_stay_counted(troubles: Troubles, now: list[float]) -> None:
    troubles.over("host")
    assert facts(troubles) == []
    troubles.met("host", Unavailable("full"))
    troubles.over("host")
    assert troubles.problem("host") is None and facts(troubles) == [("host", 1, "full", 1.0, None)]
    now[0] = 5.0
    troubles.met("host", Unavailable("full"))
    assert facts(troubles) == [("host", 2, "full", 5.0, 5.0)]


def test_the_first_of_several_duties_that_stands_still_is_the_problem(troubles: Troubles) -> None:
    assert troubles.problem("records", "layers") is None
    troubles.met("records", Unavailable("passing"))
    troubles.met("layers", Unavailable("cut"))
    troubles.met("sink", Unavailable("another"))
    troubles.over("records")
    assert troubles.problem("records", "layers") == Problem("cut", 1.0)


def test_an_error_is_logged_when_it_is_new_another_or_back(troubles: Troubles, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "nosync"):
        for message in ("full", "full", "cut", "cut"):
            troubles.met("host", Unavailable(message))
        troubles.over("host")
        troubles.met("host", Unavailable("cut"))
        troubles.met("site", ValueError("odd"))
    assert caplog.messages == ["host: full", "host: cut", "host: cut", "site: ValueError: odd"]


def test_only_damage_leaves_word_for_the_next_start(troubles: Troubles, tmp_path: Path) -> None:
    disk = LocalDisk(tmp_path)
    troubles.damage(disk, Unavailable("the disk is full"))
    assert not disk.exists(SUSPECT)
    troubles.damage(disk, Corrupt("block 3 has changed"))
    assert disk.read(SUSPECT) == b"block 3 has changed" and facts(troubles) == []


def test_word_that_cannot_be_left_is_a_trouble_of_its_own(troubles: Troubles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = LocalDisk(tmp_path)

    def full(name: str, content: bytes) -> None:
        raise Unavailable("the disk is full")

    monkeypatch.setattr(disk, "replace", full)
    troubles.damage(disk, Corrupt("block 3 has changed"))
    assert [(one.duty, one.message) for one in troubles.all()] == [("note of damage", "the disk is full")]
