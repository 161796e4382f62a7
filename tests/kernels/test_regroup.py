"""regroup against a dictionary: touched groups come out whole, emptied ones are announced, only differences come out."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from nosync.kernels.regroup import gather, replace_results
from nosync.model.hash_range import ALL_HASHES
from nosync.state.layer import Layer, open_layer, write_layer

Row = tuple[Any, Any]


def batch(rows: list[tuple[Row, int]]) -> pa.RecordBatch:
    """A change in the form of a diffs layer. The hashes are poor: keys and rows collide."""
    return pa.RecordBatch.from_pydict(
        {
            "_hash": pa.array([len(key or "") for (key, _), _ in rows], pa.uint64()),
            "_row": pa.array([(x or 0) % 2 for (_, x), _ in rows], pa.uint64()),
            "k0": pa.array([key for (key, _), _ in rows], pa.string()),
            "c0": pa.array([x for (_, x), _ in rows], pa.int64()),
            "_count": pa.array([count for _, count in rows], pa.int64()),
        }
    )


def kept(folder: Path, name: str, content: pa.RecordBatch, epoch: int) -> Layer:
    facts = {"flow": "f", "trace": name, "run": "r", "range": ALL_HASHES}
    info = write_layer(str(folder), f"{name}{epoch}.arrow", [content], lower=epoch, upper=epoch + 1, kind="diffs", **facts)
    return open_layer(str(folder), info)


def rows_of(found: pa.RecordBatch) -> list[Row]:
    return list(zip(found.column("k0").to_pylist(), found.column("c0").to_pylist(), strict=True))


@pytest.mark.parametrize("seed", range(80))
def test_the_rows_of_touched_groups_and_the_settled_difference(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    alive: list[Row] = []
    inputs: list[Layer] = []
    results: list[Layer] = []
    shown: Counter[Row] = Counter()
    for epoch in range(1, 6):
        gone = chance.sample(alive, chance.randint(0, len(alive)))
        for row in gone:
            alive.remove(row)
        added = [(chance.choice(["a", "b", "cc", "", None]), chance.choice([None, 1, 2, 3])) for _ in range(chance.randint(0, 6))]
        alive += added
        net = Counter(added)
        net.subtract(gone)
        touched = {row[0] for row, count in net.items() if count}
        changes = [(row, 1) for row in added] + [(row, -1) for row in gone]
        chance.shuffle(changes)
        found = gather(inputs, batch(changes), 1)
        real, ghosts = found.rows.filter(pa.array(~found.ghosts)), found.rows.filter(pa.array(found.ghosts))
        assert Counter(rows_of(real)) == Counter(row for row in alive if row[0] in touched), f"seed {seed}, epoch {epoch}"
        assert Counter(key for key, _ in rows_of(ghosts)) == Counter(touched - {row[0] for row in alive})
        if found.layer.num_rows == 0:
            continue
        inputs.insert(0, kept(tmp_path, "in", found.layer, epoch))
        sums = {key: sum(row[1] or 0 for row in alive if row[0] == key) for key in {row[0] for row in rows_of(real)}}
        answers = [((key, total), 1) for key, total in sums.items()] + [((key, -1), 1) for key, _ in rows_of(ghosts)]
        change = replace_results(results, batch(answers), np.array([i >= len(sums) for i in range(len(answers))], bool), 1)
        assert all(change.column("_count").to_numpy() != 0)
        shown.update(dict(zip(rows_of(change), change.column("_count").to_pylist(), strict=True)))
        if change.num_rows:
            results.insert(0, kept(tmp_path, "out", change, epoch))
        expected = {key: sum(row[1] or 0 for row in alive if row[0] == key) for key in {row[0] for row in alive}}
        assert +shown == Counter(expected.items()) and not -shown, f"seed {seed}, epoch {epoch}"


def test_a_change_that_cancels_touches_nothing() -> None:
    found = gather([], batch([(("a", 1), 1), (("a", 1), -1)]), 1)
    assert found.layer.num_rows == 0 and found.rows.num_rows == 0 and len(found.ghosts) == 0
