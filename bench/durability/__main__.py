"""`python -m bench.durability`: what durability costs an epoch, how soon a flow is back after a crash, and how many bytes that takes.

The cost is measured in one process: lanes (off, local, remote, S3) take turns over the same files. Spark with RocksDB and a changelog
stands beside them.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from bench import inputs
from bench.durability.lanes import Lane, race
from bench.durability.picture import draw
from bench.durability.recovery import Recovery, nosync_recovery, spark_recovery
from bench.durability.statistics import Ratio, middle, paired, tail
from bench.engines import Task, run_spark
from bench.inputs import Input
from bench.session import SETTINGS, open_session

HERE = Path(__file__).resolve().parent.parent
BOUNDS = {"local": 1.03, "remote": 1.06}
TAIL_BOUND = 1.2
SPARK_FILES = 100
CASES = ("cost", "small", "recovery", "remote")  # the last is a part of the first, alone: not run unless asked for
LANES = ("off", "local", "remote", "s3")
COST_HEADS = ("durability", "median ms", "to off", "interval", "p95 ms", "to off", "written/input", "shipped", "objects", "verdict")


def arguments(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.durability", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small inputs: shows that everything runs; the figures mean little")
    parser.add_argument("--only", action="append", choices=CASES, metavar="CASE", help=f"{', '.join(CASES)}; may be repeated")
    parser.add_argument("--work", type=Path, default=HERE / "work", metavar="DIR")
    parser.add_argument("--results", type=Path, default=HERE / "results", metavar="DIR")
    return parser.parse_args(given)


@contextmanager
def s3_server() -> Iterator[str]:
    """An S3-compatible server on loopback, in this machine's own two cores."""
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server.start()
    host, port = server.get_host_and_port()
    os.environ |= {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}", "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench",
    }  # fmt: skip
    try:
        boto3.client("s3", region_name="us-east-1").create_bucket(Bucket="bench")
        yield "s3://bench"
    finally:
        server.stop()


def cost(
    session: SparkSession, data: Input, work: Path, turn: int, skip: int, console: Console, names: Sequence[str] = LANES
) -> dict[str, Any]:
    """The lanes over one input, and the verdicts."""
    shutil.rmtree(work, ignore_errors=True)
    with s3_server() as bucket:
        remotes = {"remote": (work / "copy").absolute().as_uri(), "s3": f"{bucket}/{data.name}"}
        lanes = [Lane(name, session, data, work / name, remote=remotes.get(name), durable=name != "off") for name in names]
        race(lanes, turn, console.print)
        found = {lane.name: _facts(lane, lanes[0], skip) for lane in lanes}
        for lane in lanes:
            lane.close()
    shutil.rmtree(work, ignore_errors=True)
    return {"input": data.name, "rows": data.rows, "files": data.files, "input_bytes": data.bytes, "lanes": found}


def _facts(lane: Lane, off: Lane, skip: int) -> dict[str, Any]:
    return {
        "median_ms": 1e3 * middle(lane.seconds, skip),
        "p95_ms": 1e3 * tail(lane.seconds, skip),
        "median_to_off": asdict(paired(lane.seconds, off.seconds, skip)),
        "p95_to_off": tail(lane.seconds, skip) / tail(off.seconds, skip),
        "drain_ms": [round(1e3 * seconds) for seconds in lane.drained],
        "bytes": lane.bytes(),
        "epochs_ms": [[round(1e3 * seconds, 2) for seconds in turn] for turn in lane.seconds],
    }


