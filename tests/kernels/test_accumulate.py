"""accumulate against a dictionary: any cut, order and split of the changes gives the same accumulators, and the right ones."""

import math
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from nosync.kernels.accumulate import Accumulation, advance, collapse, grouped, lift, merged
from nosync.kernels.functions import Result
from nosync.kernels.groups import Groups, concat, from_batch
from nosync.model.hash_range import ALL_HASHES
from nosync.state.layer import Layer, open_layer, write_layer

SPEC = Accumulation(
    (pa.string(),),
    (pa.int64(), pa.float64(), pa.bool_(), pa.float64()),
    (
        Result("count", (), pa.int64()),
        Result("count", (0,), pa.int64()),
        Result("sum", (0,), pa.int64(), "null"),
        Result("sum", (1,), pa.float64()),
        Result("avg", (1,), pa.float64()),
        Result("var_pop", (3,), pa.float64()),
        Result("xor", (0,), pa.int64()),
        Result("max", (2,), pa.bool_()),
        Result("min", (2,), pa.bool_()),
        Result("covar_samp", (3, 1), pa.float64()),
    ),
)
GROWING = Accumulation(
    (pa.string(),),
    (pa.int64(), pa.string()),
    (Result("min", (0,), pa.int64()), Result("max", (1,), pa.string()), Result("and", (0,), pa.int64()), Result("or", (0,), pa.int64())),
)
Row = tuple[Any, ...]


def hashes_of(keys: list[Any]) -> np.ndarray:
    """A poor hash: different keys collide."""
    return np.array([7 if key is None else len(key) * 3 for key in keys], np.uint64)


def groups_of(spec: Accumulation, rows: list[tuple[Row, int]]) -> Groups:
    keys = [row[0] for row, _ in rows]
    inputs = [pa.array([row[1 + i] for row, _ in rows], type) for i, type in enumerate(spec.inputs)]
    diffs = np.array([diff for _, diff in rows], np.int64)
    return lift(spec, hashes_of(keys), [pa.array(keys, pa.string())], inputs, diffs)


def random_rows(seed: int, count: int) -> list[Row]:
    chance = random.Random(seed)

    def maybe(value: Any) -> Any:
        return None if chance.random() < 0.15 else value

    def one() -> Row:
        i = maybe(chance.choice([chance.randint(-9, 9), 2**62, -(2**62), 2**33]))
        d = maybe(chance.choice([chance.uniform(-1, 1), 1e300, -1e300, 1e-300, 0.0])) if i is not None else None
        key, small = chance.choice(["", "a", "b", "cc", "dd", "eee"]), chance.choice([0.1, -7.5, 3.0])
        return maybe(key), i, d, maybe(chance.random() < 0.5), maybe(small)

    return [one() for _ in range(count)]


def layer(folder: Path, epoch: int, groups: Groups) -> Layer:
    info = write_layer(
        str(folder), f"{epoch}.arrow", [groups.to_batch()],
        flow="f", trace="o", range=ALL_HASHES, lower=epoch, upper=epoch + 1, kind="upserts", run="r",
    )
    return open_layer(str(folder), info)


def answers(spec: Accumulation, groups: Groups) -> dict[Any, list[Any]]:
    columns = [column.to_pylist() for column in spec.finish(groups)]
    alive = [i for i in range(len(groups)) if groups.n[i] > 0]
    return {groups.keys[0][i].as_py(): [column[i] for column in columns] for i in alive}


def by_hand(rows: list[Row]) -> dict[Any, list[Any]]:
    found: dict[Any, list[Row]] = {}
    for row in rows:
        found.setdefault(row[0], []).append(row)
    return {key: _one(group) for key, group in found.items()}


