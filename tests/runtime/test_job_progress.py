"""A long job says how far it is, and is given up when its run shall stop."""

import threading

import pytest

from nosync.runtime import job_progress
from nosync.runtime.job_progress import reporting


class Engine:
    """A job of ten tasks, which ends when it is given up."""

    def __init__(self) -> None:
        self.given_up = threading.Event()

    def tasks(self) -> tuple[int, int]:
        return 3, 10

    def give_up(self) -> None:
        self.given_up.set()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_progress, "SECONDS", 0.001)


def test_a_job_says_how_far_it_is() -> None:
    reports, enough = list[tuple[int, int]](), threading.Event()

    def report(done: int, tasks: int) -> None:
        reports.append((done, tasks))
        enough.set()

    with reporting(Engine(), report):
        assert enough.wait(60)
    assert set(reports) == {(3, 10)}


def test_a_job_is_given_up_when_whoever_is_told_has_had_enough() -> None:
    engine = Engine()

    def report(done: int, tasks: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), reporting(engine, report):
        assert engine.given_up.wait(60)
        raise RuntimeError("the job was cancelled")


def test_what_a_job_itself_raises_is_raised() -> None:
    with pytest.raises(RuntimeError, match="no room"), reporting(Engine(), lambda done, tasks: None):
        raise RuntimeError("no room")
