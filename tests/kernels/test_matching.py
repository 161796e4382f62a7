"""matching against plain Python: what has been emitted adds up to the rows with, or without, a pair."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from nosync.kernels.join import LEFT, MATCHED
from nosync.kernels.matching import Matched, Matching, match
from nosync.model.errors import Failed
from nosync.model.hash_range import ALL_HASHES
from nosync.state.layer import Layer, open_layer, write_layer

Event = tuple[Any, int, int]  # a row of the side, what is emitted for it, how often
ROWS = [None, "", "a", "b", "cc", "dd", "ee"]


def matched(spec: Matching, cover: list[Layer], events: list[Event]) -> Matched:
    """The hashes are poor: rows collide."""
    hashes = np.array([len(row or "") for row, _, _ in events], np.uint64)
    part, diffs = (np.array([event[i] for event in events], np.int64) for i in (1, 2))
    return match(spec, cover, hashes, [pa.array([row for row, _, _ in events], pa.string())], part, diffs)


def kept(folder: Path, layer: pa.RecordBatch, epoch: int) -> list[Layer]:
    facts: dict[str, Any] = {"flow": "f", "trace": "o", "run": "r", "range": ALL_HASHES, "kind": "upserts"}
    facts |= {"lower": epoch, "upper": epoch + 1}
    return [open_layer(str(folder), write_layer(str(folder), f"{epoch}.arrow", [layer], **facts))] if layer.num_rows else []


def moved(chance: random.Random, alive: Counter[Any], pairs: Counter[Any]) -> list[Event]:
    """Rows come and go, and with them their pairs; pairs also come and go alone."""
    events: list[Event] = []
    for row in chance.sample(ROWS, chance.randint(1, len(ROWS))):
        now = chance.randint(0, 2)
        partners = now * chance.randint(0, 2)
        events += [(row, LEFT, now - alive[row]), (row, MATCHED, partners - pairs[row] + 1), (row, MATCHED, -1)]
        alive[row], pairs[row] = now, partners
    chance.shuffle(events)
    return events


@pytest.mark.parametrize("wanted", ["unmatched", "matched", "both"])
@pytest.mark.parametrize("seed", range(30))
def test_what_was_emitted_adds_up_to_rows_by_whether_they_have_a_pair(wanted: Any, seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    alive: Counter[Any] = Counter()
    pairs: Counter[Any] = Counter()
    shown: Counter[Any] = Counter()
    cover: list[Layer] = []
    for epoch in range(1, 7):
        found = matched(Matching(wanted, LEFT, passing=False), cover, moved(chance, alive, pairs))
        for part, indices, weights in found.emitted:
            rows = found.keys[0].take(pa.array(indices)).to_pylist()
            shown.update({(row, part): weight for row, weight in zip(rows, weights.tolist(), strict=True)})
        cover = kept(tmp_path, found.layer, epoch) + cover
        expected = Counter({(row, MATCHED if pairs[row] else LEFT): count for row, count in alive.items() if count})
        asked = {"unmatched": (LEFT,), "matched": (MATCHED,), "both": (LEFT, MATCHED)}[wanted]
        assert +shown == Counter({row: count for row, count in expected.items() if row[1] in asked}), f"seed {seed}, epoch {epoch}"
        assert not -shown


def test_a_second_match_for_a_single_one_is_an_error() -> None:
    spec = Matching("single", LEFT, passing=True)
    assert matched(spec, [], [("a", LEFT, 2), ("a", MATCHED, 2)]).emitted == []
    with pytest.raises(Failed, match="SCALAR_SUBQUERY_TOO_MANY_ROWS"):
        matched(spec, [], [("a", LEFT, 1), ("a", MATCHED, 2)])


def test_what_cancels_leaves_no_trace() -> None:
    found = matched(Matching("both", LEFT, passing=False), [], [("a", LEFT, 1), ("a", MATCHED, 1), ("a", LEFT, -1), ("a", MATCHED, -1)])
    assert found.emitted == [] and found.layer.num_rows == 0
