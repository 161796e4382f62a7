"""A flow that keeps little of its past, for some forty epochs, with a window and a sink: few files are left, neither handles nor threads
grow, and what is kept is what batch says of it.
"""

import os
import random
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

import nosync as ns
from nosync.cli.main import main
from nosync.duties.merge_worker import carry_out
from nosync.duties.merging import Merger, due_folds, due_merges
from nosync.journal.entries import Keeping, Merged
from nosync.journal.image import Image
from nosync.journal.pins import pin
from nosync.model.compaction import DEFAULT, Compaction
from nosync.model.identifiers import NO_EPOCH, Epoch
from nosync.model.ladder import ladder_of
from nosync.model.layers import LayerInfo
from nosync.runtime.starting import begin
from nosync.runtime.stepping import Stepping
from nosync.state.cover import pieces
from nosync.store.disk import LocalDisk
from nosync.testing import Change
from nosync.testing.judge import judge
from nosync.testing.oracle import Tables
from nosync.testing.rows import difference
from tests.cli.test_keep import at_rest
from tests.metamorphic import checksums

SCHEMAS = {"a": "k int, d int", "b": "k int, u string", "c": "at timestamp, v int"}
QUERIES = {
    "sums": "select k, count(*) n, sum(d) d from a group by k",
    "joined": "select a.k, a.d, b.u from a join b on a.k = b.k",
    "windows": "select window(at, '1 minute').start w, sum(v) v from c group by window(at, '1 minute')",
}
BEGIN = datetime(2026, 5, 1, tzinfo=UTC)
KNOBS = Compaction(2000, 3.0, 0.2)  # from the second start on
EPOCHS, KEPT, PINNED, MOST_FILES = 40, 5, 7, 24
MOST_MORE = 8  # handles and threads than after the second time that all was tidied up
MOST_MAPPED = 170  # layers of this home, by this process: those that it has, and those that went since it last looked


