"""Folds: the function sees each key's rows once, in order, with what it kept; stops, losses and errors change nothing."""

import datetime
import random
import shutil
import uuid
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import nosync as ns
from nosync.model import run
from nosync.runtime.starting import begin
from nosync.runtime.stepping import Stepping
from nosync.testing.oracle import Change, check
from tests.metamorphic import checksums, contents

RICH = "struct<d decimal(20, 3), t timestamp, a array<int>, m map<string, double>, b binary>"
SCHEMAS = {"s": f"k string, at bigint, x int, r {RICH}"}


def running(key: tuple[Any, ...], state: Any, rows: list[Any]) -> tuple[Any, list[Any]]:
    total = state.total if state else 0
    emitted = []
    for row in rows:
        total += row.x or 0
        emitted.append({"k": key[0], "at": row["at"], "total": total})
    return (total,), emitted


def previous(key: tuple[Any, ...], state: Any, rows: list[Any]) -> tuple[Any, list[Any]]:
    emitted = []
    for row in rows:
        emitted.append((key[0], row["at"], state.last if state else None))
        state = type(row)(last=row.r)
    return state, emitted


def bursts(key: tuple[Any, ...], state: Any, rows: list[Any]) -> tuple[Any, Any]:
    """Counts up to a row without an x, then forgets the key."""
    count, emitted = state.n if state else 0, []
    for row in rows:
        count += 1
        if row.x is None:
            emitted.append((key[0], count))
            count = 0
    return (count,) if count else None, emitted or None


def steps(key: tuple[Any, ...], state: Any, rows: list[Any]) -> tuple[Any, list[Any]]:
    """Over rows that come and go: what is there now, less what was there before."""
    now = (state.n if state else 0) + sum(row.n * row._diff for row in rows)
    assert now == next(row.n for row in rows if row._diff > 0)
    return {"n": now}, [(key[0], now)]


def program(flow: Any) -> None:
    s = flow.source("s")
    totals = flow.view("totals", ns.fold(s, "k", running, "total bigint", "k string, at bigint, total bigint", order_by="at"))
    flow.view("lags", ns.fold(s, "k", previous, f"last {RICH}", f"k string, at bigint, r {RICH}", order_by=["at"]))
    flow.view("bursts", ns.fold(s.where("at > 2"), ["k"], bursts, "n int", "k string, n int", order_by=["at", "x"]))
    flow.view("most", totals.groupBy("k").agg(F.max("total").alias("m"), F.count("*").alias("n")).join(s.select("k").distinct(), "k"))


def expected(flow: Any) -> None:
    flow.source("s")
    flow.sql("create view totals as select k, at, sum(coalesce(x, 0)) over (partition by k order by at) total from s")
    flow.sql("create view lags as select k, at, lag(r) over (partition by k order by at) r from s")
    flow.sql("""create view bursts as select k, cast(n as int) n from (
        select k, x, at, row_number() over (partition by k, closed order by at) n from (
            select *, count(case when x is null then 1 end)
                over (partition by k order by at rows between unbounded preceding and 1 preceding) closed from s where at > 2))
        where x is null""")
    flow.sql("create view most as select k, max(total) m, count(*) n from totals where k is not null group by k")


def random_rows(chance: random.Random, epoch: int) -> list[tuple[Any, ...]]:
    """Times are all different and ascend from epoch to epoch; in an epoch they come in any order."""
    found: list[tuple[Any, ...]] = []
    for at in chance.sample(range(10 * epoch - 9, 10 * epoch), 7):
        when = datetime.datetime(2024, 1, 1) + datetime.timedelta(hours=at)
        rich = (Decimal(at) / 8, when, [at, None], {"a": at / 2, "b": None}, bytes([at]))
        found.append((chance.choice(["a", "b", "c", None]), at, chance.choice([None, 1, 2, 3]), chance.choice([rich, None])))
    return found


def test_folds_see_the_rows_of_each_key_in_order_and_may_be_built_upon(quick: SparkSession, tmp_path: Path) -> None:
    chance = random.Random(3)
    changes = [Change({"s": random_rows(chance, epoch)}) for epoch in range(1, 5)]
    check(quick, program, SCHEMAS, changes, tmp_path, 2, expected=expected)


