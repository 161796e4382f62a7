"""How a flow stands comes back from the home as it was written, and reads well."""

import os
import socket
import subprocess
from dataclasses import replace

import pytest

from nosync.model import run
from nosync.model.footprint import Footprint
from nosync.model.run import process_has_ended, this_boot
from nosync.model.safety import Problem, Standing
from nosync.model.sizes import size_of
from nosync.model.status import Live, Recovery, Trouble


def test_what_a_run_says_of_itself_comes_back_as_it_was() -> None:
    tiers = (Standing("host", 7, 3, 10, 2, 20), Standing("site", 5, 2, 30, 1, 40, Problem("no route", 12.0)))
    live = Live("2.ab", "running", "Processing", tiers, {"out": 3}, (Trouble("layers", 4, "no route", 13.0, 12.0),), Recovery("x", 1, 2))
    live = replace(live, footprint=Footprint(1 << 30, 6, 3, 2, 1 << 20, 17, 5, ("2026-05-01T00:00:00+00:00", 9)))
    assert Live.from_bytes(live.to_bytes()) == live


@pytest.mark.parametrize("content", [None, b"", b"{", b"[]", b"{}", b'{"run": 1}', b"\xff\x00"])
def test_what_is_no_status_says_nothing(content: bytes | None) -> None:
    assert Live.from_bytes(content) is None


@pytest.mark.parametrize(
    ("recovery", "words"),
    [
        (Recovery("looking"), "looking"),
        (Recovery("fetching", 3, 12, int(1.2 * 2**30), 4 * 2**30), "3 of 12 shards, 1.2 of 4.0 GiB (fetching)"),
        (Recovery("rebuilding", 0, 2), "0 of 2 shards (rebuilding)"),
        (Recovery("rebuilding", 0, 2, tasks_done=3, tasks=12), "0 of 2 shards, 25% (rebuilding)"),
    ],
)
def test_recovery_in_words(recovery: Recovery, words: str) -> None:
    assert str(recovery) == words


def test_a_footprint_in_words() -> None:
    assert str(Footprint(1 << 30, 6, 3 << 20, 2 << 20, 1 << 30, 1_017)) == (
        "1.0 GiB in 6 processes, JVM heap 2.0 MiB live, 3.0 MiB used of 1.0 GiB, 1,017 files"
    )
    assert str(Footprint(files=3)) == "3 files"


def test_a_part_of_few_bytes_is_reported_in_bytes() -> None:
    assert size_of(5, 100) == "5 of 100 B"


def test_a_process_that_is_gone_has_ended() -> None:
    here, boot = socket.gethostname(), this_boot()
    assert not process_has_ended(os.getpid(), here, boot)
    assert process_has_ended(os.getpid(), here, "before the restart")
    assert not process_has_ended(os.getpid(), "another host", "whatever")
    child = subprocess.Popen(["true"])
    try:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and nobody has asked after it
        assert process_has_ended(child.pid, here, boot)
    finally:
        child.wait()


def test_without_proc_no_two_processes_share_a_boot(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setattr(run, "BOOT", run.Path("/nowhere/boot_id"))
    monkeypatch.setattr(run, "BOOT_ELSEWHERE", ("nosync-has-no-such-command",))
    run._boot_elsewhere.cache_clear()
    mine = this_boot()
    run._boot_elsewhere.cache_clear()  # as another process would find it
    assert mine != this_boot() and mine != socket.gethostname()
    assert not process_has_ended(os.getpid(), socket.gethostname(), mine)
    run._boot_elsewhere.cache_clear()
