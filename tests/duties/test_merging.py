"""The merging process: there once something is to be merged, and replaced when it was killed."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pyarrow as pa
import pytest

from nosync.duties import merging
from nosync.duties.merging import Merger, due_merges
from nosync.journal.entries import Computed, Merged, Opened
from nosync.journal.image import Image
from nosync.journal.names import layer_path
from nosync.model.hash_range import ALL_HASHES
from nosync.model.identifiers import Epoch, TraceName
from nosync.model.layers import LayerInfo
from nosync.state.layer import write_layer

RUN = "1.00000000"
ROW = pa.record_batch({"_hash": pa.array([7], pa.uint64()), "k0": ["a"], "n": [1]})


@pytest.fixture
def merger(tmp_path: Path) -> Iterator[Merger]:
    found = Merger(str(tmp_path), "shop", RUN)
    yield found
    found.close()


def history(home: Path, epochs: int) -> Image:
    """One row in each epoch."""
    image = Image()
    for epoch in range(1, epochs + 1):
        place = layer_path("v", ALL_HASHES, epoch, epoch + 1, RUN)
        facts = {"flow": "shop", "trace": "v", "range": ALL_HASHES, "lower": epoch, "upper": epoch + 1, "kind": "upserts", "run": RUN}
        layer = write_layer(home, place, [ROW], **facts)
        for entry in (Opened(epoch, 0.0, {}), Computed(epoch, (layer,), {}, {})):
            image.apply(image.number + 1, entry)
    return image


def processes() -> list[psutil.Process]:
    alive = [child for child in psutil.Process().children() if child.status() != psutil.STATUS_ZOMBIE]
    return [child for child in alive if "nosync.duties.merge_worker" in child.cmdline()]


def test_a_run_that_has_nothing_to_merge_starts_no_process(merger: Merger, tmp_path: Path) -> None:
    merger.offer(history(tmp_path, 3))
    assert merger.collect() == [] and not merger.busy and not processes()


def test_a_process_that_was_killed_is_replaced_and_the_merge_done_all_the_same(merger: Merger, tmp_path: Path) -> None:
    image = history(tmp_path, 4)
    merger.offer(image)
    (first,) = processes()
    first.suspend()
    first.kill()
    first.wait()
    while not (found := merger.collect()):
        merger.offer(image)
    assert [(layer.lower, layer.upper, layer.rows) for layer in found] == [(1, 5, 1)]


def test_everything_is_merged_when_waited_for(merger: Merger, tmp_path: Path) -> None:
    image = history(tmp_path, 6)
    merger.merge_all(image, lambda layer: image.apply(image.number + 1, Merged(layer)))
    assert len(image.newest["v"][ALL_HASHES]) < 4


def test_of_many_traces_only_those_that_have_changed_are_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def layer(trace: str, epoch: int) -> LayerInfo:
        return LayerInfo(TraceName(trace), ALL_HASHES, Epoch(epoch), Epoch(epoch + 1), "upserts", f"{trace}/{epoch}", 1, 1, "")

    image, looked, plan = Image(), list[int](), merging.plan_merge
    monkeypatch.setattr(merging, "plan_merge", lambda known: looked.append(len(known)) or plan(known))
    for epoch in range(1, 6):
        image.apply(image.number + 1, Computed(epoch, tuple(layer(f"v{number}", epoch) for number in range(100)), {}, {}))
    due = merging.DueMerges()
    assert len(due.orders(image)) == len(looked) == 100
    image.apply(image.number + 1, Computed(6, (layer("v7", 6),), {}, {}))
    assert due.orders(image) == due_merges(image) and len(looked) == 100 + 1 + 100
    image.apply(image.number + 1, Merged(replace(layer("v7", 1), upper=Epoch(7), path="merged")))
    assert [len(due.orders(image, some)) for some in (None, 4, 20)] == [99, 12, 20]  # an eighth of them, but not fewer than asked for


def test_many_merges_of_few_rows_are_given_at_once_and_few_of_many_rows() -> None:
    small = merging.SMALL_ROWS // 100
    assert merging.at_once([small] * 200, 4, 64, int) == [small] * 64
    assert merging.at_once([small] * 200, 4, 128, int) == [small] * 100
    assert merging.at_once([merging.SMALL_ROWS] * 200, 4, 64, int) == [merging.SMALL_ROWS] * 4