def _one(group: list[Row]) -> list[Any]:
    whole = [row[1] for row in group if row[1] is not None]
    real = [Fraction(row[2]) for row in group if row[2] is not None]
    flags = [row[3] for row in group if row[3] is not None]
    total, n = sum(whole), len(whole)
    fits = -(2**63) <= total < 2**63
    xor = 0
    for value in whole:
        xor ^= value
    small = [Fraction(row[4]) for row in group if row[4] is not None]
    variance = float(sum(x * x for x in small) / len(small) - (sum(small) / len(small)) ** 2) if small else None
    double = float(sum(real)) if real else None
    pairs = [(Fraction(row[4]), Fraction(row[2])) for row in group if row[4] is not None and row[2] is not None]
    return [
        len(group), n, total if n and fits else None, double, double / len(real) if real and double is not None else None,
        variance, xor if n else None, any(flags) if flags else None, all(flags) if flags else None, _covariance(pairs),
    ]


def _covariance(pairs: list[tuple[Fraction, Fraction]]) -> float | None:
    m = len(pairs)
    if m < 2:
        return None
    top = m * sum(x * y for x, y in pairs) - sum(x for x, _ in pairs) * sum(y for _, y in pairs)
    return float(top / (m * (m - 1)))


def paired(rows: list[Row]) -> list[Row]:
    """covar needs both or neither: what the plan sees to before the kernel."""
    return [(key, i, d if x is not None else None, b, x if d is not None else None) for key, i, d, b, x in rows]


