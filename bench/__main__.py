"""`python -m bench`: nosync beside Spark Structured Streaming, with a table, a JSON file and a picture at the end.

Ends with code 1 if a run failed or gave a wrong answer; a target that is not reached is a figure, not a failure.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from bench.cases import CASES, Case
from bench.figures import median, throughput
from bench.measure import Measurement, run_engine
from bench.picture import draw
from bench.report import save, show

HERE = Path(__file__).resolve().parent


def arguments(given: Sequence[str]) -> argparse.Namespace:
    """What the caller asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="nosync beside Spark Structured Streaming on the same files")
    parser.add_argument("--quick", action="store_true", help="small inputs, once each: shows that everything runs; the figures mean little")
    parser.add_argument("--only", action="append", choices=sorted(CASES), metavar="CASE", help=f"{', '.join(CASES)}; may be repeated")
    parser.add_argument("--engine", action="append", metavar="LABEL", help="run only engines whose label starts so; may be repeated")
    parser.add_argument("--repetitions", type=int, metavar="N", help="instead of the case's own number")
    parser.add_argument("--heap", default="", metavar="SIZE", help="heap of every engine's JVM (6g; quick 2g)")
    parser.add_argument("--work", type=Path, default=HERE / "work", metavar="DIR", help="inputs and state while running (inputs are kept)")
    parser.add_argument("--results", type=Path, default=HERE / "results", metavar="DIR", help="where latest.json and epochs.png go")
    return parser.parse_args(given)


def measure(case: Case, asked: argparse.Namespace, console: Console) -> list[Measurement]:
    """All contestants of a case in turn, as often as asked, with a line for each run."""
    runs = []
    for repetition in range(asked.repetitions or case.repetitions):
        for one in case.contestants:
            if asked.engine and not any(one.label.startswith(prefix) for prefix in asked.engine):
                continue
            run = run_engine(asked.work, case.name, one, repetition, asked.heap)
            console.print(_line(case, run))
            runs.append(run)
    return runs


def _line(case: Case, run: Measurement) -> str:
    if run.error:
        return f"{case.name}: {run.label}: failed"
    return f"{case.name}: {run.label}: {throughput(run, case.skip):,.0f} rows/s, {median(run, case.skip):,.0f} ms an epoch"


def main(given: Sequence[str]) -> int:
    """Measure, save after each case, report."""
    asked = arguments(given)
    asked.heap = asked.heap or ("2g" if asked.quick else "6g")
    asked.work = asked.work.resolve()
    console = Console() if sys.stdout.isatty() else Console(width=150)
    started = time.perf_counter()
    cases: list[Case] = []
    runs: list[Measurement] = []
    for name, make in CASES.items():
        if not asked.only or name in asked.only:
            cases.append(make(asked.work / "inputs", asked.quick))
            runs += measure(cases[-1], asked, console)
            save(asked.results / "latest.json", {"quick": asked.quick, "heap": asked.heap}, cases, runs)
    draw(asked.results / "epochs.png", cases, runs)
    show(console, cases, runs)
    console.print(f"{time.perf_counter() - started:,.0f} s in all; {asked.results / 'latest.json'}, {asked.results / 'epochs.png'}")
    return 1 if any(run.error or run.wrong for run in runs) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
