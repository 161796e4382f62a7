"""Those who stand by and the run that leads, on one store, by clocks that the test owns: how it is judged, and that one takes over."""

import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import nosync as ns
from nosync.duties.leading import Leading
from nosync.duties.troubles import Troubles
from nosync.journal.chain import Chain
from nosync.journal.journal import Journal
from nosync.journal.names import LEASES, STANDBYS
from nosync.model.errors import Conflict, Fenced, NosyncError, OutcomeUnknown, Unavailable
from nosync.model.lease import FORGOTTEN_LOOKS, LEASE_SECONDS, NOTICE_SECONDS, RENEW_SECONDS
from nosync.model.run import Runner
from nosync.model.store import Store
from nosync.runtime import standby
from nosync.runtime.standby import Watching
from nosync.store.disk import LocalDisk
from nosync.store.homes import WARM_UP, refuse_foreign_folder
from nosync.store.objects import Objects, open_remote

LOG = logging.getLogger("nosync.test")
DETECTED_SECONDS = 2.0


class Away(Objects):
    """A remote that can be out of reach of one host."""

    def __init__(self, root: Path) -> None:
        there = open_remote(f"memory://{root.name}{root.parent.name}")
        super().__init__(there.url, there._bucket)
        self.cut = False

    def __getattribute__(self, name: str) -> object:
        if name in ("read", "sizes", "replace", "create", "exists", "read_all", "delete") and self.cut:
            raise Unavailable("the link is cut")
        return super().__getattribute__(name)


class Host:
    """A host with a disk, a link and a clock of its own, which may go on from anywhere."""

    def __init__(self, root: Path, number: int) -> None:
        self.disk, self.away, self.ahead = LocalDisk(root / str(number)), Away(root / "away"), 1e5 * number
        self.runner = Runner(number, f"host {number}", "boot", 0.0, f"{number:08x}")
        self.now = 0.0

    def clock(self) -> float:
        return self.now + self.ahead

    def lead(self, follows: int | None = None) -> Leading:
        journal = Journal(self.disk, self.away, self.runner, follows=follows)
        return Leading(journal, self.away, self.runner, Troubles(), self.clock)

    def watch(self) -> Watching:
        return Watching(self.away, self.runner, LOG, self.clock, pytest.fail)


Part = Callable[[], float | None]  # gives the seconds until it goes on; None to end


class World:
    """Time goes on for all hosts alike; each part does something when its pause is over."""

    now = 0.0

    def run(self, hosts: list[Host], parts: Sequence[Part], seconds: float) -> Part | None:
        """Until some part gives None (that part), or the time is over."""
        end, due = self.now + seconds, dict.fromkeys(parts, self.now)
        while (at := min(due.values())) < end:
            self.now = max(self.now, at)
            for host in hosts:
                host.now = self.now
            part = min(due, key=due.__getitem__)
            pause = part()
            if pause is None:
                return part
            due[part] = self.now + max(pause, 1e-3)
        self.now = end
        return None


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[list[Host]]:
    yield [Host(tmp_path, number) for number in (1, 2, 3)]


def looking(watching: Watching) -> Part:
    def part() -> float | None:
        try:
            return None if watching.step() else watching.pause()
        except Unavailable:
            watching.watch.blind()
            return watching.pause()

    return part


def failing(leading: Leading) -> Part:
    def part() -> float | None:
        try:
            return leading.step()
        except Unavailable:
            return RENEW_SECONDS

    return part


def test_nobody_takes_over_from_a_run_that_renews_its_lease(hosts: list[Host]) -> None:
    leading, world = hosts[0].lead(), World()
    parts = [leading.step, looking(hosts[1].watch()), looking(hosts[2].watch())]
    assert world.run(hosts, parts, 60.0) is None
    assert [one.host for one in leading.standbys] == ["host 2", "host 3"]


def test_a_run_that_is_gone_is_noticed_within_two_seconds_of_its_last_renewal(hosts: list[Host]) -> None:
    leading, world, first, second = hosts[0].lead(), World(), hosts[1].watch(), hosts[2].watch()
    looks = [looking(first), looking(second)]
    assert world.run(hosts, [leading.step, *looks], 31.3) is None
    renewed = leading.renewed_at - hosts[0].ahead
    assert world.run(hosts, looks, 60.0) in looks
    assert LEASE_SECONDS <= world.now - renewed <= DETECTED_SECONDS


def test_one_of_several_follows_and_the_others_stand_by_for_it(hosts: list[Host]) -> None:
    leading, world, first, second = hosts[0].lead(), World(), hosts[1].watch(), hosts[2].watch()
    looks = [looking(first), looking(second)]
    world.run(hosts, [leading.step, *looks], 30.0)
    assert world.run(hosts, [looking(first)], 60.0) and world.run(hosts, [looking(second)], 60.0)
    following = hosts[1].lead(follows=1)
    with pytest.raises(Conflict, match="followed the one of generation 1"):
        hosts[2].lead(follows=1)
    assert world.run(hosts, [following.step, looking(second)], 60.0) is None and second.generation == 2
    with pytest.raises(Fenced):
        leading.journal.look()


def test_a_run_that_was_paused_learns_at_once_that_it_was_followed(hosts: list[Host]) -> None:
    leading, world, watching = hosts[0].lead(), World(), hosts[1].watch()
    world.run(hosts, [leading.step, looking(watching)], 30.0)
    world.run(hosts, [looking(watching)], 60.0)
    following = hosts[1].lead(follows=1)
    with pytest.raises(Fenced, match="process 2 on host 2 took this flow over"):
        leading.step()
    assert leading.journal.fenced is not None and following.journal.fenced is None


