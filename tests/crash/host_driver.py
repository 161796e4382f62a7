"""A program of its own: the flow of `orders` on one of several hosts. Run as
`-m tests.crash.host_driver MASTER HOST SHARED REMOTE [standby]`.

HOST/home              the flow's home, on the host's own disk
SHARED/in              files that somebody feeds
SHARED/to_customers    and the like, see `SINKS`: folders of Parquet files that both hosts write to
SHARED/calls           a line for each epoch that the function got: its number, and a digest of its rows
SHARED/reports         a line for each epoch that was reported to survive the loss of the site
SHARED/finish          once this is there, all input is processed, and the program ends

It ends with 0 when it has finished, with `FENCED` when the other host took over, and with `AWAY` when it could not start for want of disk
or remote.
"""

import faulthandler
import signal
import sys
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

import nosync as ns
from nosync.duties.upkeep import Upkeep
from nosync.runtime import stepping
from tests.crash.driver import noting, session_of
from tests.crash.orders import orders_flow
from tests.crash.waiting import until

FENCED, AWAY = 3, 4
ROLL_RECORDS = 24  # so that a few epochs are rolled up
SINKS = {"to_customers": "customers", "to_levels": "levels"}
LIFE_SECONDS = 3600.0


def work(run: ns.Run, shared: Path) -> None:
    """Until all is done, or the run has ended."""
    reported = 0

    def report() -> None:
        nonlocal reported
        safe = run.safe["site"]
        if safe > reported:
            with (shared / "reports").open("ab", buffering=0) as lines:
                lines.write(f"{safe}\n".encode())
            reported = safe

    def done() -> bool:
        report()
        return not run.isActive or (shared / "finish").exists()

    until(done, LIFE_SECONDS)
    run.processAllAvailable()
    until(lambda: not run.isActive or run.safe["site"] == run.epoch, LIFE_SECONDS)
    report()


def shared_flow(spark: SparkSession, shared: Path) -> ns.Flow:
    """The flow over SHARED/in with its sinks in SHARED."""
    flow, views = orders_flow(spark, shared / "in")
    for folder, view in SINKS.items():
        flow.sink(folder, views[view], ns.parquet(shared / folder))
    flow.sink("function", views["best"], ns.foreachEpoch(noting(shared / "calls")))
    return flow


def main(master: str, host: Path, shared: Path, remote: str, standby: bool) -> int:
    faulthandler.register(signal.SIGUSR1)  # for whoever wonders what it waits for
    stepping.Upkeep = partial(Upkeep, roll_records=ROLL_RECORDS)  # type: ignore[assignment,misc]
    flow = shared_flow(session_of(master), shared)
    try:
        with flow.start(home=host / "home", shards=2, remote=remote, standby=standby) as run:
            work(run, shared)
    except ns.Fenced as error:
        print(error, flush=True)
        return FENCED
    except (ns.Unavailable, ns.OutcomeUnknown) as error:
        print(error, flush=True)
        return AWAY
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4], standby="standby" in sys.argv[5:]))
