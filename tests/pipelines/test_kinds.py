"""Constructs of a pipeline beside plain tables: captured changes, sinks, views of the catalog, windows that close, refreshing."""

import json

import pytest
from pyspark.sql import SparkSession

from nosync.history.home import open as open_home
from nosync.pipelines.running import Report
from tests.pipelines.projects import Project

FILES = {
    "all.py": """
        from pyspark import pipelines as dp
        from pyspark.sql import DataFrame, functions as F

        @dp.table
        def events() -> DataFrame:
            return spark.readStream.schema("id int, name string, town string, version bigint, op string").json("{in}/events")

        dp.create_streaming_table("newest")
        dp.create_auto_cdc_flow(
            target="newest", source="events", keys=[F.col("id")], sequence_by=F.col("version"), apply_as_deletes="op = 'DELETE'",
            except_column_list=["op", "town"], stored_as_scd_type=1,
        )

        @dp.table
        def clicks() -> DataFrame:
            return spark.readStream.schema("at timestamp, n int").json("{in}/clicks").withWatermark("at", "10 seconds")

        @dp.table
        def by_minute() -> DataFrame:
            rows = spark.readStream.table("clicks").withWatermark("at", "10 seconds")
            return rows.groupBy(F.window("at", "1 minute")).agg(F.sum("n").alias("n")).select("window.start", "n")

        dp.create_sink("out", "json", {"path": "{in}/../out"})

        @dp.append_flow(target="out")
        def send() -> DataFrame:
            return spark.readStream.table("clicks").select("n")
    """,
    "history.sql": """
        CREATE STREAMING TABLE history FLOW AUTO CDC FROM STREAM(events) KEYS (id) APPLY AS DELETE WHEN op = 'DELETE'
        SEQUENCE BY version COLUMNS (id, name, town) STORED AS SCD TYPE 2 TRACK HISTORY ON * EXCEPT (town);

        CREATE VIEW named COMMENT 'those with a name' AS SELECT id FROM newest WHERE name IS NOT NULL;
    """,
}


def event(number: int, name: str | None, version: int | None, town: str = "Ulm", op: str = "UPSERT") -> dict[str, object]:
    return {"id": number, "name": name, "town": town, "version": version, "op": op}


@pytest.fixture(scope="module")
def project(quick: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(quick, tmp_path_factory.mktemp("kinds"), "kinds", FILES)
    project.put("events/1.json", [event(1, "alice", 1), event(2, "bob", 1), event(9, "none", None)])
    project.put("clicks/1.json", [{"at": "2026-01-01T10:00:05", "n": 1}, {"at": "2026-01-01T10:00:50", "n": 2}])
    return project


def test_constructs_beside_plain_tables(project: Project) -> None:
    project.run()
    assert project.table("newest") == [(1, "alice", 1), (2, "bob", 1)]
    assert project.table("history") == [(1, "alice", "Ulm", 1, None), (2, "bob", "Ulm", 1, None)]
    assert project.table("by_minute") == []  # may still grow
    assert project.table("named") == [(1,), (2,)]

    project.put(
        "events/2.json", [event(1, "alicia", 5), event(1, "alice", 3, "Bern"), event(2, "bob", 2, op="DELETE"), event(3, "carol", 1)]
    )
    project.put("clicks/2.json", [{"at": "2026-01-01T10:02:00", "n": 4}])
    project.run()
    assert project.table("newest") == [(1, "alicia", 5), (3, "carol", 1)]
    alice = [(1, "alice", "Bern", 1, 5), (1, "alicia", "Ulm", 5, None)]  # what is not tracked is that of the last event
    assert project.table("history") == [*alice, (2, "bob", "Ulm", 1, 2), (3, "carol", "Ulm", 1, None)]
    assert [row[1] for row in project.table("by_minute")] == [3]

    reports: list[Report] = []

    def on_report(report: Report) -> None:
        reports.append(report)
        if len(reports) > 1:
            raise StopIteration
        project.put("events/3.json", [event(1, "bert", 4), event(2, "late", 1), event(3, "carol", 2)])

    project.follow(on_report)
    assert reports[0].epoch + 1 == reports[1].epoch and reports[1].outcomes["newest"] == "updated"
    assert project.table("newest") == [(1, "alicia", 5), (3, "carol", 2)]  # late events change nothing
    alice = [(1, "alice", "Bern", 1, 4), (1, "alicia", "Ulm", 5, None), (1, "bert", "Ulm", 4, 5)]
    assert [row for row in project.table("history") if row[0] == 1] == alice
    sent = [json.loads(line)["n"] for file in (project.folder / "out").glob("epoch-*.json") for line in file.read_text().splitlines()]
    assert sorted(sent) == [1, 2, 4]

    home = open_home(project.folder / "storage" / "nosync" / "home-1")  # every table is a view with a history
    assert sorted(row["name"] for row in home.view("newest", at=1).to_pylist()) == ["alice", "bob"]
    assert [row["name"] for row in home.view("newest.rejected").to_pylist()] == ["none"]
