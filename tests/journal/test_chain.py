"""One chain of records out of what lies on a tier, and one history out of two tiers."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from nosync.journal.chain import Chain, Rollup, believed, common, read_chain
from nosync.journal.entries import Opened
from nosync.journal.image import Image
from nosync.journal.names import record_name, rollup_name
from nosync.journal.record import FIRST, Record, encode
from nosync.model.errors import Corrupt
from nosync.store.disk import LocalDisk


class Disk(LocalDisk):
    """Notes what is read; `vanished` names are listed and yet not there; `meanwhile` happens once, before something is read."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.asked: list[str] = []
        self.vanished: set[str] = set()
        self.meanwhile: list[Callable[[], None]] = []

    def read(self, name: str) -> bytes | None:
        self.asked.append(name)
        while self.meanwhile:
            self.meanwhile.pop()()
        return None if name in self.vanished else super().read(name)


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


def records(last: int, run: str = "1.a", before: Sequence[Record] = ()) -> list[Record]:
    """One opening each, behind those before."""
    found = list(before)
    while len(found) < last:
        number = len(found) + 1
        found.append(encode(number, run, found[-1].digest if found else FIRST, [Opened(number, 0.0, {})]))
    return found


def rolled_up(history: Sequence[Record], number: int) -> Chain:
    image = Image()
    for record in history[:number]:
        for entry in record.entries:
            image.apply(record.number, entry)
    return Chain(Rollup(number, history[number - 1].digest, history[0].digest, image), list(history[number:]))


def write(disk: Disk, chain: Chain) -> None:
    assert chain.rollup is not None
    disk.replace(rollup_name(chain.base, chain.rollup.image.epoch), chain.rollup.content())
    for record in chain.records:
        disk.replace(record_name(record.number), record.content)


def test_what_was_read_before_is_not_read_again(disk: Disk) -> None:
    history = records(6)
    write(disk, rolled_up(history[:5], 3))
    known = read_chain(disk)
    disk.replace(record_name(6), history[5].content)
    disk.asked.clear()
    assert read_chain(disk, known).number == 6
    assert disk.asked == [record_name(6)]


def test_what_was_read_before_is_read_anew_when_it_was_rolled_up(disk: Disk) -> None:
    history = records(6)
    for record in history[:3]:
        disk.replace(record_name(record.number), record.content)
    known = read_chain(disk)
    for record in history[:3]:
        disk.delete(record_name(record.number))
    write(disk, rolled_up(history, 5))
    assert read_chain(disk, known).number == 6


def test_what_is_rolled_up_while_it_is_read_is_read_again(disk: Disk) -> None:
    history = records(6)
    for record in history[:5]:
        disk.replace(record_name(record.number), record.content)

    def roll_up() -> None:
        write(disk, rolled_up(history, 5))
        for record in history[:5]:
            disk.delete(record_name(record.number))

    disk.meanwhile.append(roll_up)
    assert read_chain(disk).number == 6


@pytest.mark.parametrize("first", [2, 3])
def test_records_that_share_an_object_with_what_is_rolled_up_are_read(disk: Disk, first: int) -> None:
    history = records(5)
    write(disk, Chain(rolled_up(history, 3).rollup))
    disk.replace(record_name(1), history[0].content)
    disk.replace(record_name(first), b"".join(record.content for record in history[first - 1 :]))
    assert read_chain(disk).number == 5


def test_an_object_of_another_history_adds_nothing_to_a_rollup(disk: Disk) -> None:
    history = records(3)
    write(disk, rolled_up(history, 3))
    fork = records(5, "2.b", history[:1])
    disk.replace(record_name(2), b"".join(record.content for record in fork[1:]))
    assert read_chain(disk).number == 3


def test_an_object_that_vanishes_while_a_chain_is_read_ends_it(disk: Disk) -> None:
    history = records(5)
    write(disk, rolled_up(history, 3))
    disk.replace(record_name(3), history[2].content)
    disk.vanished = {record_name(3), record_name(5)}
    assert read_chain(disk).number == 4


def test_a_damaged_rollup_is_passed_over_for_the_one_before(disk: Disk) -> None:
    history = records(6)
    write(disk, rolled_up(history, 3))
    newer = rolled_up(history, 5).rollup
    assert newer is not None
    content = newer.content()
    disk.replace(rollup_name(5, 0), content.replace(b'"epoch":5', b'"epoch":4'))
    chain = read_chain(disk)
    assert (chain.base, chain.number) == (3, 6)


def test_a_rollup_that_vanishes_while_it_is_read_is_passed_over_too(disk: Disk) -> None:
    history = records(6)
    write(disk, rolled_up(history, 3))
    write(disk, rolled_up(history, 5))
    disk.vanished = {rollup_name(5, 0)}
    assert read_chain(disk).base == 3


def test_a_tier_that_has_nothing_goes_on_with_the_other() -> None:
    nothing, something = Chain(), Chain(None, records(3))
    assert common(nothing, something) == common(something, nothing) == 0
    assert believed(nothing, something) is something
    assert believed(something, nothing) is something


def test_a_tier_that_has_rolled_up_shares_its_history_with_one_that_has_not() -> None:
    history = records(5)
    plain, rolled = Chain(None, history), rolled_up(history, 3)
    assert common(plain, rolled) == common(rolled, plain) == 5
    assert common(Chain(None, history[:4]), rolled) == 4
    assert common(rolled, Chain(None, history[:4])) == 4


def test_tiers_agree_up_to_the_fork_and_the_remote_is_right_behind_it() -> None:
    history = records(5)
    home, remote = Chain(None, records(6, "1.a", history[:3])), Chain(None, records(5, "2.b", history[:3]))
    assert common(home, remote) == 3
    assert believed(home, remote) is remote
    assert believed(home, Chain(None, history[:3])) is home


def test_a_home_left_behind_by_what_the_remote_has_rolled_up_shares_nothing_it_can_show() -> None:
    history = records(8)
    assert common(Chain(None, history[:3]), rolled_up(history, 5)) == 0


def test_a_remote_that_ends_before_the_home_begins_is_refused() -> None:
    history = records(8)
    with pytest.raises(Corrupt, match="the home begins at record 5, the remote ends at record 3"):
        common(rolled_up(history, 5), Chain(None, history[:3]))


def test_rollups_of_one_number_that_differ_are_refused() -> None:
    history = records(3)
    home, remote = records(5, "1.a", history), records(5, "2.b", history)
    with pytest.raises(Corrupt, match="nothing joins them"):
        common(rolled_up(home, 5), rolled_up(remote, 5))