def beside(session: SparkSession, data: Input, work: Path, skip: int) -> dict[str, Any]:
    """Spark over the same files."""
    shutil.rmtree(work, ignore_errors=True)
    outcome = run_spark(session, Task(data, "plain", str(work)))
    times = sorted(ms for _, ms in outcome.epochs[skip:])
    shutil.rmtree(work, ignore_errors=True)
    return {"median_ms": times[len(times) // 2], "p95_ms": times[int(0.95 * len(times))]}


def recoveries(session: SparkSession, work: Path, quick: bool) -> list[Recovery]:
    sizes = (20_000, 200_000) if quick else (1_000_000, 10_000_000)
    times, found = (1 if quick else 5), []
    for keys in sizes:
        data = inputs.growth(work / "inputs", keys, 6 if quick else 24, 50_000 if quick else 100_000, 10_000, 4 if quick else 20)
        for name, measure in (("nosync", nosync_recovery), ("spark", spark_recovery)):
            place = work / "run" / f"recovery-{name}"
            shutil.rmtree(place, ignore_errors=True)
            found.append(measure(session, data, keys, place, 4 if quick else 20, times))
            shutil.rmtree(place, ignore_errors=True)
    return found


def show(console: Console, found: dict[str, Any]) -> None:
    for name in ("cost", "small", "remote"):
        if name in found:
            console.print(_cost_table(found[name]))
    if "recovery" in found:
        console.print(_recovery_table(found["recovery"]))


def _cost_table(case: dict[str, Any]) -> Table:
    table = Table(title=f"{case['rows']:,} rows in {case['files']} files, one an epoch")
    for head in COST_HEADS:
        table.add_column(head, justify="left" if head == "durability" else "right")
    for name, facts in case["lanes"].items():
        ratio = Ratio(**facts["median_to_off"])
        written = sum(facts["bytes"][kind] for kind in ("layers", "merged", "journal")) / case["input_bytes"]
        bound = BOUNDS.get(name)
        verdict = "" if bound is None else ("reached" if ratio.value <= bound and facts["p95_to_off"] <= TAIL_BOUND else "NOT reached")
        table.add_row(
            name, f"{facts['median_ms']:.1f}", f"{ratio.value:.3f}", f"{ratio.low:.3f} to {ratio.high:.3f}", f"{facts['p95_ms']:.1f}",
            f"{facts['p95_to_off']:.2f}", f"{written:.2f}", f"{facts['bytes']['shipped'] / case['input_bytes']:.2f}",
            f"{facts['bytes']['objects']:,}", verdict,
        )  # fmt: skip
    if "spark" in case:
        table.add_row("spark-rocksdb", f"{case['spark']['median_ms']:.1f}", "", "", f"{case['spark']['p95_ms']:.1f}")
    return table


def _recovery_table(found: list[dict[str, Any]]) -> Table:
    table = Table(title="From start to the first new epoch")
    for head in ("engine", "keys", "ordinary epoch s", "back after s (median)", "least", "most", "over an epoch"):
        table.add_column(head, justify="left" if head == "engine" else "right")
    for facts in found:
        one = Recovery(**facts)
        seconds = [one.epoch, one.seconds, min(one.resumed), max(one.resumed)]
        table.add_row(one.engine, f"{one.keys:,}", *(f"{value:.3f}" for value in seconds), f"{one.seconds - one.epoch:+.3f}")
    return table


def main(given: Sequence[str]) -> int:
    asked = arguments(given)
    console = Console() if sys.stdout.isatty() else Console(width=150)
    wanted = asked.only or CASES[:3]
    work, quick = asked.work.resolve(), asked.quick
    SETTINGS["durability"] = SETTINGS["spark-rocksdb"] | SETTINGS["nosync"]
    session = open_session("durability", "2g" if quick else "6g", work / "run" / "scratch")
    found: dict[str, Any] = {"machine": {"cores": os.cpu_count(), "system": platform.platform(), "python": platform.python_version()}}
    if "cost" in wanted:
        files, rows = (16, 10_000) if quick else (1_200, 200_000)
        data = inputs.plain(work / "inputs", files, rows, 1_000_000, label="durability")
        found["cost"] = cost(session, data, work / "run" / "lanes", 4 if quick else 120, 1 if quick else 2, console)
        few = inputs.plain(work / "inputs", min(files, SPARK_FILES), rows, 1_000_000, label="durability")
        found["cost"]["spark"] = beside(session, few, work / "run" / "spark", 10)
    if "small" in wanted:
        files = 16 if quick else 1_200
        data = inputs.plain(work / "inputs", files, 1_000, 100_000, label="durability-small")
        found["small"] = cost(session, data, work / "run" / "lanes", 4 if quick else 120, 1 if quick else 2, console)
        few = inputs.plain(work / "inputs", min(files, SPARK_FILES), 1_000, 100_000, label="durability-small")
        found["small"]["spark"] = beside(session, few, work / "run" / "spark", 10)
    if "remote" in wanted:
        data = inputs.plain(work / "inputs", 16 if quick else 1_200, 10_000 if quick else 200_000, 1_000_000, label="durability")
        found["remote"] = cost(session, data, work / "run" / "lanes", 4 if quick else 120, 1 if quick else 2, console, ("off", "remote"))
    if "recovery" in wanted:
        found["recovery"] = [asdict(one) for one in recoveries(session, work, quick)]
    asked.results.mkdir(parents=True, exist_ok=True)
    (asked.results / "durability.json").write_text(json.dumps(found, indent=1))
    draw(asked.results / "durability.png", found)
    show(console, found)
    session.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