def history() -> list[Change]:
    chance, alive = random.Random(5), list[tuple[int, int]]()
    found = []
    for epoch in range(EPOCHS):
        gone = chance.sample(alive, len(alive) // 4)
        added = [(chance.randint(1, 6), epoch * 10 + number) for number in range(3)]
        alive = [row for row in alive if row not in gone] + added
        times = [(BEGIN + timedelta(seconds=20 * epoch + second), second) for second in range(2)]
        found.append(Change({"a": added, "b": [(chance.randint(1, 6), f"u{epoch}")], "c": times}, {"a": gone} if gone else {}))
    return found


class Idle(Merger):
    """Leaves all merging to `Place.tidy`, which does it at once."""

    def offer(self, image: Image, last: Epoch = NO_EPOCH) -> None:
        pass


class Place:
    def __init__(self, spark: SparkSession, home: Path) -> None:
        self.home, self.changes, self.tables = home, history(), Tables(spark, SCHEMAS, history())
        self.flow = ns.Flow("few files", spark)
        self.sources = {name: ns.memory(schema, removals=name != "c") for name, schema in SCHEMAS.items()}
        for name, source in self.sources.items():
            self.flow.source(name, source, checked=False, watermark=("at", "10 seconds") if name == "c" else None)
        for name, query in QUERIES.items():
            self.flow.sql(f"create view {name} as {query}")
        self.flow.sink("out", self.flow.sql("select k, n from sums"), ns.parquet(home.parent / "out"))
        self.flow.sink("calls", self.flow.sql("select w, v from windows"), ns.foreachEpoch(lambda changes, epoch: None))
        self.taken = list[tuple[int, int]]()  # file handles and threads of this process
        self.knobs = DEFAULT

    def start(self) -> Stepping:
        stepping = begin(replace(self.flow.program(), compaction=self.knobs), self.home, 2).recover()
        stepping.upkeep.look_for_orphans()
        stepping.merger = Idle(str(self.home), "few files", stepping.run)
        return stepping

    def feed(self, stepping: Stepping, epochs: range) -> None:
        for epoch in epochs:
            for name, rows in self.changes[epoch - 1].added.items():
                self.sources[name].add(list(rows))
            for name, rows in self.changes[epoch - 1].removed.items():
                self.sources[name].remove(list(rows))
            assert stepping.step() is not None
            assert stepping.image.epoch == epoch
            if epoch == PINNED:
                pin(stepping.journal, "seven", epoch)
            if epoch % 9 == 0:
                self.tidy(stepping)

    def tidy(self, stepping: Stepping) -> None:
        """All that goes on behind the stream, until nothing is left to do."""
        while True:
            while any(duty() for duty in stepping.upkeep.duties().values()):
                pass
            image, last = stepping.image, stepping.upkeep.may_go(stepping.image.epoch)
            parts = [(trace, held) for trace, written in image.traces.items() for held in pieces(written)]
            orders = [*chain(*due_merges(image, knobs=self.knobs)[:1]), *due_folds(image, last, parts, self.knobs)]
            if not orders:
                self.taken.append((len(os.listdir("/proc/self/fd")), threading.active_count()))
                return
            for order in orders:
                layer = LayerInfo.from_json(carry_out(str(self.home), "few files", stepping.run, order))
                stepping.journal.append(Merged(layer))

    def batch_at(self, epoch: int) -> Any:
        batch = self.tables.batch(epoch)
        for name, query in QUERIES.items():
            batch.sql(f"create view {name} as {query}")
        return batch

    def most_files(self) -> int:
        """Of a trace in a shard."""
        return max(len(list(folder.iterdir())) for folder in (self.home / "layers").glob("*/*"))


@pytest.fixture(scope="module")
def place(quick: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    place = Place(quick, tmp_path_factory.mktemp("few") / "home")
    stepping = place.start()
    stepping.journal.append(Keeping(ladder_of(KEPT).said))
    place.feed(stepping, range(1, 25))
    reader = ns.open(place.home)
    view = reader.view("sums", at=24)
    place.feed(stepping, range(25, 36))
    place.tidy(stepping)
    assert 24 not in stepping.image.kept
    assert not difference(place.batch_at(24).answer("sums"), view.to_arrow())
    stepping.close()
    del reader, view
    place.knobs = KNOBS  # which changes no answer
    stepping = place.start()
    place.feed(stepping, range(36, EPOCHS + 1))
    place.tidy(stepping)
    assert stepping.image.pins == {"seven": PINNED}
    stepping.close()
    yield place


def test_few_files_are_left(place: Place) -> None:
    assert place.most_files() <= MOST_FILES


def test_every_kept_epoch_and_the_pinned_one_are_what_batch_says(place: Place) -> None:
    home = ns.open(place.home)
    kept = [epoch for epoch in range(1, EPOCHS + 1) if epoch in home.image.kept]
    assert kept[0] == PINNED
    assert kept[-KEPT:] == [*range(EPOCHS - KEPT + 1, EPOCHS + 1)]
    judge(home, place.batch_at, kept)


def test_changes_between_kept_epochs_add_up(place: Place) -> None:
    home = ns.open(place.home)
    for name in QUERIES:
        rows = Counter(repr(list(row.values())) for row in home.view(name, at=PINNED).to_pylist())
        for *row, _, _, weight in (row.values() for row in home.changes(name, since=PINNED).to_pylist()):
            rows[repr(row)] += weight
        assert +rows == Counter(repr(list(row.values())) for row in home.view(name).to_pylist())


def test_what_is_not_kept_names_its_neighbours(place: Place) -> None:
    with pytest.raises(ns.NotInHistory, match=r"epoch 20 .* is not kept") as refused:
        ns.open(place.home).view("joined", at=20)
    assert f"epoch {PINNED} or {EPOCHS - KEPT + 1}" in str(refused.value)


def test_bytes_and_open_files_are_bounded_too(place: Place) -> None:
    """What lies on the disk is what the journal names; of the hundreds that went, few are still mapped."""
    image = ns.open(place.home).image
    assert sum(LocalDisk(place.home).sizes("layers").values()) == sum(layer.bytes for layer in image.layers())
    mapped = {line.split(maxsplit=5)[5] for line in Path("/proc/self/maps").read_text().splitlines() if f"{place.home}/layers/" in line}
    assert len(checksums(place.home)) > 1.5 * MOST_MAPPED
    assert len(mapped) <= MOST_MAPPED, f"{len(mapped)} layers are mapped"


def test_neither_handles_nor_threads_grow_with_epochs(place: Place) -> None:
    early, late = place.taken[1], place.taken[-1]
    assert all(after <= before + MOST_MORE for before, after in zip(early, late, strict=True)), place.taken


def test_all_sinks_have_got_every_epoch(place: Place) -> None:
    assert ns.open(place.home).image.released == {"out": EPOCHS, "calls": EPOCHS}


def test_a_home_at_rest_is_compacted_by_hand(place: Place, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(place.home, home, ignore=shutil.ignore_patterns("readers"))
    before = len(LocalDisk(home).sizes("layers"))
    for command in (["keep", str(home), "2"], ["pin", str(home), "seven", "--drop"], ["compact", str(home), "--dirty-ratio", "0.05"]):
        at_rest(home)
        result = CliRunner().invoke(main, command)
        assert result.exit_code == 0, result.output
    after = LocalDisk(home).sizes("layers")
    assert len(after) < before and after.keys() == {layer.path for layer in ns.open(home).image.layers()}
    assert f"{before:,} files of layers" in result.output and f"every epoch from {EPOCHS - 1} on" in result.output
    judge(ns.open(home), place.batch_at, [EPOCHS - 1, EPOCHS])
