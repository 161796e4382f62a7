"""join against plain Python: after every change, what has been emitted adds up to the join of what is there."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from nosync.kernels import join as kernel
from nosync.kernels.join import LEFT, MATCHED, RIGHT, Joined, Joining, join, rows_at
from nosync.model.errors import Failed
from nosync.model.hash_range import ALL_HASHES
from nosync.state.layer import Layer, open_layer, write_layer

Row = tuple[Any, Any]  # key, value
Emitted = tuple[int, Row | None, Row | None]
KEYS = ["a", "b", "cc", "dd", "", None]
HOWS = ["inner", "left", "right", "full", "single", "semi", "anti", "existence"]


def batch(side: str, rows: list[tuple[Row, int]]) -> pa.RecordBatch:
    """A change in the form of a diffs layer. The hashes are poor: keys and rows collide."""
    return pa.RecordBatch.from_pydict(
        {
            "_hash": pa.array([len(key or "") for (key, _), _ in rows], pa.uint64()),
            "_row": pa.array([(x or 0) % 2 for (_, x), _ in rows], pa.uint64()),
            f"{side}0": pa.array([key for (key, _), _ in rows], pa.string()),
            f"{side}1": pa.array([x for (_, x), _ in rows], pa.int64()),
            "_count": pa.array([count for _, count in rows], pa.int64()),
        }
    )


def kept(folder: Path, name: str, content: pa.RecordBatch, epoch: int, cover: list[Layer]) -> list[Layer]:
    if not content.num_rows:
        return cover
    facts = {"flow": "f", "trace": name, "run": "r", "range": ALL_HASHES}
    info = write_layer(str(folder), f"{name}{epoch}.arrow", [content], lower=epoch, upper=epoch + 1, kind="diffs", **facts)
    return [open_layer(str(folder), info), *cover]


def emitted(found: Joined) -> Counter[Emitted]:
    """The change, added up."""
    total: Counter[Emitted] = Counter()
    for part in found.parts:
        sides = []
        for name, rows, index in (("l", found.left, part.left), ("r", found.right, part.right)):
            columns = [rows_at(rows, f"{name}{i}", index, len(part.weights)).to_pylist() for i in range(2)]
            sides.append([None] * len(part.weights) if index is None else list(zip(*columns, strict=True)))
        assert np.all(part.weights)
        for left, right, weight in zip(*sides, part.weights.tolist(), strict=True):
            total[(part.kind, left, right)] += weight
    assert all(total.values()), "something was emitted and taken back at once"
    return total


def naive(how: str, left: list[Row], right: list[Row]) -> Counter[Emitted]:
    result: Counter[Emitted] = Counter()
    for one in left:
        matches = [other for other in right if one[0] is not None and one[0] == other[0]]
        if how in ("inner", "left", "right", "full", "single"):
            result.update((MATCHED, one, other) for other in matches)
        if matches and how in ("semi", "existence"):
            result[(MATCHED, one, None)] += 1
        if not matches and how in ("left", "full", "single", "anti", "existence"):
            result[(LEFT, one, None)] += 1
    if how in ("right", "full"):
        result.update((RIGHT, None, other) for other in right if other[0] is None or all(other[0] != one[0] for one in left))
    return result


def changed(chance: random.Random, alive: list[Row], single: bool) -> list[tuple[Row, int]]:
    """Random removals and additions, applied to `alive`."""
    if single:  # one row a key
        gone, keys = chance.sample(alive, chance.randint(0, len(alive))), chance.sample(KEYS, chance.randint(0, 3))
        added = [(key, chance.choice([None, 1, 2, 3])) for key in keys if key not in {k for k, _ in alive if (k, _) not in gone}]
    else:
        gone = chance.sample(alive, chance.randint(0, len(alive)))
        added = [(chance.choice(KEYS), chance.choice([None, 1, 2, 3])) for _ in range(chance.randint(0, 5))]
    for row in gone:
        alive.remove(row)
    alive += added
    changes = [(row, 1) for row in added] + [(row, -1) for row in gone]
    chance.shuffle(changes)
    return changes


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("block", range(4))
def test_what_was_emitted_adds_up_to_the_join(how: Any, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "PAIRS", 3)
    for seed in range(block * 25, block * 25 + 25):
        chance = random.Random(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        left: list[Row] = []
        right: list[Row] = []
        covers: tuple[list[Layer], list[Layer]] = [], []
        shown: Counter[Emitted] = Counter()
        for epoch in range(1, 6):
            mine = changed(chance, left, single=False) if chance.random() < 0.8 else []
            others = changed(chance, right, how == "single") if chance.random() < 0.8 else []
            found = join(Joining(how, ("l0",), ("r0",)), covers, (batch("l", mine), batch("r", others)))
            shown.update(emitted(found))
            assert +shown == naive(how, left, right) and not -shown, f"seed {seed}, epoch {epoch}"
            covers = kept(folder, "l", found.layers[0], epoch, covers[0]), kept(folder, "r", found.layers[1], epoch, covers[1])


def test_rows_emitted_as_they_change_are_emitted_matched_or_not() -> None:
    found = join(Joining("inner", ("l0",), ("r0",), alone=(LEFT,)), ([], []), (batch("l", [(("a", 1), 2), ((None, 1), 1)]), batch("r", [])))
    assert emitted(found) == {(LEFT, ("a", 1), None): 2, (LEFT, (None, 1), None): 1}
    assert found.layers[0].num_rows == 1  # a null in the key meets nothing, ever


def test_a_join_without_a_key_meets_everything() -> None:
    changes = batch("l", [(("a", 1), 1), ((None, 2), 1)]), batch("r", [(("b", 3), 2)])
    changes = tuple(change.set_column(0, "_hash", pa.array([42] * change.num_rows, pa.uint64())) for change in changes)  # type: ignore
    found = join(Joining("inner", (), ()), ([], []), changes)
    assert emitted(found) == {(MATCHED, ("a", 1), ("b", 3)): 2, (MATCHED, (None, 2), ("b", 3)): 2}


def test_a_second_row_for_a_single_one_is_an_error_only_where_somebody_asks() -> None:
    two = batch("r", [(("a", 1), 1), (("a", 2), 1)])
    assert emitted(join(Joining("single", ("l0",), ("r0",)), ([], []), (batch("l", [(("b", 1), 1)]), two))) == {(LEFT, ("b", 1), None): 1}
    with pytest.raises(Failed, match="SCALAR_SUBQUERY_TOO_MANY_ROWS"):
        join(Joining("single", ("l0",), ("r0",)), ([], []), (batch("l", [(("a", 1), 1)]), two))


def test_rows_kept_on_the_left_are_read_only_where_matches_appear_or_vanish(tmp_path: Path) -> None:
    spec = Joining("semi", ("l0",), ("r0",))
    first = join(spec, ([], []), (batch("l", [(("a", x), 1) for x in range(9)]), batch("r", [(("a", 1), 1)])))
    covers = kept(tmp_path, "l", first.layers[0], 1, []), kept(tmp_path, "r", first.layers[1], 1, [])
    more = join(spec, covers, (batch("l", []), batch("r", [(("a", 2), 1)])))
    assert more.left.num_rows == 0 and not emitted(more)
    fewer = join(spec, covers, (batch("l", []), batch("r", [(("a", 1), -1)])))
    assert fewer.left.num_rows == 9 and sum(emitted(fewer).values()) == -9
