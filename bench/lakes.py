"""Tables of lakes against their own writers, in the same run: `make bench-lakes`.

The same batches go into a table of ours and into one of theirs: rows that are added, and rows of one in ten keys that are replaced (by
`merge` for Delta, `upsert` for Iceberg, which is given fewer). Rows a second, bytes of the files that were written (of those that replace
rows, without the table that was there), and ours to theirs. No Spark. `--rows` for less.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog import load_catalog

import nosync as ns
from bench.connectors.plain import Given
from nosync.sinks.lake import LakeSink
from tests.connectors.rows import IDENTITY

ROWS, ROUNDS, UPSERTED = 500_000, 5, 2_000


def batch(first: int, rows: int, price: float) -> pa.Table:
    ids = np.arange(first, first + rows)
    names = pa.array([f"name {number % 5000}" for number in ids.tolist()])
    return pa.table({"id": ids, "name": names, "price": ids * price, "day": pa.array((ids % 30).astype(np.int32)).cast(pa.date32())})


def changes(epoch: int, *parts: tuple[pa.Table, int]) -> Given:
    tables = [
        rows.append_column("_epoch", pa.array(np.full(len(rows), epoch))).append_column("_diff", pa.array(np.full(len(rows), diff)))
        for rows, diff in parts
    ]
    given = pa.concat_tables(tables)
    return Given(epoch, pa.schema(list(given.schema)[:-2]), ((),), given)


def seconds(work: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def line(what: str, rows: int, ours: list[float], theirs: list[float], sizes: tuple[int, int] | None = None) -> str:
    mine, other = statistics.median(ours), statistics.median(theirs)
    bytes = f"{sizes[0] / sizes[1]:>10.2f}" if sizes else ""
    return f"{what:<34}{rows / mine:>12,.0f}/s{rows / other:>12,.0f}/s{other / mine:>8.2f}{bytes}"


def added(what: str, sink: LakeSink, write: Callable[[pa.Table], Any], sizes: Callable[[], tuple[int, int]]) -> str:
    sink.open("1.a", IDENTITY)
    ours, theirs = [], []
    for turn in range(ROUNDS):
        rows = batch(turn * ROWS, ROWS, 0.1)
        ours.append(seconds(lambda: sink.deliver(turn + 1, changes(turn + 1, (rows, 1)))))  # noqa: B023 (called at once)
        theirs.append(seconds(lambda: write(rows)))  # noqa: B023 (called at once)
    return line(what, ROWS, ours, theirs, sizes())


def replaced(
    what: str, count: int, sink: LakeSink, write: Callable[[pa.Table], Any], update: Callable[[pa.Table], Any],
    sizes: Callable[[], tuple[int, int]],
) -> str:  # fmt: skip
    sink.open("1.a", IDENTITY)
    whole = batch(0, ROWS, 0.1)
    sink.deliver(1, changes(1, (whole, 1)))
    write(whole)
    first = sizes()
    ours, theirs, before = [], [], batch(0, count, 0.1)
    for turn in range(ROUNDS):
        after = batch(0, count, turn + 2.0)
        given = changes(turn + 2, (before, -1), (after, 1))
        ours.append(seconds(lambda: sink.deliver(turn + 2, given)))  # noqa: B023 (called at once)
        theirs.append(seconds(lambda: update(after)))  # noqa: B023 (called at once)
        before = after
    written = sizes()
    return line(what, count, ours, theirs, (written[0] - first[0], written[1] - first[1]))


def merged(uri: str) -> Callable[[pa.Table], Any]:
    def merge(rows: pa.Table) -> None:
        if not DeltaTable.is_deltatable(uri):
            return write_deltalake(uri, rows)
        found = DeltaTable(uri).merge(rows, "t.id = s.id", "s", "t").when_matched_update_all().when_not_matched_insert_all()
        found.execute()

    return merge


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*.parquet") if "_delta_log" not in path.parts)


def main() -> None:
    global ROWS
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    ROWS = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        said = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/lake"}
        catalog = load_catalog("default", **said)
        catalog.create_namespace("plain")
        ice = catalog.create_table("plain.added", batch(0, 1, 0.1).schema)
        ups = catalog.create_table("plain.replaced", batch(0, 1, 0.1).schema)
        delta, theirs = f"{folder}/ours", f"{folder}/theirs"

        def iceberg(name: str) -> Path:
            return next((folder / "lake").rglob(f"{name}/data"))

        print(f"{'':<34}{'ours':>14}{'theirs':>14}{'ratio':>8}{'bytes':>10}")
        print(added(
            "Delta, rows added", ns.to_delta(f"{delta}/added", mode="append"),
            lambda rows: write_deltalake(f"{theirs}/added", rows, mode="append"),
            lambda: (size(Path(f"{delta}/added")), size(Path(f"{theirs}/added"))),
        ))  # fmt: skip
        print(added(
            "Delta, new keys (merge)", ns.to_delta(f"{delta}/keyed", key="id"), merged(f"{theirs}/keyed"),
            lambda: (size(Path(f"{delta}/keyed")), size(Path(f"{theirs}/keyed"))),
        ))  # fmt: skip
        print(replaced(
            "Delta, a tenth replaced (merge)", ROWS // 10, ns.to_delta(f"{delta}/replaced", key="id"),
            lambda rows: write_deltalake(f"{theirs}/replaced", rows), merged(f"{theirs}/replaced"),
            lambda: (size(Path(f"{delta}/replaced")), size(Path(f"{theirs}/replaced"))),
        ))  # fmt: skip
        print(added(
            "Iceberg, rows added", ns.to_iceberg(said, "ours.added", mode="append"), ice.append,
            lambda: (size(iceberg("ours/added")), size(iceberg("plain/added"))),
        ))  # fmt: skip
        sink = ns.to_iceberg(said, "ours.replaced", key="id")
        print(replaced(
            "Iceberg, few replaced (upsert)", UPSERTED, sink, ups.append, lambda rows: ups.upsert(rows, ["id"]),
            lambda: (size(iceberg("ours/replaced")), size(iceberg("plain/replaced"))),
        ))  # fmt: skip


if __name__ == "__main__":
    main()