def test_a_run_that_is_cut_off_is_followed_and_fenced_when_it_comes_back(hosts: list[Host]) -> None:
    leading, world, watching = hosts[0].lead(), World(), hosts[1].watch()
    world.run(hosts, [failing(leading), looking(watching)], 30.0)
    hosts[0].away.cut = True
    assert world.run(hosts, [failing(leading), looking(watching)], 10.0)
    hosts[1].lead(follows=1)
    hosts[0].away.cut = False
    with pytest.raises(Fenced):
        leading.step()


def test_a_standby_that_is_cut_off_follows_nobody_also_when_it_comes_back(hosts: list[Host]) -> None:
    leading, world, watching = hosts[0].lead(), World(), hosts[1].watch()
    parts = [failing(leading), looking(watching)]
    for cut in (False, True, False):
        hosts[1].away.cut = cut
        assert world.run(hosts, parts, 30.0) is None


def test_when_the_remote_was_away_for_all_the_run_that_leads_goes_on(hosts: list[Host]) -> None:
    leading, world, watching = hosts[0].lead(), World(), hosts[1].watch()
    parts = [failing(leading), looking(watching)]
    for cut in (False, True, False):
        for host in hosts:
            host.away.cut = cut
        assert world.run(hosts, parts, 30.0) is None


def test_a_run_that_stops_is_followed_at_once(hosts: list[Host]) -> None:
    leading, world, watching = hosts[0].lead(), World(), hosts[1].watch()
    world.run(hosts, [leading.step, looking(watching)], 30.0)
    leading.end()
    stopped = world.now
    assert world.run(hosts, [looking(watching)], 10.0) and world.now - stopped < RENEW_SECONDS


def test_a_flow_that_nobody_has_run_is_led_by_one_of_those_who_stand_by(hosts: list[Host]) -> None:
    watching = [host.watch() for host in hosts]
    assert all(one.step() for one in watching) and {one.generation for one in watching} == {0}
    hosts[2].lead(follows=0)
    for host in hosts[:2]:
        with pytest.raises(Conflict):
            host.lead(follows=0)


def test_a_run_started_beside_those_who_stand_by_is_what_they_stand_by_for(hosts: list[Host]) -> None:
    leading, world, watching = hosts[0].lead(), World(), hosts[1].watch()
    world.run(hosts, [leading.step, looking(watching)], 30.0)
    other = hosts[2].lead()
    assert world.run(hosts, [other.step, looking(watching)], 60.0) is None
    assert watching.generation == 2 and [one.host for one in other.standbys] == ["host 2"]


def test_without_anybody_who_stands_by_a_lease_is_written_once(hosts: list[Host]) -> None:
    leading, world = hosts[0].lead(), World()
    world.run(hosts, [leading.step], 10 * NOTICE_SECONDS)
    assert leading.lease.beat == 1 and leading.standbys == ()


def test_leases_of_earlier_runs_and_silent_standbys_are_removed(hosts: list[Host]) -> None:
    world, watching = World(), hosts[2].watch()
    world.run(hosts, [hosts[0].lead().step, looking(watching)], 30.0)
    following = hosts[1].lead()
    world.run(hosts, [following.step], 10 * NOTICE_SECONDS)
    away: Store = hosts[1].away
    assert list(away.sizes(LEASES)) == ["leases/00000002"] and not away.sizes(STANDBYS) and following.standbys == ()


def test_standing_by_needs_no_remote(tmp_path: Path) -> None:
    host = Host(tmp_path, 1)
    journal = Journal(host.disk, None, host.runner)
    leading = Leading(journal, host.disk, host.runner, Troubles(), host.clock)
    leading.step()
    watching = Watching(host.disk, host.runner, LOG, host.clock)
    assert not watching.step() and watching.generation == 1
    leading.end()
    assert watching.step()
    with pytest.raises(ns.Fenced):
        Journal(host.disk, None, host.runner, follows=1)
        journal.look()


def test_a_new_home_in_which_somebody_rehearses_is_nobody_elses_folder(tmp_path: Path) -> None:
    (tmp_path / f"{WARM_UP}1").mkdir()
    (tmp_path / STANDBYS).mkdir()
    refuse_foreign_folder(tmp_path)
    (tmp_path / "notes").mkdir()
    with pytest.raises(ns.Invalid, match="notes"):
        refuse_foreign_folder(tmp_path)


@pytest.mark.parametrize("error", [Unavailable("the link is cut"), OutcomeUnknown("it timed out")])
def test_who_cannot_take_over_now_stands_by_again(error: NosyncError, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []

    def begin(*, follows: int) -> Any:
        tried.append(follows)
        if len(tried) == 1:
            raise error
        return "led"

    idle = SimpleNamespace(end=lambda: None)
    monkeypatch.setattr(standby, "check_start", lambda *_: Chain())
    monkeypatch.setattr(standby, "WarmUp", lambda *_: idle)
    monkeypatch.setattr(standby, "AGAIN_SECONDS", 0.0)
    program: Any = SimpleNamespace(name="shop")
    assert standby.stand_by(begin, program, tmp_path, None, None, "refuse", False) == "led"  # type: ignore[comparison-overlap]
    assert tried == [0, 0]


def test_files_of_others_beside_leases_and_announcements_are_left_alone(hosts: list[Host]) -> None:
    first, *_ = hosts
    mine = [f"{STANDBYS}/notes.txt", f"{LEASES}/00000000.bak", f"{LEASES}/0"]
    for name in mine:
        first.away.replace(name, b"of somebody else")
    leading = first.lead()
    for _ in range(FORGOTTEN_LOOKS + 2):
        leading.step()
        first.now += NOTICE_SECONDS
    assert all(first.away.exists(name) for name in mine) and not leading.standbys
