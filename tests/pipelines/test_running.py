"""A project, unchanged, run several times over input that grows, changes and shrinks: its tables are what Spark would make of it."""

import pytest
from pyspark.sql import SparkSession

from nosync.pipelines import running
from nosync.pipelines.running import Report
from tests.pipelines.projects import Project

SHOP = {
    "ingest.py": """
        from pyspark import pipelines as dp
        from pyspark.sql import DataFrame, functions as F

        @dp.table(comment="every order", table_properties={"team": "sales"})
        def orders() -> DataFrame:
            return spark.readStream.schema("id int, customer int, price double").json("{in}/orders")

        @dp.materialized_view
        def customers() -> DataFrame:
            return spark.read.option("header", True).schema("customer int, town string").csv("{in}/customers")

        @dp.temporary_view
        def large() -> DataFrame:
            return spark.table("orders").where("price >= 10")

        @dp.materialized_view(partition_cols=["town"])
        def by_town() -> DataFrame:
            joined = spark.table("orders").join(spark.read.table("customers"), "customer", "left")
            return joined.groupBy("town").agg(F.sum("price").alias("spent"), F.count("*").alias("orders"))

        dp.create_streaming_table("seen")

        @dp.append_flow(target="seen")
        def seen_orders() -> DataFrame:
            return spark.readStream.table("orders").select("id", F.lit("order").alias("what"))

        @dp.append_flow(target="seen")
        def seen_returns() -> DataFrame:
            return spark.readStream.schema("id int").json("{in}/returns").select("id", F.lit("return").alias("what"))
    """,
    "views.sql": """
        -- the dearest; a semicolon in a text does not end the statement
        CREATE MATERIALIZED VIEW dearest COMMENT 'one; row' AS
        WITH most AS (SELECT max(price) AS price FROM large)
        SELECT o.id, o.price FROM orders o WHERE o.price = (SELECT price FROM most);

        CREATE STREAMING TABLE dear AS SELECT id, price FROM STREAM(orders) WHERE price > 15;

        CREATE MATERIALIZED VIEW twice AS
        SELECT a.id FROM orders a JOIN orders b ON a.customer = b.customer AND a.id <> b.id;

        CREATE MATERIALIZED VIEW today AS SELECT count(*) AS n, current_date() AS day FROM by_town;
        CREATE MATERIALIZED VIEW after_today AS SELECT n + 1 AS m FROM today;
    """,
}


@pytest.fixture(scope="module")
def shop(quick: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(quick, tmp_path_factory.mktemp("shop"), "shop", SHOP)
    project.put("orders/1.json", [{"id": 1, "customer": 1, "price": 5.0}, {"id": 2, "customer": 2, "price": 20.0}])
    project.put("customers/1.csv", [{"customer": 1, "town": "Ulm"}])
    project.put("customers/2.csv", [{"customer": 2, "town": "Bern"}])
    project.put("returns/1.json", [{"id": 1}])
    return project


def test_tables_follow_what_is_added_changed_and_removed(shop: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    report = shop.run()
    assert report.outcomes["orders"] == "written whole"
    assert shop.table("orders") == [(1, 1, 5.0), (2, 2, 20.0)]
    assert shop.table("by_town") == [(20.0, 1, "Bern"), (5.0, 1, "Ulm")]
    assert shop.table("seen") == [(1, "order"), (1, "return"), (2, "order")]
    assert shop.table("dearest") == [(2, 20.0)] and shop.table("dear") == [(2, 20.0)] and shop.table("twice") == []
    assert shop.table("after_today") == [(3,)]

    shop.put("orders/2.json", [{"id": 3, "customer": 1, "price": 30.0}])
    shop.put("customers/2.csv", [{"customer": 2, "town": "Ulm"}])
    report = shop.run()
    assert report.outcomes["by_town"] == report.outcomes["orders"] == "updated" and report.outcomes["today"] == "recomputed whole"
    assert shop.table("by_town") == [(55.0, 3, "Ulm")]
    assert shop.table("seen") == [(1, "order"), (1, "return"), (2, "order"), (3, "order")]
    assert shop.table("dearest") == [(3, 30.0)] and shop.table("dear") == [(2, 20.0), (3, 30.0)] and shop.table("twice") == [(1,), (3,)]
    assert shop.table("customers") == [(1, "Ulm"), (2, "Ulm")]

    shop.remove("customers/1.csv")
    shop.remove("orders/1.json")
    report = shop.run(full_refresh=["orders"], refresh=["customers", "by_town"])
    assert set(report.outcomes) == {"orders", "customers", "by_town"}
    assert shop.table("orders") == [(3, 1, 30.0)] and shop.table("by_town") == [(30.0, 1, None)]  # what is there now
    assert shop.table("customers") == [(2, "Ulm")]
    assert shop.table("dear") == [(2, 20.0), (3, 30.0)]  # not asked for
    described = {row[0]: row[1] for row in shop.spark.sql("DESCRIBE TABLE EXTENDED shop.orders").collect()}
    assert described["Comment"] == "every order" and "team=sales" in described["Table Properties"] and described["Provider"] == "parquet"

    reports: list[Report] = []

    def on_report(report: Report) -> None:
        reports.append(report)
        if len(reports) == 2:
            raise StopIteration

    monkeypatch.setattr(running, "WHOLE_SECONDS", 0.0)
    monkeypatch.setattr(running, "REST", 0)
    shop.follow(on_report)
    assert reports[0].epoch == reports[1].epoch and reports[1].outcomes["today"] == "recomputed whole"  # by the clock, without input
