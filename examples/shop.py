from pyspark.sql import functions as F

import nosync as ns

flow = ns.Flow("shop")                                # the active SparkSession, or a local one
purchases = flow.source("purchases", ns.files("examples/purchases", format="json", maxFilesPerTrigger=1,
                        schema="user string, item string, price double, at timestamp"))
flow.view("spend", purchases.where("price > 0").groupBy("user")
                            .agg(F.sum("price").alias("spent"), F.count("*").alias("orders")))
flow.sql("create view whales as select user, spent from spend where spent > 1000")

with flow.start(home="state/shop") as run:
    run.processAllAvailable()
    run.view("spend").orderBy("user").show()          # a DataFrame, as of the newest epoch
    run.view("spend", at=1).orderBy("user").show()    # as of epoch 1: one file an epoch here
    run.view("whales").orderBy("user").show()         # a view on a view
    run.view("purchases.rejected").select("reason", "epoch").show(truncate=False)
