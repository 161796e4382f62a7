"""The source and the sink of docs/extending.md work as they stand, also over restarts, and keep what they promise."""

import contextlib
import io
import re
import sqlite3
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import nosync as ns
from nosync.model.bound import bound

TEXT = (Path(__file__).parent.parent / "docs" / "extending.md").read_text()
SOURCE, SINK, PROGRAM, OUTPUT = re.findall(r"^```\w*\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for text in (SOURCE, SINK):
        exec(text, found)
    return found


def orders(path: Path, *rows: tuple[str, float]) -> None:
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("create table if not exists orders (id integer primary key, item text, price real)")
        db.executemany("insert into orders (item, price) values (?, ?)", rows)


def spend(path: Path) -> list[Any]:
    with contextlib.closing(sqlite3.connect(path)) as db:
        return db.execute("select * from spend order by item").fetchall()


def declared(spark: SparkSession, folder: Path, names: dict[str, Any]) -> ns.Flow:
    flow = ns.Flow("till", spark)
    source = flow.source("orders", names["SqliteTable"](str(folder / "shop.db")))
    flow.sink("out", source.groupBy("item").agg(F.sum("price").alias("spent")), names["SqliteSink"](str(folder / "out.db")))
    return flow


def test_together_they_print_what_the_page_says(
    quick: SparkSession, tmp_path: Path, names: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("nosync.flow.flow.active_or_local", lambda: quick)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(PROGRAM, dict(names))
    assert printed.getvalue() == OUTPUT


def test_the_next_run_goes_on_and_another_history_is_refused(quick: SparkSession, tmp_path: Path, names: dict[str, Any]) -> None:
    for row in (("tea", 1.0), ("pot", 2.0)):
        orders(tmp_path / "shop.db", row)
        with declared(quick, tmp_path, names).start(home=tmp_path / "home", shards=1) as run:
            run.processAllAvailable()
    assert run.epoch == 2 and spend(tmp_path / "out.db") == [("pot", 2.0), ("tea", 1.0)]
    with pytest.raises(ns.Invalid, match="has the output of another flow"):
        declared(quick, tmp_path, names).start(home=tmp_path / "other", shards=1)


def test_an_epoch_that_comes_again_and_a_run_that_was_replaced_change_nothing(tmp_path: Path, names: dict[str, Any]) -> None:
    class Once:
        def table(self) -> Any:
            return self

        def to_pylist(self) -> list[dict[str, Any]]:
            return [{"item": "tea", "spent": 1.0, "_diff": 1}]

    older, newer = (names["SqliteSink"](str(tmp_path / "out.db")) for _ in range(2))
    older.open("1.aa", ns.Identity("till", "out", "1.aa"))
    older.deliver(1, Once())
    older.deliver(1, Once())
    newer.open("2.bb", ns.Identity("till", "out", "1.aa"))
    with pytest.raises(ns.Fenced):
        older.deliver(2, Once())
    assert spend(tmp_path / "out.db") == [("tea", 1.0)]


@pytest.mark.parametrize(("kind", "heading"), [("source", "A source"), ("sink", "A sink")])
def test_the_page_lists_every_ability(kind: str, heading: str) -> None:
    section = TEXT.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    listed = {name for line in section.splitlines() if line.startswith("| `") for name in re.findall(r"`(\w+)", line.split("|")[1])}
    protocols = import_module(f"nosync.model.{kind}")
    abilities = {
        name
        for one in vars(protocols).values()
        if getattr(one, "_is_runtime_protocol", False) and one.__module__ == protocols.__name__
        for name in vars(one)
        if not name.startswith("_")
    }
    assert listed == abilities


def test_a_source_with_the_five_has_no_ability(tmp_path: Path) -> None:
    class Plain:
        append_only = True

        def declare(self, name: str, spark: Any) -> Any: ...
        def start(self, folder: Path, taken: ns.Taken) -> None: ...
        def available(self) -> ns.Slice | None: ...
        def read(self, spark: Any, slice: ns.Slice) -> Any: ...

    found = bound(Plain())
    assert (found.rows({}), found.weight({}), found.files({}), found.read_once) == (None, 0, {}, False)
    assert {found.trim, found.marks, found.table, found.rejecting, found.direct, found.together, found.events} == {None}
