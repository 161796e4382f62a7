"""Giving up: what one tier still reads stays, whatever the others have; what came back damaged is of use to nobody."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nosync.duties import compacting
from nosync.duties.compacting import EPOCHS_BETWEEN, ERASED_AT_ONCE, Compactor
from nosync.duties.merging import due_folds
from nosync.journal.entries import Computed, Declared, Merged, Opened, Rescaled, Thinned
from nosync.journal.image_text import from_text, to_text
from nosync.journal.journal import Journal
from nosync.model.errors import Fenced
from nosync.model.hash_range import ALL_HASHES, HashRange
from nosync.model.identifiers import Epoch, RecordNumber, TraceName
from nosync.model.layers import LayerInfo
from nosync.model.run import this_process
from nosync.model.shards import shard_ranges
from nosync.state.cover import known_updates, pieces
from nosync.store.disk import LocalDisk
from nosync.store.objects import open_remote
from nosync.tiers.host import HostTier


def layer(journal: Journal, lower: int, upper: int, bottom: bool = False) -> LayerInfo:
    path = f"layers/v/0-f/{lower:012d}-{upper}-1.aa-{lower}{upper}.arrow"
    journal.disk.replace(path, b"x" * 100)
    return LayerInfo("v", ALL_HASHES, lower, upper, "upserts", path, 1, 100, "abc", bottom=bottom)


def grown(journal: Journal) -> Journal:
    for epoch in (1, 2, 3):
        journal.append(Opened(epoch, 0.0, {}), Computed(epoch, (layer(journal, epoch, epoch + 1),), {}, {}))
    journal.append(Merged(layer(journal, 1, 3, bottom=True)), Merged(layer(journal, 1, 4, bottom=True)), Thinned(3, (), ()))
    return journal


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    """Three epochs, of which the last is kept; the home has all of them in one layer, and the first two in another."""
    return grown(Journal(LocalDisk(tmp_path / "home"), open_remote((tmp_path / "remote").as_uri()), this_process(0.0)))


def compactor(journal: Journal, uploaded: set[str], whole: bool = True) -> Compactor:
    shipper: Any = SimpleNamespace(uploaded=uploaded, wanted={}, lose=uploaded.discard)
    return Compactor(journal, journal.disk, journal.remote, None, shipper, lambda newest: newest, lambda: None, lambda layer: whole)


def left(journal: Journal) -> set[tuple[int, int]]:
    return {(layer.lower, layer.upper) for layer in journal.image.layers()}


def test_what_only_the_remote_reads_is_not_given_up(journal: Journal) -> None:
    names = {(layer.lower, layer.upper): layer.path for layer in journal.image.layers()}
    compactor(journal, {names[1, 3], names[3, 4]}).step(journal.number)
    assert left(journal) == {(1, 3), (3, 4), (1, 4)}
    compactor(journal, {names[1, 3], names[3, 4], names[1, 4]}).step(journal.number)
    assert left(journal) == {(1, 4)}


def test_files_go_once_every_tier_has_the_record_that_says_so(journal: Journal) -> None:
    names = {(layer.lower, layer.upper): layer.path for layer in journal.image.layers()}
    work = compactor(journal, {names[1, 4]})
    before = journal.number
    assert work.step(before) and not work.step(before)
    assert journal.disk.exists(names[1, 2])
    assert work.step(journal.number)
    assert not journal.disk.exists(names[1, 2]) and journal.disk.exists(names[1, 4])


@pytest.mark.parametrize("whole", [True, False])
def test_what_the_home_lacks_comes_back_if_it_is_whole(journal: Journal, whole: bool) -> None:
    name = next(layer.path for layer in journal.image.layers() if (layer.lower, layer.upper) == (1, 4))
    assert journal.remote is not None
    journal.remote.upload(name, journal.disk)
    journal.disk.delete(name)
    uploaded = {name}
    assert compactor(journal, uploaded, whole).step(journal.number)
    assert journal.disk.exists(name) == journal.remote.exists(name) == (name in uploaded) == whole


def test_what_is_nowhere_although_the_remote_had_it_is_not_taken_for_fetched(journal: Journal) -> None:
    name = next(layer.path for layer in journal.image.layers() if (layer.lower, layer.upper) == (1, 4))
    journal.disk.delete(name)
    work = compactor(journal, {name})
    for _ in range(8):
        work.step(journal.number)
    shipper: Any = work.shipper
    assert name in (work.missing or {}) and not shipper.uploaded
    assert {(1, 3), (3, 4)} <= left(journal) and len(journal.disk.sizes("layers")) >= 2


def test_a_run_that_was_overtaken_deletes_nothing_that_came_damaged(journal: Journal, tmp_path: Path) -> None:
    name = next(layer.path for layer in journal.image.layers() if (layer.lower, layer.upper) == (1, 4))
    assert journal.remote is not None
    journal.remote.upload(name, journal.disk)
    journal.disk.delete(name)
    work = compactor(journal, {name}, whole=False)
    Journal(LocalDisk(tmp_path / "elsewhere"), journal.remote, this_process(0.0))
    with pytest.raises(Fenced):
        work.step(journal.number)
    assert journal.remote.exists(name) and not journal.disk.exists(name)


def named(journal: Journal) -> dict[tuple[int, int], str]:
    return {(layer.lower, layer.upper): layer.path for layer in journal.image.layers()}


def test_what_somebody_reads_stays_until_he_has_ended(journal: Journal) -> None:
    names, held = named(journal), list[RecordNumber | None]([None])
    work = compactor(journal, {names[1, 4]})
    work.held = lambda: held[0]
    assert work.step(journal.number)
    given_up = journal.number
    held[0] = RecordNumber(given_up - 1)
    assert not work.step(given_up) and work.erased == 0 and all(map(journal.disk.exists, names.values()))
    held[0] = RecordNumber(given_up)
    assert work.step(given_up) and work.erased == len(names) - 1
    assert [span for span, name in names.items() if journal.disk.exists(name)] == [(1, 4)] and not work.step(given_up)


def test_of_what_was_given_up_in_turn_the_first_may_go_before_the_rest(journal: Journal) -> None:
    names, number = named(journal), journal.number
    work = compactor(journal, {names[1, 4]})
    work.due.extend([(number, names[1, 2], False), (RecordNumber(number + 2), names[2, 3], False)])
    assert work.step(RecordNumber(number + 1))
    assert not journal.disk.exists(names[1, 2]) and journal.disk.exists(names[2, 3]) and len(work.due) == 1
    work.held = lambda: number
    assert not work._erase(RecordNumber(number + 2))
    work.held = lambda: RecordNumber(number + 9)
    assert work._erase(RecordNumber(number + 2)) and not work.due and not journal.disk.exists(names[2, 3])


def test_a_few_files_go_at_a_time(journal: Journal) -> None:
    work = compactor(journal, set())
    work.due.extend((journal.number, f"layers/v/0-f/{number}", False) for number in range(ERASED_AT_ONCE + 1))
    assert work._erase(journal.number) and len(work.due) == 1


def test_a_run_that_was_overtaken_deletes_nothing_that_it_has_given_up(journal: Journal, tmp_path: Path) -> None:
    names = named(journal)
    work = compactor(journal, {names[1, 4]})
    assert work.step(journal.number)
    Journal(LocalDisk(tmp_path / "elsewhere"), journal.remote, this_process(0.0))
    with pytest.raises(Fenced):
        work.step(journal.number)
    assert all(map(journal.disk.exists, names.values())) and work.erased == 0


def test_what_was_given_up_goes_from_the_remote_where_it_was(journal: Journal) -> None:
    names = named(journal)
    assert journal.remote is not None
    for span in ((1, 2), (2, 3), (1, 4)):
        journal.remote.upload(names[span], journal.disk)
    work = compactor(journal, {names[1, 4], names[1, 2]})
    assert work.step(journal.number) and work.step(journal.number)
    assert {span for span, name in names.items() if journal.remote.exists(name)} == {(2, 3), (1, 4)}


def test_without_a_remote_only_the_home_is_cleared(tmp_path: Path) -> None:
    journal = grown(Journal(LocalDisk(tmp_path / "home"), None, this_process(0.0)))
    work = Compactor(journal, journal.disk, None, None, None, lambda newest: newest, lambda: None, lambda layer: True)
    assert work.step(journal.number) and left(journal) == {(1, 4)}
    assert work.step(journal.number) and not work.step(journal.number) and len(journal.disk.sizes("layers")) == 1


def test_a_busy_stream_is_not_kept_from_its_epochs_for_a_few_files(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    work = compactor(journal, {named(journal)[1, 4]})
    work.floor = lambda newest: asked.append(newest) or newest  # type: ignore[func-returns-value]
    journal.append(Opened(4, 0.0, {}))
    assert not work.step(journal.number) and not asked, "it looks only every so many epochs"
    work.looked_epoch = -EPOCHS_BETWEEN
    assert not work.step(journal.number) and asked == [3] and work.looked_epoch == 3, "and lets files gather"
    work.looked_epoch = 3 - EPOCHS_BETWEEN
    monkeypatch.setattr(compacting, "AT_ONCE", len(left(journal)) - 1)
    assert work.step(journal.number) and left(journal) == {(1, 4)}


def test_who_has_looked_looks_again_when_something_has_changed(journal: Journal) -> None:
    asked: list[int] = []
    uploaded = {named(journal)[1, 3], named(journal)[3, 4]}
    work = compactor(journal, uploaded)
    work.floor = lambda newest: asked.append(newest) or newest  # type: ignore[func-returns-value]
    assert work.step(journal.number)
    work.due.clear()
    assert not work.step(journal.number) and not work.step(journal.number) and len(asked) == 2
    uploaded.add(named(journal)[1, 4])
    assert work.step(journal.number) and left(journal) == {(1, 4)}


def test_outputs_go_when_their_sinks_have_them_and_not_before(tmp_path: Path) -> None:
    journal = Journal(LocalDisk(tmp_path / "home"), None, this_process(0.0))
    journal.append(Declared("shop", 1, {}, {}, {}, {"out": {"trace": "v"}, "other": {}}))
    grown(journal)
    work = Compactor(journal, journal.disk, None, None, None, lambda newest: Epoch(2), lambda: None, lambda layer: True)
    assert work.step(journal.number) and left(journal) == {(3, 4), (1, 4)}


def test_a_stand_in_counts_once_it_is_synced(tmp_path: Path) -> None:
    journal = grown(Journal(LocalDisk(tmp_path / "home"), None, this_process(0.0)))
    host = HostTier(journal, journal.disk)
    work = Compactor(journal, journal.disk, None, host, None, lambda newest: newest, lambda: None, lambda layer: True)
    assert work._unsynced() == set(named(journal).values())
    host.step()
    assert work._unsynced() == {named(journal)[1, 3], named(journal)[1, 4]}
    assert not work.step(journal.number) and (3, 4) in left(journal)
    while host.step():
        pass
    journal.append(Opened(4, 0.0, {}), Computed(4, (), {}, {}))  # so that there is something to look for
    assert work._unsynced() == set() and work.step(journal.number) and left(journal) == {(1, 4)}
    work.host = HostTier(journal, journal.disk, layers=False)
    assert work._unsynced() == set()


def test_the_remote_is_asked_for_what_stands_for_the_past(journal: Journal) -> None:
    names = named(journal)
    work = compactor(journal, {names[1, 3], names[3, 4]})
    work.step(journal.number)
    shipper: Any = work.shipper
    assert set(shipper.wanted) == {names[1, 4]}
    journal.append(Opened(4, 0.0, {}), Computed(4, (layer(journal, 4, 5),), {}, {}))
    shipper.uploaded.add(names[1, 4])
    while work.step(journal.number):
        pass
    assert shipper.wanted.keys() <= {path for span, path in named(journal).items() if span == (4, 5)}


LOWER, UPPER = shard_ranges(2)


def cut(journal: Journal, lower: int, upper: int, held: HashRange, bottom: bool = False) -> LayerInfo:
    """A layer of one of two shards."""
    whole = layer(journal, lower, upper, bottom)
    path = f"layers/v/{held}/{lower:012d}-{upper}-1.aa-{lower}{upper}.arrow"
    journal.disk.replace(path, b"x" * 100)
    return replace(whole, range=held, path=path)


def test_a_wide_layer_goes_piece_by_piece_after_a_rescaling(journal: Journal) -> None:
    journal.append(Rescaled(Epoch(4), 2, 0.0), Opened(4, 0.0, {}), Computed(4, (cut(journal, 4, 5, LOWER),), {}, {}))
    journal.append(Merged(cut(journal, 1, 5, LOWER, bottom=True)), Thinned(4, (), ()))
    assert compactor(journal, {one.path for one in journal.image.layers()}).step(journal.number)
    assert left(journal) == {(1, 4), (1, 5)}
    assert [one.without for one in journal.image.layers()] == [(LOWER,), ()]
    written = journal.image.traces[TraceName("v")]
    found = {held: [(one.lower, one.upper) for one in known_updates(layers)] for held, layers in pieces(written).items()}
    assert found == {LOWER: [(1, 5)], UPPER: [(1, 4)]}  # whoever loses the merged layer must know that it was all there is
    assert from_text(to_text(journal.image)) == journal.image

    journal.append(Opened(5, 0.0, {}), Computed(5, (cut(journal, 5, 6, UPPER),), {}, {}))
    journal.append(Merged(cut(journal, 1, 6, UPPER, bottom=True)), Thinned(5, (), ()))
    assert compactor(journal, {one.path for one in journal.image.layers()}).step(journal.number)
    assert {held: [one.upper for one in layers] for held, layers in pieces(written).items()} == {LOWER: [5], UPPER: [6]}


def test_what_was_lost_for_good_and_nobody_needs_is_forgotten(journal: Journal) -> None:
    journal.disk.delete(named(journal)[2, 3])
    assert compactor(journal, {named(journal)[1, 4]}).step(journal.number)
    assert left(journal) == {(1, 4)}


@pytest.mark.parametrize("lost", [(2, 3, 4), (2, 4)])
def test_what_travelled_as_one_layer_is_all_that_is_folded_where_the_rest_is_nowhere(tmp_path: Path, lost: tuple[int, ...]) -> None:
    journal = Journal(LocalDisk(tmp_path / "home"), open_remote((tmp_path / "remote").as_uri()), this_process(0.0))
    for epoch in range(1, 12):
        journal.append(Opened(epoch, 0.0, {}), Computed(epoch, (layer(journal, epoch, epoch + 1),), {}, {}))
    journal.append(Merged(layer(journal, 2, 5)))
    for epoch in lost:
        journal.disk.delete(named(journal)[epoch, epoch + 1])
    compactor(journal, {named(journal)[2, 5]}).step(journal.number)
    assert ({(2, 3), (4, 5)} <= left(journal)) == (3 not in lost)  # while some are there, these epochs can be read
    order = next(due_folds(journal.image, Epoch(11), [(TraceName("v"), ALL_HASHES)]))
    assert all(journal.disk.exists(one["path"]) for one in order["layers"]) == (3 in lost)  # type: ignore[attr-defined]


def test_the_first_layers_of_a_trace_may_be_nowhere_too(tmp_path: Path) -> None:
    """As on a host that took over from a remote where one layer came for them. None of what it knows of is synced there yet."""
    journal = Journal(LocalDisk(tmp_path / "home"), open_remote((tmp_path / "remote").as_uri()), this_process(0.0))
    for epoch in range(1, 12):
        journal.append(Opened(epoch, 0.0, {}), Computed(epoch, (layer(journal, epoch, epoch + 1),), {}, {}))
    journal.append(Merged(layer(journal, 1, 4, bottom=True)))
    for epoch in (1, 2, 3):
        journal.disk.delete(named(journal)[epoch, epoch + 1])
    work = compactor(journal, {named(journal)[1, 4]})
    work.host = HostTier(journal, journal.disk)
    assert not work.step(journal.number)
    while work.host.step():
        pass
    assert work.step(journal.number)
    assert not {(1, 2), (2, 3), (3, 4)} & left(journal)
    assert all(journal.disk.exists(path) for path in work.shipper.wanted)  # type: ignore[union-attr]
    order = next(due_folds(journal.image, Epoch(11), [(TraceName("v"), ALL_HASHES)]))
    assert all(journal.disk.exists(one["path"]) for one in order["layers"])  # type: ignore[attr-defined]


def test_outputs_go_one_by_one_also_after_a_rescaling(tmp_path: Path) -> None:
    journal = Journal(LocalDisk(tmp_path / "home"), None, this_process(0.0))
    journal.append(Declared("shop", 1, {}, {}, {}, {"out": {"trace": "v"}}))
    for epoch in (1, 2, 3):
        made = layer(journal, epoch, epoch + 1)
        made = replace(made, range=HashRange(0, 1 << 63)) if epoch == 2 else made
        journal.append(Opened(epoch, 0.0, {}), Computed(epoch, (made,), {}, {}))
    work = Compactor(journal, journal.disk, None, None, None, lambda newest: Epoch(2), lambda: None, lambda layer: True)
    assert work.step(journal.number) and left(journal) == {(3, 4)}


def test_what_was_fetched_counts_once_it_is_synced(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    name = named(journal)[1, 4]
    assert journal.remote is not None
    journal.remote.upload(name, journal.disk)
    journal.disk.delete(name)
    work, synced = compactor(journal, {name}), list[tuple[str, bool]]()
    for what in ("sync_files", "sync_folders"):
        plain = getattr(journal.disk, what)

        def note(names: list[str], what: str = what, plain: Any = plain) -> None:
            synced.append((what, name in (work.missing or {})))
            plain(names)

        monkeypatch.setattr(journal.disk, what, note)
    assert work._fetch() and name not in (work.missing or {})
    assert synced == [("sync_files", True), ("sync_folders", True)]


def test_only_what_the_remote_has_is_fetched_and_each_once(journal: Journal) -> None:
    names = named(journal)
    assert journal.remote is not None
    journal.remote.upload(names[1, 4], journal.disk)
    for span in ((1, 4), (1, 3)):
        journal.disk.delete(names[span])
    work = compactor(journal, {names[1, 4]})
    work.floor = lambda newest: Epoch(0)
    assert work._fetch() and journal.disk.exists(names[1, 4]) and set(work.missing or ()) == {names[1, 3]}
    assert not work._fetch()
