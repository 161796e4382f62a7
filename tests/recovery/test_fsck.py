"""`nosync fsck`: what is there, what is missing, what the next start would do; on homes that are whole, damaged and lost."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

from nosync.cli.main import main
from nosync.journal.entries import Computed, Declared, Merged, Opened, Released, Trimmed
from nosync.journal.journal import Journal
from nosync.journal.names import RECORDS, layer_path, record_name
from nosync.journal.rolling import Roller
from nosync.model.identifiers import Epoch, TraceName
from nosync.model.layers import LayerInfo
from nosync.model.run import this_process
from nosync.model.shards import shard_ranges
from nosync.model.store import fingerprint
from nosync.recovery.verdict import REPAIRABLE, WHOLE, joined
from nosync.state.layer import write_layer
from nosync.store.disk import LocalDisk
from nosync.store.objects import open_remote

HALVES = shard_ranges(2)

TRACE = "totals/rows"
DECLARED = Declared("shop", 2, {}, {TRACE: "f"}, {"totals": {"trace": TRACE}}, {}, {TRACE: [TRACE]})


class Place:
    """A home of five epochs in two shards, epochs 1 to 4 of shard 0 merged; with a remote beside it that has everything."""

    def __init__(self, folder: Path) -> None:
        self.home, self.remote = folder / "home", f"file://{folder}/remote"
        self.disk, self.objects = LocalDisk(self.home), open_remote(self.remote)
        self.journal = Journal(self.disk, self.objects, this_process(0.0))
        self.journal.append(DECLARED)
        self.layers: dict[tuple[int, int, int], LayerInfo] = {}
        for epoch in range(1, 6):
            self.disk.replace(f"input/s/{epoch}", b"row")
            self.journal.append(Opened(epoch, 0.0, {"s": {}}, {f"input/s/{epoch}": fingerprint(b"row")}))
            self.journal.append(Computed(epoch, tuple(self.layer(shard, epoch, epoch + 1) for shard in (0, 1)), {"s": 1}, {}))
        self.journal.append(Merged(self.layer(0, 1, 5)))
        self.journal.ship()
        for layer in self.layers.values():
            self.objects.upload(layer.path, self.disk)

    def layer(self, shard: int, lower: int, upper: int) -> LayerInfo:
        numbers = pa.array(range(100), pa.uint64())
        values = numbers.cast("int64")
        batch = pa.RecordBatch.from_pydict({"_hash": numbers, "_row": numbers, "c0": values, "_count": values})
        path = layer_path(TRACE, HALVES[shard], lower, upper, self.journal.run)
        facts: dict[str, Any] = {"trace": TRACE, "range": HALVES[shard], "lower": lower, "upper": upper, "kind": "diffs"}
        found = write_layer(str(self.home), path, [batch], flow="shop", run=self.journal.run, **facts)
        self.layers[shard, lower, upper] = found
        return found

    def file(self, *place: int) -> Path:
        return self.home / self.layers[place].path  # type: ignore[index]

    def damage(self, *place: int) -> None:
        content = bytearray(self.file(*place).read_bytes())
        content[len(content) // 2] ^= 255
        self.file(*place).write_bytes(bytes(content))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def fsck(place: Place, *options: str) -> Result:
    return CliRunner().invoke(main, ["fsck", str(place.home), *options])


def verdict(place: Place, *options: str) -> dict[str, Any]:
    return dict(json.loads(fsck(place, "--json", *options).stdout))


def test_what_a_sink_has_got_is_not_missed_in_a_home_that_took_over(place: Place) -> None:
    sink = TraceName("sink out/rows")
    layer = LayerInfo(sink, HALVES[0], Epoch(6), Epoch(7), "diffs", layer_path(sink, HALVES[0], 6, 7, "1.0"), 1, 9, "")
    place.journal.append(replace(DECLARED, sinks={"out": {"trace": sink, "release": "safe"}}, feeders={TRACE: [TRACE], sink: [sink]}))
    place.journal.append(Opened(6, 0.0, {"s": {}}))
    place.journal.append(Computed(6, (layer,), {"s": 1}, {}))
    assert fsck(place).exit_code == REPAIRABLE  # it has yet to get it
    place.journal.append(Released("out", 6))
    assert fsck(place).exit_code == WHOLE


def test_a_whole_home_has_nothing_to_repair(place: Place) -> None:
    result = fsck(place)
    assert result.exit_code == 0
    assert "The newest state is whole." in result.output
    assert "go on after epoch 5; there is nothing to repair" in result.output
    assert "totals: every epoch can be read, epochs 1 to 5" in result.output
    assert "11 of 11 are there and whole" in result.output


def test_checking_changes_nothing(place: Place) -> None:
    before = {path: path.stat().st_mtime_ns for path in place.home.rglob("*")}
    fsck(place, "--remote", place.remote)
    assert {path: path.stat().st_mtime_ns for path in place.home.rglob("*")} == before


def test_a_missing_layer_is_recomputed_alone(place: Place) -> None:
    place.file(1, 4, 5).unlink()
    result = fsck(place)
    assert result.exit_code == 1
    assert f"will recompute epoch 4 in shard 1 of {TRACE}, then go on after epoch 5" in result.output
    assert "totals: cannot be read here as of epochs 4 to 5" in result.output


def test_a_missing_layer_comes_from_the_remote_where_it_is(place: Place) -> None:
    place.file(1, 4, 5).unlink()
    result = fsck(place, "--remote", place.remote)
    assert result.exit_code == 1
    assert "will fetch 1 file from the remote, then go on after epoch 5" in result.output


def test_old_layers_that_a_merged_one_stands_for_only_cost_their_epochs(place: Place) -> None:
    place.file(0, 2, 3).unlink()
    found = verdict(place)
    assert found["code"] == 0
    assert found["unreadable"] == {"totals": [[2, 3]]}


def test_a_missing_merged_layer_is_replaced_by_what_it_was_made_of(place: Place) -> None:
    place.file(0, 1, 5).unlink()
    result = fsck(place)
    assert result.exit_code == 1
    assert "will read other layers in place of 1 layer gone everywhere" in result.output
    assert "as of epochs 4 to 5" in result.output


def test_a_changed_byte_is_found_by_reading_not_by_sizes(place: Place) -> None:
    place.damage(1, 5, 6)
    assert verdict(place, "--quick")["code"] == 0
    result = fsck(place)
    assert result.exit_code == 1
    assert "delete the damaged files of the home first" in result.output
    assert f"damaged: {place.layers[1, 5, 6].path}" in result.output


def test_a_changed_byte_on_the_remote_is_found_too(place: Place) -> None:
    path = place.layers[1, 5, 6].path
    place.damage(1, 5, 6)
    place.objects.upload(path, place.disk)
    found = verdict(place, "--remote", place.remote)
    assert found["tiers"]["remote"]["damaged"] == [path]
    assert found["withoutDisk"]["recompute"] == [{"first": 5, "last": 5, "shards": {TRACE: [1]}}]


def test_layers_without_input_are_lost_for_good(place: Place) -> None:
    place.journal.append(Trimmed("s", 5))
    place.file(1, 4, 5).unlink()
    result = fsck(place)
    assert result.exit_code == 2
    assert "Something is lost for good." in result.output
    assert "not be able to put the state together" in result.output


def test_trimmed_input_is_not_missed(place: Place) -> None:
    place.journal.append(Trimmed("s", 5))
    shutil.rmtree(place.home / "input")
    found = verdict(place)
    assert (found["code"], found["tiers"]["home"]["missing"]) == (0, [])


def test_an_opened_epoch_without_its_input_is_lost(place: Place) -> None:
    place.journal.append(Opened(6, 0.0, {"s": {}}, {"input/s/6": fingerprint(b"row")}))
    result = fsck(place)
    assert result.exit_code == 2
    assert "will roll back epoch 6, whose input is gone" in result.output


def test_a_lost_disk_comes_back_from_the_remote(place: Place) -> None:
    shutil.rmtree(place.home)
    result = fsck(place, "--remote", place.remote)
    assert result.exit_code == 1
    assert f"will copy {place.journal.number} records from the remote, fetch 7 files" in result.output


def test_what_lies_behind_a_gap_of_the_journal_counts_for_nothing(place: Place) -> None:
    (place.home / record_name(place.journal.number - 1)).unlink()
    found = verdict(place)
    assert found["tiers"]["home"]["number"] == place.journal.number - 2
    assert found["tiers"]["home"]["behind"] == [record_name(place.journal.number)]
    assert found["epoch"] == 4


def test_layers_that_no_record_names_are_harmless(place: Place) -> None:
    place.layer(0, 6, 7)
    result = fsck(place)
    assert result.exit_code == 0
    assert "named by no record: 1 layer (harmless" in result.output


def test_a_journal_that_was_rolled_up_tells_the_same(place: Place) -> None:
    roller = Roller(place.journal, place.disk, place.objects, every=5)
    while roller.step(place.journal.number):
        pass
    assert list(place.disk.sizes(RECORDS)) == [record_name(place.journal.number)]
    found = verdict(place)
    assert (found["code"], found["tiers"]["home"]["rollups"], found["tiers"]["home"]["segments"]) == (0, 1, 1)
    assert found["unreadable"] == {"totals": []}


def test_without_its_past_the_newest_state_is_still_whole(place: Place) -> None:
    roller = Roller(place.journal, place.disk, place.objects, every=5)
    while roller.step(place.journal.number):
        pass
    shutil.rmtree(place.home / "journal" / "segments")
    assert (verdict(place)["code"], verdict(place)["forgotten"]) == (0, ""), "what is left of them says all that is asked for"
    shutil.rmtree(place.home / "journal" / "openings")
    found = verdict(place)
    assert (found["code"], found["unreadable"]) == (0, {"totals": []})
    assert "in no segment" in found["forgotten"]


def test_a_folder_that_is_no_home_cannot_be_checked(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["fsck", str(tmp_path)])
    assert result.exit_code == 2
    assert "is not the home of a flow" in result.output


def test_ranges_that_touch_become_one() -> None:
    assert joined([(5, 6), (1, 2), (3, 3), (9, 9)]) == ((1, 3), (5, 6), (9, 9))
