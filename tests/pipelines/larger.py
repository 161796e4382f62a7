"""Three projects of the size that people have: a shop, a fleet of vans, a bank. Python and SQL mixed, joins, windows, captured changes.

`ONLY_OURS` are files that Spark's own run of the same project leaves out: it has no auto CDC into tables of files, and several flows
into one of Parquet write the same log, so that one fails or its rows are lost. What they define is judged by a query in batch (`JUDGED`).
"""

SHOP = {
    "orders.py": """
        from pyspark import pipelines as dp
        from pyspark.sql import functions as F

        @dp.table(partition_cols=["day"])
        def orders():
            rows = spark.readStream.schema("id int, customer int, product int, quantity int, day string").json("{in}/orders")
            return rows.where("quantity > 0")

        @dp.table
        def returns():
            return spark.readStream.schema("id int, quantity int").json("{in}/returns")

        @dp.materialized_view
        def customers():
            return spark.read.option("header", True).schema("customer int, town string").csv("{in}/customers")

        @dp.materialized_view
        def products():
            return spark.read.schema("product int, price decimal(8,2), kind string").json("{in}/products")

        @dp.temporary_view
        def lines():
            return spark.table("orders").join(spark.table("products"), "product")

        for kind in ("tool", "toy"):
            @dp.materialized_view(name=f"{kind}_sales")
            def sales(kind=kind):
                rows = spark.table("lines").where(F.col("kind") == kind)
                sales = F.sum(F.col("price") * F.col("quantity")).alias("sales")
                return rows.groupBy("day").agg(sales, F.countDistinct("customer").alias("buyers"))
    """,
    "reports.sql": """
        CREATE MATERIALIZED VIEW by_town COMMENT 'sales by town' AS
        SELECT c.town, count(*) AS lines, sum(l.price * l.quantity) AS sales, max(l.quantity) AS largest
        FROM lines l LEFT JOIN customers c USING (customer) GROUP BY c.town;

        CREATE MATERIALIZED VIEW best AS
        SELECT day, product, sold FROM (
          SELECT day, product, sum(quantity) AS sold, row_number() OVER (PARTITION BY day ORDER BY sum(quantity) DESC, product) AS place
          FROM orders GROUP BY day, product) WHERE place <= 2;

        CREATE MATERIALIZED VIEW never_returned AS
        SELECT o.id, o.customer FROM orders o WHERE NOT EXISTS (SELECT 1 FROM returns r WHERE r.id = o.id);

        CREATE MATERIALIZED VIEW above_average AS
        WITH spent AS (SELECT customer, sum(price * quantity) AS spent FROM lines GROUP BY customer)
        SELECT customer, spent FROM spent WHERE spent > (SELECT avg(spent) FROM spent);
    """,
    "several.py": """
        from pyspark import pipelines as dp

        dp.create_streaming_table("movements", comment="what left the house, and what came back")

        @dp.append_flow(target="movements")
        def out():
            return spark.readStream.table("orders").selectExpr("id", "-quantity AS quantity")

        @dp.append_flow(target="movements")
        def back():
            return spark.readStream.table("returns").select("id", "quantity")
    """,
    "net.sql": "CREATE MATERIALIZED VIEW net AS SELECT id, sum(quantity) AS quantity FROM movements GROUP BY id;",
}

FLEET = {
    "vans.py": """
        from pyspark import pipelines as dp
        from pyspark.sql import Window, functions as F

        @dp.table
        def positions():
            return spark.readStream.schema("van string, at timestamp, km double, load int").json("{in}/positions")

        @dp.table
        def heavy():
            return spark.readStream.table("positions").where("load > 50").select("van", "at")

        @dp.materialized_view
        def vans():
            return spark.read.option("header", True).schema("van string, depot string").csv("{in}/vans")

        @dp.materialized_view
        def legs():
            order = Window.partitionBy("van").orderBy("at", "km")
            return spark.table("positions").select("van", "at", "km", (F.col("km") - F.lag("km").over(order)).alias("leg"))

        @dp.materialized_view
        def latest():
            order = Window.partitionBy("van").orderBy(F.desc("at"), F.desc("km"))
            return spark.table("positions").withColumn("n", F.row_number().over(order)).where("n = 1").drop("n")

        @dp.materialized_view
        def by_quarter_hour():
            windows = spark.table("positions").groupBy(F.window("at", "15 minutes"), "van")
            return windows.agg(F.count("*").alias("n"), F.avg("load").alias("load")).select("window.start", "van", "n", "load")

        @dp.materialized_view
        def typical():
            return spark.table("positions").groupBy("van").agg(F.percentile("load", 0.5).alias("median"), F.stddev("load").alias("spread"))
    """,
    "depots.sql": """
        CREATE TEMPORARY VIEW known AS SELECT p.*, v.depot FROM positions p JOIN vans v ON p.van = v.van;
        CREATE MATERIALIZED VIEW depots AS SELECT depot, count(DISTINCT van) AS vans, sum(load) AS load FROM known GROUP BY depot;
        CREATE MATERIALIZED VIEW unknown AS
        SELECT DISTINCT van FROM positions WHERE van NOT IN (SELECT van FROM vans WHERE van IS NOT NULL);
        CREATE MATERIALIZED VIEW long_legs AS
        SELECT l.van, v.depot, l.leg FROM legs l LEFT JOIN vans v ON l.van = v.van WHERE l.leg > 10;
        CREATE MATERIALIZED VIEW all_vans AS SELECT van FROM vans UNION SELECT van FROM positions;
        CREATE STREAMING TABLE light AS SELECT van, load FROM STREAM(positions) WHERE load <= 50;
    """,
}

