"""One small flow, looked at in every way that history offers: each must say the same as the views at each epoch."""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import nosync as ns
from nosync.testing import Change
from pyspark_nosync import DefaultSource
from tests.metamorphic import contents
from tests.queries.join_cases import SCHEMAS, changes

QUERIES = {
    "sums": "select k, count(*) n, sum(d) d from a group by k",
    "few": "select k, t, sum(d) d from a group by k, t having count(*) > 1",
    "whole": "select count(*) n, sum(d) d from a",
    "rows": "select k, t, d from a where k > 1",
    "joined": "select a.k, a.t, b.u from a left join b on a.k = b.k and a.t <= b.u",
    "middle": "select k, percentile(d, 0.5) m from a group by k",
    "upper": "select n, k from sums where n > 1",
}
KEYED = {"sums": ("k",), "few": ("k", "t"), "rows": ("k", "t", "d"), "upper": ("k",), "whole": (), "middle": ()}
HISTORY: list[Change] = changes(3, 5)


@pytest.fixture(scope="module")
def place(quick: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("history")
    flow = ns.Flow("looked at", quick)
    sources = {name: ns.memory(schema, removals=True) for name, schema in SCHEMAS.items()}
    for name, source in sources.items():
        flow.source(name, source, checked=False)
    for name, query in QUERIES.items():
        flow.sql(f"create view {name} as {query}")
    with flow.start(folder / "home", shards=2, remote=f"file://{folder}/remote") as run:
        for epoch, change in enumerate(HISTORY, start=1):
            if epoch == 3:
                run.rescale(3)
            for name, rows in change.added.items():
                sources[name].add(list(rows))
            for name, rows in change.removed.items():
                sources[name].remove(list(rows))
            run.processAllAvailable()
        spread = {name: as_rows(run.changes(name, since=1).toArrow()) for name in QUERIES}
        assert spread == {name: as_rows(ns.open(folder / "home").changes(name, since=1)) for name in QUERIES}
        assert run.history().count() == ns.open(folder / "home").epoch
    yield folder


def as_rows(table: pa.Table) -> Counter[str]:
    return as_rows_of(table.to_pylist())


def as_rows_of(rows: Iterable[dict[str, Any]]) -> Counter[str]:
    return Counter(repr(list(row.values())) for row in rows)


@pytest.fixture
def home(place: Path) -> ns.Home:
    return ns.open(place / "home")


@pytest.mark.parametrize("view", QUERIES)
def test_every_row_is_found_by_its_key_at_every_epoch(home: ns.Home, view: str) -> None:
    assert home.view(view).key == KEYED.get(view, home.view(view).key)
    for epoch in range(1, home.epoch + 1):
        found = home.view(view, at=epoch)
        rows = found.to_pylist()
        for row in rows:
            wanted = {name: row[name] for name in (found.key or row)}
            same = (one for one in rows if repr([one[name] for name in wanted]) == repr(list(wanted.values())))
            assert as_rows(found.where(**wanted)) == as_rows_of(same)


def test_a_lookup_says_what_it_cannot_find(home: ns.Home) -> None:
    assert home.view("sums").get(k=77) is None
    assert home.view("whole").get() == home.view("whole").to_pylist()[0]
    with pytest.raises(ns.Invalid, match='has no column "x"'):
        home.view("sums").get(x=1)
    with pytest.raises(ns.Invalid, match="k='many' is no int32"):
        home.view("sums").get(k="many")
    with pytest.raises(ns.Invalid, match="rows with"):
        home.view("rows", at=home.epoch).get()


def test_a_stored_view_is_whatever_takes_arrow(home: ns.Home) -> None:
    view = home.view("sums")
    assert pa.table(view).equals(view.to_arrow()) and len(view) == view.num_rows == len(view.to_pandas())
    assert view == view.to_arrow() and view["k"] == view.to_arrow()["k"] and repr(view).startswith('view "sums" as of epoch')


@pytest.mark.parametrize("view", QUERIES)
def test_changes_lead_from_each_epoch_to_each_other(home: ns.Home, view: str) -> None:
    states = {0: Counter[str]()} | {epoch: as_rows(home.view(view, at=epoch).to_arrow()) for epoch in range(1, home.epoch + 1)}
    for since, until in ((0, home.epoch), (1, 2), (2, home.epoch)):
        found = Counter(states[since])
        feed = home.changes(view, since=since or None, until=until)
        for row in feed.to_pylist():
            assert since < row["_epoch"] <= until and row["_time"] <= datetime.now(UTC)
            found[repr(list(row.values())[:-3])] += row["_diff"]
        assert +found == states[until] and not -found


def test_history_is_a_row_an_epoch(home: ns.Home) -> None:
    rows = home.history().to_pylist()
    assert [row["epoch"] for row in rows] == list(range(1, home.epoch + 1))
    assert all(row["kept"] and set(row["safe_for"]) >= {"process", "host"} for row in rows) and rows[0]["bytes"] > 0
    assert dict(rows[0]["rows_in"])["a"] == len(HISTORY[0].added["a"]) and set(dict(rows[0]["slices"])) == {"a", "b"}


def test_sql_needs_no_spark(home: ns.Home) -> None:
    for at in (1, home.epoch):
        expected = sum(row["n"] for row in home.view("sums", at=at).to_pylist())
        answer = home.sql("select sum(s.n) as n, count(u.k) as u from sums s left join upper u using (k)", at=at).to_pylist()
        assert answer[0]["n"] == expected
    with pytest.raises(ns.Invalid, match="not valid"):
        home.sql("select * from nowhere")
    with pytest.raises(ns.Invalid, match="not valid"):
        home.sql("select * from read_csv('/etc/passwd')")


def test_a_remote_is_opened_without_a_home(home: ns.Home, place: Path) -> None:
    remote = ns.open(f"file://{place}/remote")
    assert remote.epoch == home.epoch
    for view in QUERIES:
        assert as_rows(remote.view(view).to_arrow()) == as_rows(home.view(view).to_arrow())
    assert remote.view("sums").get(k=1) == home.view("sums").get(k=1)
    with pytest.raises(ns.Invalid, match="is not the home of a flow"):
        ns.open(f"file://{place}/nothing")


def any_session(quick: SparkSession) -> SparkSession:
    """A session that is not ours. Where the path of Python has spaces, Spark does not look for data sources by itself."""
    session = quick.newSession()
    if " " in sys.executable:
        session.dataSource.register(DefaultSource)
    return session


def test_any_session_reads_views_as_a_data_source(quick: SparkSession, home: ns.Home, place: Path) -> None:
    session = any_session(quick)
    read = session.read.format("nosync").option("home", str(place / "home"))
    for view in ("sums", "rows", "whole"):
        for at in (1, home.epoch):
            frame = read.option("view", view).option("at", str(at)).load()
            assert as_rows(frame.toArrow()) == as_rows(home.view(view, at=at).to_arrow())
    session.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    sums = read.option("view", "sums").option("at", str(home.epoch)).option("pushdown", "true").load()
    assert as_rows(sums.where("k = 1").select("n").toArrow()) == Counter([repr([home.view("sums").get(k=1)["n"]])])  # type: ignore[index]
    assert sums.where("k = 1").rdd.getNumPartitions() == 1
    feed = read.option("view", "sums").option("at", "1").option("changes", "true").option("since", "1").load()
    assert as_rows(feed.toArrow()) == as_rows(home.changes("sums", since=1))


def test_a_stream_gets_every_change_once(quick: SparkSession, home: ns.Home, place: Path, tmp_path: Path) -> None:
    read = any_session(quick).readStream.format("nosync").option("home", str(place / "home"))
    stream = read.option("view", "sums").option("changes", "true").load()
    got: list[pa.Table] = []
    writer = stream.writeStream.foreachBatch(lambda frame, number: got.append(frame.toArrow())).option("checkpointLocation", str(tmp_path))
    writer.trigger(availableNow=True).start().awaitTermination()
    assert as_rows(pa.concat_tables(got)) == as_rows(home.changes("sums", until=min(home.safe.values())))


def test_every_view_is_there_as_always(home: ns.Home, place: Path) -> None:
    assert set(contents(place / "home")) == set(QUERIES)