def test_outside_of_a_flow_all_rows_of_a_key_come_in_one_call(quick: SparkSession) -> None:
    rows = random_rows(random.Random(4), 1)
    table = quick.createDataFrame(rows, SCHEMAS["s"])
    table.createOrReplaceTempView("fold_rows")
    found = ns.fold(table, "k", running, "total bigint", "k string, at bigint, total bigint", order_by="at")
    wanted = quick.sql("select k, at, sum(coalesce(x, 0)) over (partition by k order by at) total from fold_rows")
    assert sorted(map(repr, found.collect())) == sorted(map(repr, wanted.collect()))


def declared(spark: SparkSession, function: Callable[..., Any]) -> tuple[ns.Flow, Any]:
    flow, source = ns.Flow("folds", spark), ns.memory("k string, x int")
    counts = flow.view("counts", flow.source("s", source).groupBy("k").agg(F.count("*").alias("n")))
    emitted = flow.view("emitted", ns.fold(counts, "k", function, "n bigint", "k string, n bigint", retractions=True))
    flow.view("sums", emitted.groupBy("k").agg(F.collect_list("n").alias("ns")))
    return flow, source


def test_stops_and_lost_layers_change_nothing_for_a_fold_over_rows_that_come_and_go(quick: SparkSession, tmp_path: Path) -> None:
    parts = [[("a", 1), ("b", 1)], [("a", 2), ("a", 3)], [("b", 1), ("c", 1)], [("a", 1), ("c", 2)]]
    for epoch, part in enumerate(parts, start=1):
        flow, source = declared(quick, steps)
        stepping = begin(flow.program(), tmp_path, 2).recover()
        source.add(part)
        step = stepping.step()
        stepping.close()
        assert step is not None and step["epoch"] == epoch
    before, bits = contents(tmp_path), checksums(tmp_path)
    assert {row["k"]: sorted(row["ns"]) for row in ns.open(tmp_path).view("sums").to_pylist()} == {"a": [1, 3, 4], "b": [1, 2], "c": [1, 2]}
    for layer in list(ns.open(tmp_path).image.layers()):
        if layer.trace in ("emitted/fold", "emitted/rows") and layer.lower > 1:
            (tmp_path / layer.path).unlink()
    stepping = begin(declared(quick, steps)[0].program(), tmp_path, 2).recover()
    stepping.close()
    assert stepping.recovered.recomputed > 2
    assert (contents(tmp_path), checksums(tmp_path)) == (before, bits)


def drawing(key: tuple[Any, ...], state: Any, rows: list[Any]) -> tuple[Any, list[Any]]:
    """Not deterministic: its rows are made of what it drew, and it remembers the last."""
    drawn = uuid.uuid4().hex
    return (drawn,), [(key[0], row.x, state.last if state else None, drawn) for row in rows]


class Draws:
    """A flow over `drawing`, with something that stands on it; lives one after the other on one home."""

    def __init__(self, spark: SparkSession, home: Path) -> None:
        self.spark, self.home = spark, home

    def flow(self, release: Any = "safe") -> tuple[ns.Flow, Any]:
        flow, source = ns.Flow("draws", self.spark), ns.memory("k string, x int")
        rows, output = flow.source("s", source), "k string, x int, before string, drawn string"
        emitted = ns.fold(rows, "k", drawing, "last string", output, retractions=True, deterministic=False)
        flow.view("draws", emitted)
        flow.view("counts", emitted.groupBy("drawn").count())
        flow.sink("out", emitted.select("drawn"), ns.foreachEpoch(lambda changes, epoch: None, idempotent=True), release=release)
        return flow, source

    def live(self, *parts: list[tuple[str, int]]) -> Stepping:
        flow, source = self.flow()
        life = begin(flow.program(), self.home, 2).recover()
        try:
            for part in parts:
                source.add(part)
                assert life.step() is not None
        finally:
            life.close()
        return life

    def lose(self, trace: str, epoch: int) -> None:
        for layer in ns.open(self.home).image.layers():
            if (layer.trace, layer.lower) == (trace, epoch):
                (self.home / layer.path).unlink(missing_ok=True)

    def draws(self, at: int) -> list[dict[str, Any]]:
        return sorted(ns.open(self.home).view("draws", at=at).to_pylist(), key=lambda row: (row["x"], row["k"]))


