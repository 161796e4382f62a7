"""The ledger against a model that goes through the changes one by one."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from nosync.kernels.ledger import Events, Posted, post_keyed, post_rows
from nosync.model.hash_range import ALL_HASHES
from nosync.state.layer import Layer, open_layer, write_layer
from nosync.state.merge import merge_upserts

HASHES = np.array([3, 3, 5, 2**63], np.uint64)  # of keys 0 to 3: the first two collide
Change = tuple[int, str | None, int, int | None]  # key, value, diff, sequence


def events(changes: list[Change], order: list[int], keyed: bool, sequenced: bool) -> Events:
    """The changes, brought in some order; their positions say where they stood."""
    chosen = [changes[i] for i in order]
    keys, values = pa.array([c[0] for c in chosen], pa.int32()), pa.array([c[1] for c in chosen], pa.string())
    hashes = HASHES[[c[0] for c in chosen]]
    positions = [np.zeros(len(order), np.int64), np.array(order) // 3, np.array(order)]
    sequence = pa.array([c[3] for c in chosen], pa.int64()) if sequenced else None
    return Events(hashes, [keys] if keyed else [], [keys, values], np.array([c[2] for c in chosen]), positions, sequence)


def kept(folder: Path, posted: Posted, epoch: int, cover: list[Layer]) -> list[Layer]:
    """What was posted, on top of the cover; after every second epoch merged with it."""
    facts: dict[str, Any] = {"flow": "f", "trace": "o", "range": ALL_HASHES, "kind": "upserts", "run": "r"}
    if posted.layer.num_rows:
        info = write_layer(folder, f"{epoch}.layer", [posted.layer], lower=epoch, upper=epoch + 1, **facts)
        cover = [open_layer(folder, info), *cover]
    if epoch % 2 or not cover:
        return cover
    blocks = list(merge_upserts(cover, drop_tombstones=True))
    return [open_layer(folder, write_layer(folder, f"to-{epoch}.layer", blocks, lower=1, upper=epoch + 1, **facts))] if blocks else []


def emitted(posted: Posted) -> Counter[tuple[int, str | None]]:
    found: Counter[tuple[int, str | None]] = Counter()
    for key, value, diff in zip(*(column.to_pylist() for column in posted.rows), posted.diffs.tolist(), strict=True):
        found[key, value] += diff
    return found


def random_changes(chance: random.Random) -> list[Change]:
    choices: list[list[Any]] = [[0, 1, 2, 3], ["a", "b", None], [1, 1, -1], [None, 1, 2, 3, 4]]
    return [(*map(chance.choice, choices),) for _ in range(chance.randrange(1, 9))]  # type: ignore[misc]


@pytest.mark.parametrize("seed", range(30))
def test_rows_without_a_key_are_counted_and_never_below_zero(tmp_path: Path, seed: int) -> None:
    chance, cover = random.Random(seed), list[Layer]()
    there: Counter[tuple[int, str | None]] = Counter()
    for epoch in range(1, 7):
        changes = random_changes(chance)
        order = chance.sample(range(len(changes)), len(changes))
        posted = post_rows(cover, events(changes, order, keyed=False, sequenced=False))
        cover = kept(tmp_path, posted, epoch, cover)
        wanted, refused = Counter(there), Counter[tuple[int, str | None]]()
        for key, value, diff, _ in sorted(changes, key=lambda change: -change[2]):
            if diff < 0 and not wanted[key, value]:
                refused[key, value] += 1
            else:
                wanted[key, value] += diff
        there.update(emitted(posted))
        assert {row: n for row, n in there.items() if n} == {row: n for row, n in wanted.items() if n}
        assert Counter((changes[order[i]][0], changes[order[i]][1]) for i in posted.refused) == refused


@pytest.mark.parametrize("sequenced", [False, True])
@pytest.mark.parametrize("seed", range(30))
def test_the_newest_row_of_a_key_counts(tmp_path: Path, seed: int, sequenced: bool) -> None:
    chance, cover = random.Random(seed), list[Layer]()
    newest: dict[int, tuple[int, str | None, bool]] = {}  # sequence, value, whether it is there
    there: Counter[tuple[int, str | None]] = Counter()
    for epoch in range(1, 7):
        changes = random_changes(chance)
        order = chance.sample(range(len(changes)), len(changes))
        posted = post_keyed(cover, events(changes, order, keyed=True, sequenced=sequenced))
        cover = kept(tmp_path, posted, epoch, cover)
        refused = []
        known = dict(newest)
        line = sorted(range(len(changes)), key=lambda i: ((changes[i][3] or 0) if sequenced else 0, i))
        for i in line:
            key, value, diff, sequence = changes[i]
            rank = (sequence or 0) if sequenced else 0
            if key in known and rank < known[key][0]:
                continue
            if diff < 0 and not (key in newest and newest[key][2]):
                refused.append(i)
            newest[key] = (rank, value, diff > 0)
        there.update(emitted(posted))
        assert {row: n for row, n in there.items() if n} == {(key, value): 1 for key, (_, value, alive) in newest.items() if alive}
        assert sorted(order[i] for i in posted.refused) == sorted(refused)


def test_the_bytes_do_not_depend_on_the_order_of_arrival() -> None:
    changes: list[Change] = [(0, "a", 1, 1), (0, "b", 1, 1), (1, None, 1, 2), (2, "c", 1, 1), (2, "c", -1, 3), (3, "d", -1, 1)]
    one, other = ([*range(6)], [5, 3, 1, 0, 4, 2])
    for keyed in (False, True):
        post = post_keyed if keyed else post_rows
        layers = [post([], events(changes, order, keyed, sequenced=keyed)).layer for order in (one, other)]
        assert layers[0].equals(layers[1])


def test_rows_without_positions_are_taken_in_canonical_order() -> None:
    changes: list[Change] = [(0, "b", 1, None), (0, "a", 1, None), (0, "c", -1, None)]
    answers = []
    for order in ([0, 1, 2], [2, 1, 0]):
        given = events(changes, order, keyed=True, sequenced=False)
        blind = Events(given.hashes, given.keys, given.rows, given.diffs, [np.zeros(3, np.int64)] * 3)
        answers.append(emitted(post_keyed([], blind)))
    assert answers[0] == answers[1] == {(0, "b"): 1}
