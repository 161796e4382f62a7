"""What the views of `orders` must hold, computed by hand: so often asked that Spark would take hours. `judge` asks Spark itself.

Pure, but for reading Parquet files.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.crash.orders import rows_of

Row = tuple[tuple[str, Any], ...]
VIEWS = ("large", "customers", "levels", "best")


def answers(files: Iterable[str]) -> dict[str, Counter[Row]]:
    """By view, the rows over these files. A row is its columns by name."""
    orders = [row for name in files for row in rows_of(int(Path(name).stem))]
    amounts: dict[str, list[int]] = {}
    for row in orders:
        amounts.setdefault(row["customer"], []).append(row["amount"])
    customers = {customer: {"total": sum(all_), "n": len(all_), "most": max(all_)} for customer, all_ in amounts.items()}
    levels: dict[int, list[int]] = {}
    for found in customers.values():
        levels.setdefault(found["n"], []).append(found["total"])
    best = [row | {"total": customers[row["customer"]]["total"]} for row in orders if row["amount"] == customers[row["customer"]]["most"]]
    return {
        "large": counted({"id": row["id"], "amount": row["amount"]} for row in orders if row["amount"] > 50),
        "customers": counted({"customer": customer, **found} for customer, found in customers.items()),
        "levels": counted({"n": n, "m": len(totals), "total": sum(totals)} for n, totals in levels.items()),
        "best": counted({name: row[name] for name in ("id", "customer", "total")} for row in best),
    }


def counted(rows: Iterable[Mapping[str, Any]]) -> Counter[Row]:
    return Counter(tuple(sorted(row.items())) for row in rows)


def written_epochs(folder: Path) -> dict[int, Path]:
    """The files of a sink, by epoch."""
    return {int(file.stem.removeprefix("epoch-")): file for file in folder.glob("*.parquet")}


def check_sink(written: Mapping[int, Path], view: str, files: Mapping[int, list[str]]) -> None:
    """Each epoch up to the last that was written is there once, as the difference that it makes to the view; and all are in history."""
    assert written.keys() <= files.keys(), f"epochs {sorted(written.keys() - files.keys())} of {view} are out, and nobody opened them"
    before: Counter[Row] = Counter()
    seen: list[str] = []
    for epoch in range(1, max(written, default=0) + 1):
        seen += files[epoch]
        after = answers(seen)[view]
        expected = {row: after[row] - before[row] for row in after.keys() | before.keys() if after[row] != before[row]}
        assert _changes(written.get(epoch), epoch) == expected, f"epoch {epoch} of {view} went out with other rows"
        before = after


def _changes(file: Path | None, epoch: int) -> dict[Row, int]:
    """By row, how many came or went."""
    changes: dict[Row, int] = {}
    for row in pq.read_table(file).to_pylist() if file else ():
        assert row.pop("_epoch") == epoch, file
        diff = row.pop("_diff")
        key = tuple(sorted(row.items()))
        assert key not in changes, f"{file} has {row} twice"
        changes[key] = diff
    return changes


def calls_of(file: Path) -> dict[int, str]:
    """By epoch, the digest of what the function got. Where an epoch came again, it came with the same rows."""
    firsts: dict[int, str] = {}
    for line in file.read_text().splitlines() if file.exists() else ():
        epoch, digest = line.split()
        assert firsts.setdefault(int(epoch), digest) == digest, f"epoch {epoch} came again with other rows"
    return firsts
