"""Of records of which no epoch is kept, what is left is enough to compute the epochs again; and it lies in few files."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from nosync.history.epochs import epochs_of
from nosync.journal.entries import Computed, Opened, Thinned
from nosync.journal.forgetting import Forgetter, neighbours
from nosync.journal.journal import Journal
from nosync.journal.names import OPENINGS, ROLLUPS, SEGMENTS, numbers_in, openings_name
from nosync.journal.past import TieredReader, openings, past_files, rolled_openings_of, spans, stretches, whole_image
from nosync.journal.rolling import Roller
from nosync.journal.taken import taken_from
from nosync.model.errors import Corrupt, Fenced
from nosync.model.hash_range import ALL_HASHES
from nosync.model.layers import LayerInfo
from nosync.model.retention import Kept
from nosync.model.run import Runner
from nosync.store.disk import LocalDisk
from nosync.store.objects import Objects, open_remote

EPOCHS = 40


def layer(epoch: int) -> LayerInfo:
    return LayerInfo("v", ALL_HASHES, epoch, epoch + 1, "diffs", f"layers/v/0-f/{epoch}.arrow", 1, 1, "")


class Flow:
    """A journal of forty epochs with a roll-up every five."""

    def __init__(self, home: Path, remote: Objects | None = None) -> None:
        self.disk, self.remote = LocalDisk(home, fsync=lambda descriptor: None), remote
        self.journal = Journal(self.disk, remote, Runner(1, "host", "boot", 0.0, "00000001"))
        self.roller = Roller(self.journal, self.disk, remote, 10)
        for epoch in range(1, EPOCHS + 1):
            self.journal.append(Opened(epoch, float(epoch), {"s": {"number": epoch}}))
            self.journal.append(Computed(epoch, (layer(epoch),), {"s": 7}, {}, {"s": 100 * epoch}))
            self.journal.ship()
            self.roller.step(self.journal.number)
        self.reader = TieredReader(self.disk, remote)

    def thin(self, since: int, *among: int) -> None:
        """Nothing before is kept but some epochs."""
        self.journal.append(Thinned(since, among, ()))

    def forget(self) -> Forgetter:
        forgetter = Forgetter(self.journal, self.disk, self.remote)
        for _ in range(100):
            if not forgetter.step():
                return forgetter
        raise AssertionError("it never ends")

    def known(self) -> Any:
        """All that a start, a recovery and a changed program ask for."""
        base, late = self.journal.base, self.journal.after(self.journal.base)
        whole = whole_image(self.reader, self.journal.image, base, late)
        taken = taken_from(["s"], self.reader, base, late, {})["s"]
        some = rolled_openings_of(self.reader, base, {5, 17}, 2)
        return whole.opened, whole.seen, whole.rows, whole.traces, openings(self.reader, base, late), some, list(taken), taken.latest

    def epochs_of_segments(self, names: Iterable[str]) -> list[list[int]]:
        parts = [part for part in stretches(self.reader, self.journal.base) if part.whole]
        assert {(part.first, part.last) for part in parts} == set(map(numbers_in, names))
        return [sorted({entry.epoch for entry in part.entries if isinstance(entry, Opened | Computed)}) for part in parts]


@pytest.fixture(params=[False, True], ids=["home", "home and remote"])
def flow(request: pytest.FixtureRequest, tmp_path: Path) -> Flow:
    return Flow(tmp_path, open_remote(f"memory://{uuid4().hex}") if request.param else None)


def test_segments_go_of_which_no_epoch_is_kept_and_what_they_say_of_epochs_stays(flow: Flow) -> None:
    flow.thin(31, 12)
    before = flow.known()
    flow.forget()
    for store in (flow.disk, flow.remote) if flow.remote else (flow.disk,):
        left = flow.epochs_of_segments(store.sizes(SEGMENTS))
        assert all(12 in epochs or max(epochs) >= 31 for epochs in left) and any(12 in epochs for epochs in left)
        assert len(store.sizes(OPENINGS)) <= len(left) + 4, "what lies side by side is in few files"
    assert flow.known() == before


def test_what_is_kept_no_longer_is_given_up_later_and_becomes_one_file(flow: Flow) -> None:
    flow.thin(31, 12)
    forgetter = flow.forget()
    before = flow.known()
    flow.journal.append(Thinned(31, (), (12,)))
    assert forgetter.step() and not forgetter.step()
    assert len(spans(flow.reader, flow.journal.base)) == 1 + len(flow.disk.sizes(SEGMENTS))
    assert flow.known() == before


def test_what_would_be_too_large_to_be_read_stays_in_several_files(flow: Flow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nosync.journal.forgetting.MOST_BYTES", 1000)
    flow.thin(31)
    before = flow.known()
    assert flow.forget().given_up == len(flow.disk.sizes(OPENINGS)) - len(flow.disk.sizes(SEGMENTS))
    assert flow.known() == before


def test_nothing_is_given_up_while_all_is_kept(flow: Flow) -> None:
    assert not Forgetter(flow.journal, flow.disk, flow.remote).step()
    flow.thin(2)
    before = len(flow.disk.sizes(SEGMENTS))
    flow.forget()
    assert len(flow.disk.sizes(SEGMENTS)) == before


class Stop(Exception):
    """Of the process, in the middle of it."""


@pytest.mark.parametrize("calls", range(8))
def test_it_goes_on_where_it_was_stopped(flow: Flow, calls: int, monkeypatch: pytest.MonkeyPatch) -> None:
    flow.thin(31, 12)
    before, done = flow.known(), [0]

    def counted(plain: Any) -> Any:
        def call(*arguments: Any) -> Any:
            done[0] += 1
            if done[0] > calls:
                raise Stop
            return plain(*arguments)

        return call

    with monkeypatch.context() as stopping:
        for store in [store for store in (flow.disk, flow.remote) if store is not None]:
            stopping.setattr(store, "replace", counted(store.replace))
            stopping.setattr(store, "delete", counted(store.delete))
        with pytest.raises(Stop):
            flow.forget()
        assert flow.known() == before
    flow.forget()
    assert flow.known() == before
    for store in (flow.disk, flow.remote) if flow.remote else (flow.disk,):
        assert len(store.sizes(OPENINGS)) == len(spans(flow.reader, flow.journal.base)), "nothing is left within a longer one"
        assert set(map(numbers_in, store.sizes(OPENINGS))) == set(spans(flow.reader, flow.journal.base))


def test_openings_that_are_torn_are_made_whole_first(flow: Flow) -> None:
    flow.thin(31)
    before = flow.known()
    for name in flow.disk.sizes(SEGMENTS):
        for store in (flow.disk, flow.remote) if flow.remote else (flow.disk,):
            store.replace(openings_name(name), b"torn")
    flow.forget()
    assert flow.known() == before


def test_a_run_that_was_overtaken_deletes_nothing(flow: Flow) -> None:
    flow.thin(31)
    before = set(flow.disk.sizes(SEGMENTS))
    flow.journal.fence(Fenced("another run"))
    with pytest.raises(Fenced):
        Forgetter(flow.journal, flow.disk, flow.remote).step()
    assert set(flow.disk.sizes(SEGMENTS)) == before


def test_where_the_past_is_damaged_everything_stays(tmp_path: Path) -> None:
    flow = Flow(tmp_path)
    flow.thin(31)
    name = min(flow.disk.sizes(SEGMENTS))
    flow.disk.replace(name, b"torn")
    flow.disk.replace(openings_name(name), b"torn")
    assert not Forgetter(flow.journal, flow.disk, None).step()
    with pytest.raises(Corrupt, match="are in no segment"):
        past_files(flow.reader, flow.journal.base)


def test_a_home_that_lost_what_is_left_reads_it_from_the_remote(tmp_path: Path) -> None:
    flow = Flow(tmp_path, open_remote(f"memory://{uuid4().hex}"))
    flow.thin(31)
    flow.forget()
    before = flow.known()
    for number, name in enumerate(sorted(flow.disk.sizes(OPENINGS))):
        if number % 2:
            flow.disk.delete(name)
        else:
            flow.disk.replace(name, b"torn")
    assert flow.known() == before


def test_history_says_what_it_does_not_know_any_more(tmp_path: Path) -> None:
    flow = Flow(tmp_path)
    flow.thin(31, 12)
    flow.forget()
    parts = stretches(flow.reader, flow.journal.base)
    found = {row["epoch"]: row for row in epochs_of(parts, flow.journal.image, {"process": EPOCHS}, {"v": "v"}).to_pylist()}
    assert (found[2]["rows_in"], found[2]["rows_out"], found[2]["layers"], found[2]["bytes"]) == ([("s", 7)], None, None, None)
    assert not found[2]["kept"] and found[2]["slices"] == [("s", '{"number": 2}')]
    assert (found[12]["rows_out"], found[12]["layers"], found[12]["kept"]) == ([("v", 1)], 1, True)


def test_of_roll_ups_the_last_two_stay(flow: Flow) -> None:
    for store in (flow.disk, flow.remote) if flow.remote else (flow.disk,):
        assert len(store.sizes(ROLLUPS)) == 2
        assert max(numbers_in(name)[0] for name in store.sizes(ROLLUPS)) == flow.journal.base


def test_neighbours_become_one_file_as_long_as_those_before_are_not_longer() -> None:
    past = [(1, 100), (101, 120), (121, 130), (131, 140), (141, 150), (151, 160)]
    assert neighbours(past, (131, 140), {(131, 140), (151, 160)}) == [(101, 120), (121, 130), (131, 140), (141, 150)]
    assert neighbours(past, (131, 140), {(121, 130), (131, 140), (141, 150)}) == [(131, 140)]


def test_files_stay_few_over_many_segments() -> None:
    """As the flow goes on: one segment after the other is given up, but for every twelfth, which is kept a hundred longer."""
    past, whole = list[tuple[int, int]](), set[tuple[int, int]]()
    for number in range(2000):
        past.append((10 * number + 1, 10 * number + 10))
        whole.add(past[-1])
        due = [span for span in past if span in whole and (span[1] < 10 * (number - 120) or (span[1] < 10 * number and span[1] // 10 % 12))]
        for span in due:
            together = neighbours(past, span, whole)
            past[past.index(together[0]) : past.index(together[-1]) + 1] = [(together[0][0], together[-1][1])]
            whole.discard(span)
    assert len(past) < 60 and past[0][1] > 10_000


def test_what_is_kept_is_asked_of_all_epochs_of_a_segment() -> None:
    assert Kept(31, (12,)).count(1, 11) == 0 and Kept(31, (12,)).count(1, 12) == 1 and Kept(31).count(1, 0) == 0