def test_a_fold_that_is_not_deterministic_is_repeated_from_its_record(
    quick: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "BOOT", tmp_path / "boot")
    (tmp_path / "boot").write_text("1")
    draws = Draws(quick, tmp_path / "home")
    draws.live([("a", 1), ("b", 1)], [("a", 2)], [("a", 3), ("b", 3)])
    before, all_draws = contents(draws.home), draws.draws(3)
    assert [row["before"] for row in all_draws[2:]] == [all_draws[0]["drawn"], all_draws[2]["drawn"], all_draws[1]["drawn"]]
    for trace in ("counts/aggregate", "draws/rows"):
        draws.lose(trace, 2)
        draws.lose(trace, 3)
    assert draws.live().recovered.recomputed and contents(draws.home) == before

    broken = Draws(quick, tmp_path / "broken")
    shutil.copytree(draws.home, broken.home)
    broken.lose("draws/fold", 2)
    with pytest.raises(ns.Corrupt, match="a function that is not deterministic has made them"):
        broken.live()

    (tmp_path / "boot").write_text("2")  # the host went down before epoch 3 was safe
    draws.lose("draws/fold", 3)
    life = draws.live()
    assert (life.image.epoch, life.image.last_opened, life.recovered.rolled_back) == (2, 3, 0)
    draws.live([("c", 4)])  # epoch 3 comes first, on the same input
    assert draws.draws(2) == all_draws[:3]
    anew = draws.draws(3)
    assert [row | {"drawn": ""} for row in anew] == [row | {"drawn": ""} for row in all_draws]
    assert anew[3]["drawn"] != all_draws[3]["drawn"]
    assert draws.flow("safe")[0].guarantees()["out"].guarantee == "precise"
    promise = draws.flow("computed")[0].guarantees()["out"]
    assert promise.guarantee == "divergent" and '"draws/fold" is not deterministic' in promise.reason


