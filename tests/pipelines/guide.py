"""Projects in the manner of those that Spark's guide and its sample show: small, each with what people do there in one way or another.

Batch reads whose columns nobody names, tables made in a loop, joins by the columns of DataFrames, tables of the catalog that the pipeline
does not define (`SETUP` makes them), nested rows, settings of a single query, captured changes with views upon them.
"""

RETAIL = {
    "retail.py": """
        from pyspark import pipelines as dp
        from pyspark.sql import DataFrame
        from pyspark.sql.functions import col

        @dp.table
        def sales() -> DataFrame:
            return spark.readStream.format("json").schema("number int, buyer string, at string, lines array<int>").load("{in}/sales")

        @dp.materialized_view
        def buyers() -> DataFrame:
            return spark.read.format("csv").option("header", True).load("{in}/buyers")

        @dp.materialized_view
        def sales_of_buyers() -> DataFrame:
            joined = spark.table("sales").join(spark.table("buyers"), "buyer")
            return joined.select("buyer", "number", "state", col("at").cast("date").alias("day"))

        @dp.materialized_view
        def by_state() -> DataFrame:
            return spark.table("sales_of_buyers").groupBy("state", "day").count().withColumnRenamed("count", "sales")
    """,
    "lines.sql": """
        CREATE TEMPORARY VIEW lines AS SELECT number, buyer, explode(lines) AS article FROM sales;
        CREATE MATERIALIZED VIEW articles COMMENT 'what is bought' AS
        SELECT article, count(*) AS sold, min(buyer) AS one FROM lines GROUP BY article;
        CREATE MATERIALIZED VIEW nothing_bought AS SELECT b.buyer FROM buyers b LEFT ANTI JOIN sales s ON s.buyer = b.buyer;
    """,
}

REGIONS = {
    "regions.py": """
        from pyspark import pipelines as dp
        from pyspark.sql import DataFrame
        from pyspark.sql.functions import col

        @dp.temporary_view()
        def orders_of_customers() -> DataFrame:
            orders, customers = spark.read.schema("o_key int, o_customer int, o_total double").json("{in}/orders"), spark.table("customers")
            joined = orders.join(customers, orders.o_customer == customers.c_key)
            return joined.select(col("c_key").alias("customer"), col("c_nation").alias("nation"), col("o_key").alias("number"), "o_total")

        @dp.materialized_view
        def customers() -> DataFrame:
            return spark.read.schema("c_key int, c_nation string").json("{in}/customers")

        for nation in ("FR", "DE", "IT"):
            @dp.materialized_view(name=f"{nation.lower()}_orders")
            def of_nation(wanted=nation) -> DataFrame:
                return spark.table("orders_of_customers").filter(f"nation = '{wanted}'")

        @dp.materialized_view(spark_conf={"spark.sql.caseSensitive": "false"})
        def totals() -> DataFrame:
            return spark.table("orders_of_customers").rollup("Nation", "CUSTOMER").sum("o_total").toDF("nation", "customer", "total")
    """,
}

LIBRARY = {
    "loans.py": """
        from pyspark import pipelines as dp

        @dp.table
        def loans():
            return spark.readStream.table("library.loans_given")

        @dp.materialized_view(partition_cols=["shelf"])
        def books():
            return spark.table("library.books_given").selectExpr("book", "upper(title) AS title", "shelf")
    """,
    "loans.sql": """
        CREATE STREAMING TABLE long_loans AS SELECT book, days FROM STREAM(loans) WHERE days > 20;
        CREATE MATERIALIZED VIEW by_shelf AS
        SELECT b.shelf, count(l.book) AS loans, coalesce(sum(l.days), 0) AS days
        FROM books b LEFT JOIN loans l ON b.book = l.book GROUP BY b.shelf;
        CREATE MATERIALIZED VIEW favourites AS
        SELECT shelf, book, n FROM (
          SELECT b.shelf, b.book, count(*) AS n, rank() OVER (PARTITION BY b.shelf ORDER BY count(*) DESC) AS place
          FROM loans l JOIN books b ON l.book = b.book GROUP BY b.shelf, b.book) WHERE place = 1;
    """,
}