@pytest.mark.parametrize("seed", range(60))
def test_adding_and_taking_away_equals_recomputation(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    alive: list[Row] = []
    cover: list[Layer] = []
    state: dict[Any, list[Any]] = {}
    for epoch in range(1, 6):
        added = paired(random_rows(seed * 10 + epoch, chance.randint(0, 25)))
        gone = chance.sample(alive, chance.randint(0, len(alive)))
        for row in gone:
            alive.remove(row)
        alive += added
        changes = [(row, 1) for row in added] + [(row, -1) for row in gone]
        chance.shuffle(changes)
        if not changes:
            continue
        step = advance(SPEC, cover, collapse(SPEC, groups_of(SPEC, changes)))
        for i in range(len(step.after)):
            state.pop(step.after.keys[0][i].as_py(), None)
        state |= answers(SPEC, step.after)
        cover.insert(0, layer(tmp_path, epoch, step.after))
        assert state == by_hand(alive), f"seed {seed}, epoch {epoch}"


@pytest.mark.parametrize("seed", range(60))
def test_any_split_and_order_gives_the_same_bits(seed: int) -> None:
    chance = random.Random(seed)
    rows = [(row, chance.choice([1, 1, -1, 3])) for row in paired(random_rows(seed, 40))]
    whole = collapse(SPEC, groups_of(SPEC, rows)).to_batch()
    chance.shuffle(rows)
    cuts = sorted(chance.sample(range(1, 40), 3))
    parts = [collapse(SPEC, groups_of(SPEC, rows[a:b])) for a, b in zip([0, *cuts], [*cuts, 40], strict=True)]
    assert merged(SPEC, parts).to_batch().equals(whole)
    packed = [from_batch(part.to_batch(), 1, SPEC.best) for part in parts]
    assert merged(SPEC, packed).to_batch().equals(whole)


@pytest.mark.parametrize("seed", range(30))
def test_the_best_of_growing_input(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    rows: list[Row] = []
    cover: list[Layer] = []
    for epoch in range(1, 5):
        new: list[Row] = [
            (chance.choice(["a", "b", None]), chance.choice([None, 1, -2, 6, 5]), chance.choice([None, "", "x", "ä"])) for _ in range(6)
        ]
        rows += new
        step = advance(GROWING, cover, collapse(GROWING, groups_of(GROWING, [(row, 1) for row in new])))
        cover.insert(0, layer(tmp_path, epoch, step.after))
        for key, found in answers(GROWING, step.after).items():
            whole = [row[1] for row in rows if row[0] == key and row[1] is not None]
            texts = [row[2] for row in rows if row[0] == key and row[2] is not None]
            both = [-1 if whole else None, 0 if whole else None]
            for value in whole:
                both = [both[0] & value, both[1] | value]  # type: ignore[operator]
            assert found == [min(whole, default=None), max(texts, key=str.encode, default=None), *both], f"seed {seed}, epoch {epoch}"


def test_what_was_added_and_taken_away_leaves_no_trace() -> None:
    rows = paired(random_rows(3, 30))
    change = collapse(SPEC, groups_of(SPEC, [(row, diff) for diff in (1, -1) for row in rows]))
    assert not change.n.any() and not any(column.any() for column in change.additive.values())
    assert change.to_batch().schema.names == ["_hash", "k0", "n"]


def test_infinities_and_nan_can_be_taken_away_again(tmp_path: Path) -> None:
    odd: list[tuple[Row, int]] = [(("a", 1, value, None, 1.0), 1) for value in (math.inf, -math.inf, math.nan, 2.5)]
    first = advance(SPEC, [], collapse(SPEC, groups_of(SPEC, odd)))
    assert math.isnan(answers(SPEC, first.after)["a"][3])
    gone = collapse(SPEC, groups_of(SPEC, [(row, -1) for row, _ in odd[:1] + odd[2:3]]))
    second = advance(SPEC, [layer(tmp_path, 1, first.after)], gone)
    assert answers(SPEC, second.after)["a"][3] == -math.inf
    last = collapse(SPEC, groups_of(SPEC, [(odd[1][0], -1)]))
    third = advance(SPEC, [layer(tmp_path, 2, second.after), layer(tmp_path, 3, first.after)], last)
    assert answers(SPEC, third.after)["a"][3] == 2.5


def test_groups_of_no_rows_are_no_groups() -> None:
    assert len(collapse(SPEC, groups_of(SPEC, []))) == 0
    assert len(concat([groups_of(SPEC, []), groups_of(SPEC, [])])) == 0


@pytest.mark.parametrize("seed", range(40))
def test_sorting_rows_first_gives_the_same_groups_to_the_bit(seed: int) -> None:
    chance = random.Random(seed)
    rows = [(row, chance.choice([1, 1, -1, 2])) for row in random_rows(seed, 60)]
    chosen = np.array(sorted(chance.sample(range(60), chance.choice([0, 7, 60]))), np.int64)
    keys = [row[0] for row, _ in rows]
    inputs = [pa.array([row[1 + i] for row, _ in rows], type) for i, type in enumerate(SPEC.inputs)]
    diffs = np.array([diff for _, diff in rows], np.int64)
    expected = collapse(SPEC, groups_of(SPEC, [rows[i] for i in chosen]))
    texts = pa.array(keys, pa.string())
    for key in (texts, texts.dictionary_encode(), texts.dictionary_encode(null_encoding="encode"), doubled(texts)):
        straight = grouped(SPEC, hashes_of(keys), [key], inputs, diffs, chosen)
        assert straight.to_batch().equals(expected.to_batch())


def doubled(texts: pa.Array) -> pa.DictionaryArray:
    """Under a dictionary that has every value twice, as a Parquet file may."""
    once = texts.dictionary_encode()
    codes = [None if code is None else code + len(once.dictionary) * (place % 2) for place, code in enumerate(once.indices.to_pylist())]
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.concat_arrays([once.dictionary, once.dictionary]))


def test_more_groups_than_fit_16_bits_are_the_same_from_a_dictionary() -> None:
    keys = pa.array([f"k{i % 70_000}" for i in range(100_000)])
    hashes = np.random.default_rng(1).permutation(70_000).astype(np.uint64)[np.arange(100_000) % 70_000]
    spec = Accumulation((pa.string(),), (), (Result("count", (), pa.int64()),))
    ones = np.ones(100_000, np.int64)
    coded, plain = (grouped(spec, hashes, [key], [], ones).to_batch() for key in (keys.dictionary_encode(), keys))
    assert coded.num_rows == 70_000 and coded.equals(plain)