BANK = {
    "accounts.py": """
        from pyspark import pipelines as dp
        from pyspark.sql import functions as F

        EVENTS = "account int, holder string, branch string, version bigint, op string"

        @dp.table
        def account_events():
            return spark.readStream.schema(EVENTS).json("{in}/accounts")

        @dp.table
        def transfers():
            return spark.readStream.schema("id int, source int, target int, amount decimal(10,2)").json("{in}/transfers")

        @dp.materialized_view
        def branches():
            return spark.read.option("header", True).schema("branch string, region string").csv("{in}/branches")

        @dp.temporary_view
        def bookings():
            rows = spark.table("transfers")
            paid = rows.select("id", F.col("source").alias("account"), (-F.col("amount")).alias("amount"))
            return paid.unionAll(rows.select("id", F.col("target").alias("account"), "amount"))

        @dp.materialized_view
        def balances():
            return spark.table("bookings").groupBy("account").agg(F.sum("amount").alias("balance"), F.count("*").alias("bookings"))
    """,
    "ledger.sql": """
        CREATE MATERIALIZED VIEW running AS
        SELECT account, id, amount, sum(amount) OVER (PARTITION BY account ORDER BY id, amount) AS balance FROM bookings;

        CREATE MATERIALIZED VIEW overdrawn AS SELECT account, balance FROM balances WHERE balance < 0;
        CREATE MATERIALIZED VIEW mutual AS
        SELECT a.source, a.target, sum(a.amount) AS amount FROM transfers a LEFT SEMI JOIN transfers b
        ON a.source = b.target AND a.target = b.source GROUP BY a.source, a.target;
        CREATE MATERIALIZED VIEW events_by_branch AS
        SELECT e.branch, b.region, count(*) AS n
        FROM account_events e FULL JOIN branches b ON e.branch = b.branch GROUP BY e.branch, b.region;
        CREATE MATERIALIZED VIEW totals AS SELECT sum(amount) AS amount, count(DISTINCT source) AS payers, max(id) AS newest FROM transfers;
        CREATE MATERIALIZED VIEW without_branch AS SELECT branch FROM account_events EXCEPT SELECT branch FROM branches;
    """,
    "captured.py": """
        from pyspark import pipelines as dp

        dp.create_streaming_table("accounts")
        dp.create_auto_cdc_flow(
            target="accounts", source="account_events", keys=["account"], sequence_by="version", apply_as_deletes="op = 'DELETE'",
            except_column_list=["op"],
        )
    """,
    "history.sql": """
        CREATE STREAMING TABLE account_history FLOW AUTO CDC FROM STREAM(account_events) KEYS (account)
        APPLY AS DELETE WHEN op = 'DELETE' SEQUENCE BY version COLUMNS * EXCEPT (op, version) STORED AS SCD TYPE 2;
    """,
}

PROJECTS = {"shop": SHOP, "fleet": FLEET, "bank": BANK}
ONLY_OURS = ("captured.py", "history.sql", "several.py", "net.sql")
JUDGED = {
    "movements": "SELECT id, -quantity AS quantity FROM orders UNION ALL SELECT id, quantity FROM returns",
    "net": """
        SELECT id, sum(quantity) AS quantity FROM (SELECT id, -quantity AS quantity FROM orders UNION ALL SELECT id, quantity FROM returns)
        GROUP BY id
    """,
    "accounts": """
        SELECT account, holder, branch, version FROM (
          SELECT *, row_number() OVER (PARTITION BY account ORDER BY version DESC) AS place FROM account_events)
        WHERE place = 1 AND op <> 'DELETE'
    """,
    "account_history": """
        SELECT account, last_value(holder) AS holder, last_value(branch) AS branch, min(version) AS `__START_AT`,
          max_by(until, version) AS `__END_AT`
        FROM (
          SELECT *, sum(if(again, 0, 1)) OVER (PARTITION BY account ORDER BY version) AS run FROM (
            SELECT *, lead(version) OVER (PARTITION BY account ORDER BY version) AS until,
              coalesce(holder <=> lag(holder) OVER w AND branch <=> lag(branch) OVER w
                AND op <> 'DELETE' AND lag(op) OVER w <> 'DELETE', false) AS again
            FROM account_events WINDOW w AS (PARTITION BY account ORDER BY version)))
        WHERE op <> 'DELETE' GROUP BY account, run
    """,
}