DEVICES = {
    "devices.py": """
        from pyspark import pipelines as dp
        from pyspark.sql import functions as F

        @dp.temporary_view
        def raw():
            return spark.read.json("{in}/readings")

        @dp.materialized_view
        def readings():
            rows = spark.table("raw").select("device", "place.room", F.explode("values").alias("value"))
            return rows.withColumn("kind", F.when(F.col("value") > 50, "high").otherwise("low"))

        @dp.materialized_view
        def rooms():
            all = spark.table("readings").groupBy("room").agg(F.count("*").alias("n"), F.max("value").alias("most"))
            high = spark.table("readings").where("kind = 'high'").groupBy("room").agg(F.count("*").alias("high"))
            return all.join(high, "room", "left")
    """,
    "devices.sql": """
        CREATE MATERIALIZED VIEW spread AS
        SELECT device, count(DISTINCT value) AS values, sum(value) / count(value) AS mean FROM readings GROUP BY device;
        CREATE MATERIALIZED VIEW every_room AS SELECT room FROM readings INTERSECT SELECT room FROM rooms;
        CREATE MATERIALIZED VIEW above AS
        SELECT r.device, r.value FROM readings r WHERE r.value >= (SELECT avg(value) FROM readings x WHERE x.room = r.room);
    """,
}

VISITS = {
    "visits.sql": """
        CREATE MATERIALIZED VIEW visits AS SELECT page, visitor, CAST(at AS TIMESTAMP) AS at FROM json.`{in}/visits`;
        CREATE MATERIALIZED VIEW hours AS
        SELECT date_trunc('hour', at) AS hour, count(*) AS n, count(DISTINCT visitor) AS visitors FROM visits GROUP BY 1;
        CREATE MATERIALIZED VIEW first_page AS
        SELECT visitor, page FROM visits QUALIFY row_number() OVER (PARTITION BY visitor ORDER BY at, page) = 1;
        CREATE MATERIALIZED VIEW paths AS
        SELECT visitor, array_sort(collect_set(page)) AS pages FROM visits GROUP BY visitor HAVING count(*) > 1;
        CREATE MATERIALIZED VIEW back AS
        SELECT DISTINCT a.visitor FROM visits a JOIN visits b ON a.visitor = b.visitor AND a.page = b.page AND a.at < b.at;
    """,
}

CONTRACTS = {
    "contracts.py": """
        from pyspark import pipelines as dp
        from pyspark.sql.functions import col, expr

        @dp.table
        def contract_events():
            return spark.readStream.schema("id int, plan string, price int, changed bigint, gone boolean").json("{in}/contracts")

        @dp.materialized_view
        def events_by_plan():
            return spark.table("contract_events").groupBy("plan").count()
    """,
    "captured.py": """
        from pyspark import pipelines as dp
        from pyspark.sql.functions import col, expr

        dp.create_streaming_table("contracts")
        dp.create_auto_cdc_flow(
            target="contracts", source="contract_events", keys=["id"], sequence_by=col("changed"), apply_as_deletes=expr("gone"),
            except_column_list=["gone"],
        )

        @dp.materialized_view
        def worth():
            return spark.table("contracts").groupBy("plan").sum("price").toDF("plan", "worth")
    """,
    "history.sql": """
        CREATE STREAMING TABLE plans FLOW AUTO CDC FROM STREAM(contract_events) KEYS (id)
        APPLY AS DELETE WHEN gone SEQUENCE BY changed COLUMNS (id, plan, price) STORED AS SCD TYPE 2 TRACK HISTORY ON (plan);
    """,
}

GUIDE = {"retail": RETAIL, "regions": REGIONS, "library": LIBRARY, "devices": DEVICES, "visits": VISITS, "contracts": CONTRACTS}
SETUP = {
    "library": (
        "CREATE TABLE IF NOT EXISTS library.loans_given (book int, days int) USING json LOCATION '{in}/loans'",
        """CREATE TABLE IF NOT EXISTS library.books_given (book int, title string, shelf string)
           USING csv OPTIONS (header true) LOCATION '{in}/books'""",
    ),
}
NEWEST = "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY id ORDER BY changed DESC) AS place FROM contract_events) WHERE place = 1"
JUDGED = {
    # Spark's own does not wait for a materialized view that is read by spark.table and is in the catalog already: it found it empty.
    "by_state": "SELECT state, day, count(*) AS sales FROM sales_of_buyers GROUP BY state, day",
    "contracts": f"SELECT id, plan, price, changed FROM ({NEWEST}) WHERE NOT gone",
    "worth": f"SELECT plan, sum(price) AS worth FROM ({NEWEST}) WHERE NOT gone GROUP BY plan",
    "plans": """
        SELECT id, last_value(plan) AS plan, max_by(price, changed) AS price, min(changed) AS `__START_AT`,
          max_by(until, changed) AS `__END_AT` FROM (
          SELECT *, sum(if(again, 0, 1)) OVER (PARTITION BY id ORDER BY changed) AS run,
            lead(changed) OVER (PARTITION BY id ORDER BY changed) AS until FROM (
            SELECT *, coalesce(plan <=> lag(plan) OVER w AND NOT gone AND NOT lag(gone) OVER w, false) AS again
            FROM contract_events WINDOW w AS (PARTITION BY id ORDER BY changed)))
        WHERE NOT gone GROUP BY id, run
    """,
}
