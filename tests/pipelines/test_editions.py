"""Editions as files, without Spark: a publisher that ends anywhere leaves readers a whole edition, and the next one is right."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nosync.pipelines import editions as editions_module
from nosync.pipelines.editions import CURRENT, Edition, Editions, Published
from nosync.pipelines.table_files import write_next, write_whole
from nosync.store import lasting
from tests.pipelines.projects import WRITING

SCHEMA = pa.schema([("id", pa.int64()), ("town", pa.string())])


class Killed(BaseException):
    """The end of the process."""


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": [*ids], "town": [f"t{number % 3}" for number in ids]}, SCHEMA)


def first(editions: Editions) -> None:
    for table in ("plain", "parts"):
        write_whole(editions.begin(table, 1), SCHEMA, rows(*range(9)).to_batches(), ["town"] if table == "parts" else [])
    editions.publish(Edition(1, {"plain": Published(1), "parts": Published(1)}))


def second(editions: Editions, now: float = 0.0) -> None:
    """In both tables 4 and 7 go, 20 and 21 come."""
    before, number = editions.newest(), editions.newest().number + 1
    changes = pa.concat_tables([rows(4, 7, 20, 21)]).append_column("_diff", pa.array([-1, -1, 1, 1]))
    for table in ("plain", "parts"):
        old = before.of(table)
        assert old is not None
        target = editions.begin(table, number)
        write_next(editions.version(table, old.version), target, number, changes, ["town"] if table == "parts" else [])
    editions.publish(Edition(number, {"plain": Published(number), "parts": Published(number)}))
    editions.tidy(now)


def read(editions: Editions) -> list[list[int]]:
    """As one who looks once which edition is current."""
    edition = (editions.folder / CURRENT).resolve()
    return [sorted(pq.read_table(edition / table).column("id").to_pylist()) for table in ("plain", "parts")]


def killed_at(step: int, patch: pytest.MonkeyPatch, work: Callable[[], None]) -> bool:
    """Whether the work was ended before its so manyeth change of the disk; a file that was being written is torn."""
    done = 0

    def counted(own: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            nonlocal done
            done += 1
            if done == step:
                if own is pq_write:
                    Path(given[1]).write_bytes(b"PAR1")
                raise Killed
            return own(*given, **named)

        return call

    pq_write = pq.write_table
    with patch.context() as inside:
        for owner, name in WRITING:
            inside.setattr(owner, name, counted(getattr(owner, name)))
        try:
            work()
        except Killed:
            return True
    return False


def test_whoever_publishes_may_end_at_any_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = [*range(9)], [0, 1, 2, 3, 5, 6, 8, 20, 21]
    monkeypatch.setattr(lasting.os, "fsync", lambda descriptor: None)  # a step that changes nothing here
    first(Editions(tmp_path / "made"))
    met, step, going_on = set(), 0, True
    while going_on:
        step += 1
        editions = Editions(tmp_path / str(step))
        shutil.copytree(tmp_path / "made", editions.folder, symlinks=True)
        going_on = killed_at(step, monkeypatch, lambda: second(editions))  # noqa: B023 (called at once)
        seen = read(editions)
        assert seen in ([old, old], [new, new]), f"ended before change {step}"
        met.add(tuple(seen[0]))
        if seen == [old, old]:
            second(editions)
        assert read(editions) == [new, new], f"ended before change {step}"
    assert len(met) == 2 and step > 30


def test_an_edition_stays_for_half_a_minute_after_it_was_replaced(tmp_path: Path) -> None:
    editions = Editions(tmp_path / "kept")
    write_whole(editions.begin("plain", 1), SCHEMA, rows(1).to_batches(), [])
    for number in range(1, 7):
        editions.publish(Edition(number, {"plain": Published(1)}))
        os.utime(editions.folder / f"edition-{number:012d}", (100.0 * number, 100.0 * number))
    editions.tidy(now=620.0)
    assert [path.name[-1] for path in sorted(editions.folder.glob("edition-*"))] == ["4", "5", "6"]
    for number in range(7, 11):
        editions.publish(Edition(number, {"plain": Published(1)}))
        os.utime(editions.folder / f"edition-{number:012d}", (640.0 + number, 640.0 + number))
    editions.tidy(now=650.0 + editions_module.KEPT_SECONDS - 1.5)
    assert [path.name[-2:] for path in sorted(editions.folder.glob("edition-*"))] == ["08", "09", "10"]
    editions.publish(Edition(11, {"plain": Published(1)}))
    os.utime(editions.folder / "edition-000000000011", (651.0, 651.0))
    editions.tidy(now=651.0)
    assert [path.name[-2:] for path in sorted(editions.folder.glob("edition-*"))] == ["08", "09", "10", "11"]
