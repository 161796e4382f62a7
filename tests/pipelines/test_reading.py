"""What a project reads in batch that is not its own: tables of a database, of the catalog, files of formats that only Spark reads."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from nosync.pipelines.running import Report
from nosync.sources import compared
from tests.pipelines.projects import Project

JDBC_CATALOG = "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog"
FILES = {
    "all.py": """
        from pyspark import pipelines as dp
        from pyspark.sql import DataFrame

        @dp.materialized_view
        def customers() -> DataFrame:
            return spark.read.jdbc("{jdbc}", "CUSTOMERS")

        @dp.materialized_view
        def by_town() -> DataFrame:
            return spark.table("lake.APP.CUSTOMERS").groupBy("TOWN").count()

        @dp.materialized_view
        def parts() -> DataFrame:
            return spark.read.table("reading_elsewhere.parts").groupBy("kind").sum("n").toDF("kind", "n")

        @dp.materialized_view
        def notes() -> DataFrame:
            return spark.read.option("rowTag", "note").schema("text string").xml("{in}/notes")
    """,
}


def with_lake(own: Callable[[SparkSession], SparkSession], jdbc: str) -> Callable[[SparkSession], SparkSession]:
    """Sessions that have the database as a catalog."""

    def session(spark: SparkSession) -> SparkSession:
        made = own(spark)
        for name, value in {"": JDBC_CATALOG, ".url": jdbc, ".driver": "org.apache.derby.iapi.jdbc.AutoloadedDriver"}.items():
            made.conf.set(f"spark.sql.catalog.lake{name}", value)
        return made

    return session


def test_what_is_not_files_is_compared_with_its_rows_before(quick: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compared, "REST", 1)
    monkeypatch.setattr(compared, "LOOK_SECONDS", 0.2)
    jdbc = f"jdbc:derby:{tmp_path / 'derby'};create=true"

    def customers(*rows: tuple[int, str], mode: str = "append") -> None:
        quick.createDataFrame([*rows], "id int, town string").toDF("ID", "TOWN").write.mode(mode).jdbc(jdbc, "CUSTOMERS")

    def note(number: int) -> None:
        (project.folder / "in" / "notes" / f"{number}.xml").write_text(f"<notes><note><text>{number}</text></note></notes>")

    monkeypatch.setattr(SparkSession, "newSession", with_lake(SparkSession.newSession, jdbc))
    project = Project(quick, tmp_path, "reading", {"all.py": FILES["all.py"].replace("{jdbc}", jdbc)})
    quick.sql(f"CREATE DATABASE reading_elsewhere LOCATION '{tmp_path / 'elsewhere'}'")
    quick.sql("CREATE TABLE reading_elsewhere.parts (n int, kind string) USING parquet PARTITIONED BY (kind)")
    quick.sql("INSERT INTO reading_elsewhere.parts VALUES (1, 'a'), (2, 'b')")
    customers((1, "Ulm"), (2, "Bern"), (2, "Bern"))
    (project.folder / "in" / "notes").mkdir(parents=True)
    note(1)
    plan = project.run().plan
    assert plan is not None
    lines = plan.lines
    assert any(line.startswith("materialized view customers: maintained; JDBCRelation(CUSTOMERS)") for line in lines), lines
    assert any(line.startswith("materialized view by_town: maintained; lake.APP.CUSTOMERS, not being files") for line in lines), lines
    assert "materialized view parts: maintained" in lines  # a table of the catalog is its files
    assert project.table("customers") == [(1, "Ulm"), (2, "Bern"), (2, "Bern")] and project.table("notes") == [("1",)]
    assert project.table("by_town") == [("Bern", 2), ("Ulm", 1)] and project.table("parts") == [("a", 1), ("b", 2)]

    quick.sql("INSERT INTO reading_elsewhere.parts VALUES (5, 'b')")
    customers((2, "Bern"), (3, "Ulm"), mode="overwrite")
    note(2)
    report = project.run()
    assert report.outcomes["by_town"] == report.outcomes["customers"] == report.outcomes["parts"] == "updated"
    assert project.table("customers") == [(2, "Bern"), (3, "Ulm")] and project.table("notes") == [("1",), ("2",)]
    assert project.table("by_town") == [("Bern", 1), ("Ulm", 1)] and project.table("parts") == [("a", 1), ("b", 7)]
    reports: list[Report] = []

    def on_report(report: Report) -> None:
        reports.append(report)
        if project.table("customers") == [(2, "Bern"), (3, "Ulm"), (4, "Ulm")] and project.table("notes") == [("1",), ("2",), ("3",)]:
            raise StopIteration
        if len(reports) == 1:
            customers((4, "Ulm"))
            note(3)

    project.follow(on_report)
