"""What `nosync fsck` says of input files before a start meets them."""

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nosync.cli.fsck import code
from nosync.journal.entries import Computed, Declared, Entry, Opened, Skipped
from nosync.journal.image import fold
from nosync.model.hash_range import ALL_HASHES
from nosync.recovery.plan import Plan
from nosync.recovery.recompute import Recompute
from nosync.recovery.verdict import LOST, REPAIRABLE, WHOLE, Verdict
from nosync.sources.inspection import obstacles
from nosync.sources.listing import facts

AGAIN = Plan(1, 2, jobs=(Recompute(1, 1, {"v": frozenset([ALL_HASHES])}),))


def opened(folder: Path, epoch: int, name: str) -> Opened:
    path = folder / name
    pq.write_table(pa.table({"x": list(range(5000))}), path)
    found = facts(folder, name)
    assert found is not None
    return Opened(epoch, 0.0, {"s": {"files": [list(found)]}})


def entries(folder: Path) -> list[Entry]:
    """Epoch 1, from file a, is computed; epoch 2, from file b, is only opened."""
    declared = Declared("shop", 1, {}, {}, {}, folders={"s": str(folder)})
    return [declared, opened(folder, 1, "a"), Computed(1, (), {}, {}), opened(folder, 2, "b")]


def tear(path: Path) -> None:
    """Other bytes in a page, under the same size and time."""
    before, content = path.stat(), bytearray(path.read_bytes())
    content[100:400] = b"\xff" * 300
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize(("file", "expected"), [("a", LOST), ("b", REPAIRABLE)])
@pytest.mark.parametrize("damage", ["gone", "changed", "unreadable"])
def test_a_file_that_a_start_would_trip_over_is_named_with_the_way_out(tmp_path: Path, file: str, expected: int, damage: str) -> None:
    image, verdict = fold(entries(tmp_path)), Verdict(REPAIRABLE, AGAIN, None, {})
    assert obstacles(image, AGAIN) == []
    {"gone": Path.unlink, "changed": lambda path: path.write_bytes(b"other"), "unreadable": tear}[damage](tmp_path / file)
    [found] = obstacles(image, AGAIN)
    assert (found.file, found.computed, code(verdict, [found])) == (str(tmp_path / file), file == "a", expected)
    assert {"gone": "is gone", "changed": "changed", "unreadable": "cannot be read"}[damage] in found.reason


def test_what_was_set_aside_or_is_not_needed_stands_in_nobodys_way(tmp_path: Path) -> None:
    written = entries(tmp_path)
    (tmp_path / "a").unlink()
    assert obstacles(fold(written), Plan(1, 2)) == []
    assert obstacles(fold([*written, Skipped("s", {"a": 1}, 0.0)]), AGAIN) == []
    assert code(Verdict(WHOLE, Plan(1, 2), None, {}), []) == WHOLE
