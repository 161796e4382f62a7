"""The flow of the demo: ordinary PySpark and SQL over three folders of JSON files, and one sink."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import functions as F

import nosync as ns
from nosync.demo.auction import AUCTIONS_SCHEMA, BIDS_SCHEMA, PEOPLE_SCHEMA

HOT = 150


def auction_flow(folder: Path, out: Path) -> ns.Flow:
    """Five views over what the feeder writes into the folder; the changes of one of them go to Parquet files."""
    flow = ns.Flow("auction")
    flow.source("people", ns.files(str(folder / "people"), format="json", schema=PEOPLE_SCHEMA))
    flow.source("auctions", ns.files(str(folder / "auctions"), format="json", schema=AUCTIONS_SCHEMA))
    bids = flow.source("bids", ns.files(str(folder / "bids"), format="json", schema=BIDS_SCHEMA))
    flow.view(
        "auction_prices",
        bids.groupBy("auction", "item", "category").agg(
            F.count("*").alias("bids"), F.max("price").alias("highest"), F.round(F.avg("price"), 2).alias("average")
        ),
    )
    hot = flow.sql(f"create view hot_auctions as select auction, item, bids, highest from auction_prices where bids >= {HOT}")
    flow.sink("hot_log", hot, ns.parquet(out), release="safe")
    flow.sql("""create view categories as
                select category, count(*) as auctions, sum(bids) as bids, max(highest) as highest from auction_prices group by category""")
    flow.view("bids_per_minute", bids.groupBy(F.date_trunc("minute", "at").alias("minute"), "channel").agg(F.count("*").alias("bids")))
    flow.sql("""create view arrivals as
                select minute, what, count(*) as number
                from (select date_trunc('minute', joined_at) as minute, 'person' as what from people
                      union all
                      select date_trunc('minute', opened_at), 'auction' from auctions)
                group by minute, what""")
    return flow
