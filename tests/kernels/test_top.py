"""top against a list: the first rows of touched groups and no more, whatever comes and goes, however many layers there are."""

import random
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nosync.kernels import top as module
from nosync.kernels.top import By, Limit, Order, order_codes, top
from nosync.model.hash_range import ALL_HASHES
from nosync.state.layer import Layer, open_layer, write_layer

Row = tuple[Any, Any]  # key and the value to order by


def batch(limit: Limit, rows: list[tuple[Row, int]], coarse: int = 1) -> pa.RecordBatch:
    """A change in the form of a diffs layer. Hashes collide; with `coarse` different values share a place."""
    values = pa.array([None if x is None else x // coarse for (_, x), _ in rows], pa.int64())
    return pa.RecordBatch.from_pydict(
        {
            "_hash": pa.array([len(key or "") for (key, _), _ in rows], pa.uint64()),
            "_row": pa.array(order_codes(limit, [values])),
            "k0": pa.array([key for (key, _), _ in rows], pa.string()),
            "c0": pa.array([x for (_, x), _ in rows], pa.int64()),
            "_count": pa.array([count for _, count in rows], pa.int64()),
        }
    )


def kept(folder: Path, content: pa.RecordBatch, epoch: int, rows: int = 3) -> Layer:
    """A layer in blocks of a few rows."""
    facts = {"flow": "f", "trace": "o", "run": "r"}
    blocks = [content.slice(start, rows) for start in range(0, content.num_rows, rows)]
    info = write_layer(str(folder), f"{epoch}.arrow", blocks, range=ALL_HASHES, lower=epoch, upper=epoch + 1, kind="diffs", **facts)
    return open_layer(str(folder), info)


def ranked(limit: Limit, rows: list[Row]) -> list[Row]:
    """The rows that the limit asks for; of equal ones under row_number any."""
    def order(row: Row) -> tuple[bool, int]:
        x = row[1]
        [one] = limit.orders
        return (x is None) != one.nulls_first, 0 if x is None else -x if one.descending else x

    ordered = sorted(rows, key=order)
    chosen = []
    for number, row in enumerate(ordered):
        before = sum(order(other) < order(row) for other in ordered)
        different = len({order(other) for other in ordered if order(other) < order(row)})
        rank = {"row_number": number, "rank": before, "dense_rank": different}[limit.by]
        if rank < limit.k:
            chosen.append(row)
    return chosen


@pytest.mark.parametrize("by", ["row_number", "rank", "dense_rank"])
@pytest.mark.parametrize("seed", range(60))
def test_the_first_rows_of_touched_groups_are_handed_out(seed: int, by: By, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_LOOK", 1)
    chance = random.Random(f"{seed}{by}")
    limit = Limit(chance.randint(1, 3), by, (Order(chance.random() < 0.5, chance.random() < 0.5),))
    coarse = chance.choice([1, 1, 4])
    alive: list[Row] = []
    layers: list[Layer] = []
    for epoch in range(1, 7):
        before = list(alive)
        gone = chance.sample(alive, chance.randint(0, len(alive) // 2))
        for row in gone:
            alive.remove(row)
        added = [(chance.choice(["a", "b", "cc", None]), chance.choice([None, *range(20)])) for _ in range(chance.randint(0, 9))]
        alive += added
        changes = [(row, 1) for row in added] + [(row, -1) for row in gone]
        chance.shuffle(changes)
        found = top(layers, batch(limit, changes, coarse), 1, limit)
        layers.insert(0, kept(tmp_path, found.layer, epoch))
        _check(limit, before, alive, found, f"seed {seed}, epoch {epoch}")


def _check(limit: Limit, before: list[Row], alive: list[Row], found: Any, where: str) -> None:
    names = [column.to_pylist() for column in (found.rows.column("k0"), found.rows.column("c0"))]
    rows = list(zip(*names, found.ghosts.tolist(), strict=True))
    emitted = {key for key, _, ghost in rows if ghost}
    for key in {row[0] for row in before + alive}:
        old, new = ([row for row in state if row[0] == key] for state in (before, alive))
        given = [(name, x) for name, x, ghost in rows if name == key and not ghost]
        wanted = Counter(x for _, x in ranked(limit, new))
        if key not in emitted:
            assert not given and wanted == Counter(x for _, x in ranked(limit, old)), where
        else:
            assert Counter(x for _, x in ranked(limit, given)) == wanted, where
            assert not Counter(given) - Counter(new), where


def test_a_change_behind_the_first_rows_touches_nothing(tmp_path: Path) -> None:
    limit = Limit(2)
    first = top([], batch(limit, [(("a", x), 1) for x in range(5)]), 1, limit)
    layer = kept(tmp_path, first.layer, 1)
    assert first.rows.column("c0").to_pylist()[:2] == [0, 1] and first.ghosts.tolist() == [False, False, True]
    behind = top([layer], batch(limit, [(("a", 7), 1), (("a", 3), -1)]), 1, limit)
    assert behind.rows.num_rows == 0 and behind.layer.num_rows == 2


def test_the_next_row_comes_up_from_below(tmp_path: Path) -> None:
    limit = Limit(2)
    layer = kept(tmp_path, top([], batch(limit, [(("a", x), 1) for x in range(500)]), 1, limit).layer, 1, rows=50)
    gone = [(("a", x), -1) for x in range(300)]
    found = top([layer], batch(limit, gone), 1, limit)
    assert found.rows.column("c0").to_pylist()[:2] == [300, 301]


def test_few_of_many_rows_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = Limit(3)
    layer = kept(tmp_path, top([], batch(limit, [(("a", x), 1) for x in range(20_000)]), 1, limit).layer, 1, rows=1000)
    asked: list[int] = []
    hashes = layer.hashes
    monkeypatch.setattr(layer, "hashes", lambda block: asked.append(block) or hashes(block))
    found = top([layer], batch(limit, [(("a", -1), 1), (("a", 1), -1)]), 1, limit)
    assert found.rows.column("c0").to_pylist()[:3] == [-1, 0, 2]
    assert set(asked) == {0, 19}  # where the group begins, and where it ends


VALUES: dict[str, tuple[pa.DataType, Any]] = {
    "integers": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "doubles": (pa.float64(), st.floats(allow_nan=False)),
    "texts": (pa.string(), st.text(max_size=12)),
    "narrow decimals": (pa.decimal128(18, 3), st.decimals(-(10**15) + 1, 10**15 - 1, places=3)),
    "wide decimals": (pa.decimal128(38, 0), st.integers(-(10**38) + 1, 10**38 - 1).map(Decimal)),
    "dates": (pa.date32(), st.dates()),
}


@pytest.mark.parametrize("sort", VALUES)
@settings(deadline=None)
@given(data=st.data())
def test_order_codes_never_contradict_the_order_of_the_values(sort: str, data: st.DataObject) -> None:
    kind, values = VALUES[sort]
    found = data.draw(st.lists(values, min_size=2, max_size=20))
    found.sort(key=lambda value: value.encode() if isinstance(value, str) else value)
    up, down = (
        np.concatenate([order_codes(Limit(1, orders=(order,)), [pa.array(part, kind)]) for part in (found[:1], found[1:])])
        for order in (Order(), Order(descending=True))
    )
    assert (up[1:] >= up[:-1]).all() and (down[1:] <= down[:-1]).all()


SEVERAL = st.tuples(*(st.none() | st.integers(-bound, bound - 1) for bound in (2**7, 2**15, 2**31, 2**63)))


@settings(deadline=None)
@given(st.lists(SEVERAL, min_size=2, max_size=20), st.lists(st.booleans(), min_size=8, max_size=8))
def test_several_values_are_in_order_one_after_the_other(rows: list[tuple[int | None, ...]], turns: list[bool]) -> None:
    orders = tuple(Order(turns[i], turns[i + 4]) for i in range(4))

    def order(row: tuple[int | None, ...]) -> list[tuple[bool, int]]:
        pairs = zip(row, orders, strict=True)
        return [((x is None) != one.nulls_first, 0 if x is None else -x if one.descending else x) for x, one in pairs]

    rows.sort(key=order)
    kinds = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
    found = order_codes(Limit(1, orders=orders), [pa.array([row[i] for row in rows], kind) for i, kind in enumerate(kinds)])
    assert (found[1:] >= found[:-1]).all()
    assert all(a != b for a, b, x, y in zip(found, found[1:], rows, rows[1:], strict=False) if x[:3] != y[:3])  # 9, 17 and 33 bits


def test_what_has_no_order_here_has_one_place() -> None:
    assert len(set(order_codes(Limit(1), [pa.array([[1], [0]], pa.list_(pa.int8()))]).tolist())) == 1
