"""A shop: orders come from Kafka, customers change in PostgreSQL; what each has spent goes to PostgreSQL and into a compacted topic, alerts
go to Kafka."""

import os

from pyspark.sql import functions as F

import nosync as ns

BROKER, DATABASE = os.environ["SHOP_BROKER"], os.environ["SHOP_DATABASE"]

shop = ns.Flow("shop")
customers = shop.source("customers", ns.postgres(DATABASE, ["customers"], slot="shop")["customers"])
orders = shop.source("orders", ns.kafka(BROKER, "orders", schema="id bigint, customer int, price decimal(9,2)"))
bought = orders.join(customers, orders["customer"] == customers["id"])
spend = shop.view(
    "spend", bought.groupBy("customer", "name").agg(F.sum("price").cast("decimal(19,2)").alias("spent"), F.count("*").alias("orders"))
)
shop.sink("spend table", spend, ns.to_postgres(DATABASE, "spend", key="customer"))
shop.sink("spend log", spend, ns.to_kafka(BROKER, "spend", key="customer"))
shop.sink("alerts", spend.where("spent > 2000"), ns.to_kafka(BROKER, "alerts", key="customer", mode="changes"))

if __name__ == "__main__":
    with shop.start(os.environ["SHOP_HOME"]) as run:
        run.awaitTermination()
