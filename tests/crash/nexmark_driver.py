"""A program of its own: all queries of Nexmark over the files that are there. Run as `-m tests.crash.nexmark_driver PLACE`.

PLACE/files   the streams PLACE/home    the flow's home
"""

import sys
from pathlib import Path

from pyspark.sql import SparkSession

import nosync as ns
from bench.nexmark.files import side, sources
from bench.nexmark.queries import QUERIES
from tests.crash.driver import session_of


def nexmark_flow(spark: SparkSession, folder: Path) -> ns.Flow:
    """Every query as a view."""
    side(spark)
    flow = ns.Flow("nexmark", spark)
    sources(flow, folder)
    for name, query in QUERIES.items():
        flow.sql(f"create view {name} as {query}")
    return flow


def main(place: Path) -> None:
    flow = nexmark_flow(session_of("local[2]"), place / "files")
    with flow.start(home=place / "home", shards=2, trigger={"availableNow": True}) as run:
        run.awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