def test_a_fold_that_raises_stops_the_flow_naming_view_function_and_key(quick: SparkSession, tmp_path: Path) -> None:
    def careless(key: tuple[Any, ...], state: Any, rows: list[Any]) -> tuple[Any, list[Any]]:
        return (1,), [(key[0], 6 // (rows[-1].n - 2))]

    def untyped(key: tuple[Any, ...], state: Any, rows: list[Any]) -> tuple[Any, list[Any]]:
        return ("many" if key == ("b",) else 1,), []

    def unpaired(key: tuple[Any, ...], state: Any, rows: list[Any]) -> Any:
        return [key]

    faults = {
        careless: "ZeroDivisionError",
        untyped: "does not fit struct<n:bigint>: Could not convert 'many'",
        unpaired: "a fold returns its new state and a list of rows",
    }
    for number, (function, words) in enumerate(faults.items()):
        flow, source = declared(quick, function)
        life = flow.start(home=tmp_path / str(number), shards=1)
        source.add([("a", 1), ("b", 1), ("b", 2)])
        with pytest.raises(ns.Failed) as error:
            life.processAllAvailable()
        text = str(error.value)
        assert text.splitlines()[0] == 'a function in view "emitted" raised an error in epoch 1:', text
        assert words in text and f'in fold "{function.__name__}" of view "emitted", for key (' in text and "\tat " not in text
        assert function is unpaired or "for key ('b',)" in text


IDLE = datetime.timedelta(seconds=10)


def visits(key: tuple[Any, ...], state: Any, rows: list[Any]) -> tuple[Any, list[Any], Any]:
    """A visit ends ten seconds after its last row, as far as event time has come; a row of 0 ends the key without a word."""
    if not rows:
        return None, [(key[0], state.n, state.last)], None
    if any(row.x == 0 for row in rows):
        return None, [], None
    last = max([row["at"] for row in rows] + ([state.last] if state else []))
    return {"n": (state.n if state else 0) + len(rows), "last": last}, [], last + IDLE


def emitted_visits(epochs: list[list[tuple[str, int, int]]]) -> list[list[tuple[str, int, int]]]:
    """What is emitted in each epoch, going through them one by one; rows are (key, seconds, x). Ends with an epoch of no rows."""
    there: dict[str, tuple[int, int, int]] = {}  # rows, last, when it ends
    watermark, newest, found = -1, -1, []
    for rows in [*epochs, []]:
        ended = sorted(key for key, (_, _, end) in there.items() if end <= watermark)
        found.append([(key, *there.pop(key)[:2]) for key in ended])
        for key in sorted({row[0] for row in rows}):
            mine = [row for row in rows if row[0] == key]
            count, last, _ = there.pop(key, (0, 0, 0))
            if all(x for _, _, x in mine):
                last = max(last, *(at for _, at, _ in mine))
                there[key] = (count + len(mine), last, max(last + 10, watermark + 1))
        newest = max([newest, *(at for _, at, _ in rows)])
        watermark = newest - 2
    return found


def test_timers_come_when_the_watermark_passes_them_through_stops_and_losses(quick: SparkSession, tmp_path: Path) -> None:
    chance, start = random.Random(347), datetime.datetime(2024, 1, 1)  # some come with rows of their key, one is late when it is set
    epochs = [[(chance.choice("abcdefg"), 8 * e + chance.randrange(-14, 8), chance.randrange(6)) for _ in range(3)] for e in range(1, 7)]

    def flow() -> tuple[ns.Flow, Any]:
        flow, source = ns.Flow("visits", quick), ns.memory("k string, at timestamp, x int")
        rows = flow.source("s", source, watermark=("at", "2 seconds"))
        state, output = "n int, last timestamp", "k string, n int, last timestamp"
        flow.view("visits", ns.fold(rows, "k", visits, state, output, retractions=True, timers=True))
        return flow, source

    for epoch, rows in enumerate([*epochs, []], start=1):
        declared, source = flow()
        life = begin(declared.program(), tmp_path, 2).recover()
        source.add([(key, start + datetime.timedelta(seconds=at), x) for key, at, x in rows])
        step = life.step()
        life.close()
        assert step is not None and step["epoch"] == epoch
    emitted = emitted_visits(epochs)
    assert sum(map(len, emitted)) > 3 and emitted[-1]
    for epoch in range(1, len(epochs) + 2):
        utc, table = start.replace(tzinfo=datetime.UTC), ns.open(tmp_path).view("visits", at=epoch)
        seen = [(row["k"], row["n"], round((row["last"] - utc).total_seconds())) for row in table.to_pylist()]
        assert sorted(seen) == sorted(visit for part in emitted[:epoch] for visit in part), epoch
    before, bits = contents(tmp_path), checksums(tmp_path)
    for layer in list(ns.open(tmp_path).image.layers()):
        if layer.lower > 2:
            (tmp_path / layer.path).unlink()
    life = begin(flow()[0].program(), tmp_path, 2).recover()
    assert life.step() is None  # nothing is left to close
    life.close()
    assert life.recovered.recomputed and (contents(tmp_path), checksums(tmp_path)) == (before, bits)


def test_what_a_fold_cannot_do_is_refused_at_once(quick: SparkSession) -> None:
    flow = ns.Flow("mistakes", quick)
    rows = flow.source("s", ns.memory("k string, x int, a array<int>", removals=True))
    good: dict[str, Any] = {"by": "k", "fn": running, "state": "n int", "output": "n int"}
    for wrong, words in (
        ({"by": "y"}, 'no single column "y"'), ({"by": []}, "no key"), ({"fn": 3}, "fn=3 is of type int"), ({"state": "n"}, "is no schema"),
        ({"order_by": "a"}, "array<int>"), ({"output": ns.fold.__doc__}, "is no schema"),
    ):  # fmt: skip
        with pytest.raises(ns.Invalid, match=words):
            ns.fold(rows, **(good | wrong))
    with pytest.raises(ns.Refused, match='folds rows that may be removed again with "running"'):
        flow.view("v", ns.fold(rows, **good))
    with pytest.raises(ns.Refused, match='"running" sets timers, but there is no event time'):
        flow.view("v", ns.fold(rows, **good, retractions=True, timers=True))
