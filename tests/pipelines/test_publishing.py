"""Tables while they are replaced: readers beside a run that goes on, publishers that end in the middle, formats, refused places."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from nosync.model.errors import Refused
from nosync.pipelines import catalog, editions
from nosync.pipelines.running import Report, run_pipeline
from nosync.pipelines.spec import read_spec
from tests.pipelines.projects import Project

JDBC_CATALOG = "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog"
DERBY = "org.apache.derby.iapi.jdbc.AutoloadedDriver"
LEDGER = {
    "ledger.py": """
        from pyspark import pipelines as dp
        from pyspark.sql import functions as F

        @dp.table
        def entries():
            return spark.readStream.schema("id int, account int, amount int").json("{in}/entries")

        @dp.materialized_view
        def balances():
            return spark.table("entries").groupBy("account").agg(F.sum("amount").alias("balance"), F.count("*").alias("n"))
    """,
}
FORMATS = {
    "all.py": """
        from pyspark import pipelines as dp

        @dp.temporary_view
        def given():
            return spark.read.schema("id int, town string, price double").json("{in}/given")

        @dp.materialized_view(format="orc", partition_cols=["town"])
        def as_orc():
            return spark.table("given").select("id", "price", "town")

        @dp.materialized_view(format="json")
        def as_json():
            return spark.table("given")

        @dp.materialized_view(format="csv")
        def as_csv():
            return spark.table("given").groupBy("town").count()
    """,
}


class Killed(BaseException):
    """The end of the process."""


def post(project: Project, number: int) -> None:
    """A file of entries that come to nothing together, in several accounts, old and new."""
    amounts = [(account, account * number) for account in range(number, number + 4)]
    rows = [{"account": account, "amount": amount} for account, amount in [*amounts, (0, -sum(amount for _, amount in amounts))]]
    project.put(f"entries/{number}.json", [{"id": number * 10 + i, **row} for i, row in enumerate(rows)])


@pytest.fixture(scope="module")
def ledger(quick: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(quick, tmp_path_factory.mktemp("ledger"), "ledger", LEDGER)
    post(project, 1)
    project.run()
    return project


def consistent(project: Project) -> int:
    """How many entries anybody sees; all of them are in the balances."""
    entries, balances = project.table("entries"), project.table("balances")
    assert sum(row[2] for row in entries) == 0 == sum(row[1] for row in balances)
    assert sum(row[2] for row in balances) == len(entries)
    return len(entries)


@pytest.mark.parametrize("where", ["point", "register", "tidy"])
def test_a_publisher_that_ends_is_made_up_for(ledger: Project, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    there = len(list((ledger.folder / "in" / "entries").iterdir()))
    post(ledger, there + 1)

    def killed(*given: Any, **named: Any) -> None:
        raise Killed

    owners: dict[str, Any] = {"register": catalog.TableLocation, "tidy": editions.Editions}
    with monkeypatch.context() as patch:
        patch.setattr(owners.get(where, editions), where, killed)
        with pytest.raises(Killed):
            ledger.run()
    assert consistent(ledger) == 5 * (there + (where in ("register", "tidy")))
    ledger.run()
    assert consistent(ledger) == 5 * (there + 1)


def test_readers_see_one_epoch_while_tables_are_replaced(ledger: Project) -> None:
    current = ledger.folder / "warehouse" / "_nosync" / "ledger" / editions.CURRENT
    over, seen, found = threading.Event(), set(), []

    def by_pyarrow(edition: Path) -> tuple[int, int, int]:
        entries, balances = (pq.read_table(edition / name) for name in ("entries", "balances"))
        return len(entries), sum(balances.column("n").to_pylist()), sum(balances.column("balance").to_pylist())

    def by_duckdb(edition: Path) -> tuple[int, int, int]:
        said = f"""SELECT (SELECT count(*) FROM '{edition}/entries/*.parquet'), sum(n)::int, sum(balance)::int
                   FROM '{edition}/balances/*.parquet'"""
        row: Any = duckdb.connect().sql(said).fetchall()[0]
        return row

    def by_spark(edition: Path) -> tuple[int, int, int]:
        read = ledger.spark.read.parquet
        row = read(f"{edition}/balances").selectExpr("sum(n)", "sum(balance)").first()
        return read(f"{edition}/entries").count(), row[0], row[1]  # type: ignore[index]

    def reader(look: Callable[[Path], tuple[int, int, int]]) -> None:
        try:
            while not over.wait(0.1):
                entries, counted, balance = look(current.resolve())
                if (counted, balance) != (entries, 0):
                    found.append((look.__name__, entries, counted, balance))
                seen.add((look.__name__, entries))
        except Exception as error:
            found.append((look.__name__, repr(error)))

    readers = [threading.Thread(target=reader, args=(look,)) for look in (by_pyarrow, by_duckdb, by_spark)]
    for one in readers:
        one.start()
    reports: list[Report] = []

    def on_report(report: Report) -> None:
        reports.append(report)
        if len(reports) == 6:
            raise StopIteration
        post(ledger, len(list((ledger.folder / "in" / "entries").iterdir())) + 1)

    try:
        ledger.follow(on_report)
    finally:
        over.set()
        for one in readers:
            one.join()
    assert not found
    assert len({entries for name, entries in seen if name == "by_pyarrow"}) > 1
    assert {name for name, _ in seen} == {"by_pyarrow", "by_duckdb", "by_spark"}


def test_tables_of_any_format_follow(quick: SparkSession, tmp_path: Path) -> None:
    project = Project(quick, tmp_path, "formats", FORMATS)
    project.put("given/1.json", [{"id": 1, "town": "Ulm", "price": 1.5}, {"id": 2, "town": "Bern", "price": None}])
    project.run()
    project.put("given/2.json", [{"id": 3, "town": "Ulm", "price": 2.5}])
    assert set(project.run().outcomes.values()) == {"written whole"}
    assert project.table("as_orc") == [(1, 1.5, "Ulm"), (2, None, "Bern"), (3, 2.5, "Ulm")]
    assert project.table("as_json") == [(1, "Ulm", 1.5), (2, "Bern", None), (3, "Ulm", 2.5)]
    assert project.table("as_csv") == [("Bern", 1), ("Ulm", 2)]
    assert set(project.run().outcomes.values()) == {"unchanged"}


def test_tables_of_another_catalog_are_refused_before_anything_is_written(quick: SparkSession, tmp_path: Path) -> None:
    project = Project(quick, tmp_path, "elsewhere", LEDGER)
    post(project, 1)
    session = quick.newSession()
    for name, value in {"": JDBC_CATALOG, ".url": f"jdbc:derby:{tmp_path / 'derby'};create=true", ".driver": DERBY}.items():
        session.conf.set(f"spark.sql.catalog.lake{name}", value)
    spec = project.folder / "spark-pipeline.yml"
    spec.write_text(spec.read_text().replace("database: elsewhere", "catalog: lake\ndatabase: APP"))
    with pytest.raises(Refused, match="is in a catalog that tables cannot be put into as files"):
        run_pipeline(read_spec(spec), session)
    assert not (project.folder / "storage").exists()
