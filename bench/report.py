"""Tables for the terminal, and a JSON file for everything else."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console
from rich.table import Table

from bench.cases import Case
from bench.figures import Verdict, middle, percentile, verdicts
from bench.measure import Measurement

FORMAT = 1


def machine() -> dict[str, Any]:
    """What the figures were taken on."""
    cpu = next(
        (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), "?"
    )
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "python": platform.python_version(),
        **{name: version(name) for name in ("pyspark", "pyarrow", "numpy")},
        "commit": commit,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def save(path: Path, settings: dict[str, Any], cases: Sequence[Case], runs: Sequence[Measurement]) -> None:
    """Everything measured so far; called after every case, so that an interrupted bench leaves its figures."""
    skips = {case.name: case.skip for case in cases}
    content = {
        "format": FORMAT,
        "machine": machine(),
        "settings": settings,
        "cases": [{"name": case.name, "title": case.title, "skip": case.skip} for case in cases],
        "runs": [asdict(run) for run in runs],
        "verdicts": [asdict(verdict) for verdict in verdicts(runs, skips)],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1))


def show(console: Console, cases: Sequence[Case], runs: Sequence[Measurement]) -> None:
    """One table a case, then the targets, then whatever went wrong."""
    for case in cases:
        console.print(_case_table(case, [run for run in runs if run.case == case.name]))
    console.print(_verdict_table(verdicts(runs, {case.name: case.skip for case in cases})))
    for run in runs:
        if run.error or run.wrong:
            console.print(f"[red]{run.case}, {run.label}, repetition {run.repetition + 1}:[/red]")
            console.print(run.error or "; ".join(run.wrong or []), markup=False)


def _case_table(case: Case, runs: Sequence[Measurement]) -> Table:
    table = Table(title=f"{case.name}: {case.title}", title_justify="left")
    table.add_column("engine", no_wrap=True)
    for name in ("rows/s", "epoch ms", "p95 ms", "whole run", "PSS MiB", "anon. MiB", "disk/input", "answer", "disturbed"):
        table.add_column(name, justify="right")
    for label in dict.fromkeys(run.label for run in runs):
        table.add_row(label, *_cells([run for run in runs if run.label == label], case.skip))
    return table


def _cells(runs: Sequence[Measurement], skip: int) -> list[str]:
    good = [run for run in runs if not run.error]
    if not good:
        return ["failed"]
    slow = sorted(percentile(run, skip) for run in good)[len(good) // 2]
    whole = sorted(run.rows / run.wall_seconds for run in good)[len(good) // 2]
    return [
        f"{middle(good, skip, 'throughput'):,.0f}",
        f"{middle(good, skip, 'median'):,.0f}",
        f"{slow:,.0f}",
        f"{whole:,.0f}",
        f"{max(run.peak_pss for run in good) / 2**20:,.0f}",
        f"{max(run.peak_anonymous for run in good) / 2**20:,.0f}",
        f"{middle(good, skip, 'disk'):.2f}",
        "wrong" if any(run.wrong for run in runs) else "not asked" if good[0].wrong is None else "right",
        f"{max(run.disturbed for run in good):.0%}",
    ]


def _verdict_table(found: Sequence[Verdict]) -> Table:
    table = Table(title="targets", title_justify="left")
    for name in ("case", "figure"):
        table.add_column(name, no_wrap=True)
    for name in ("target", "measured", "spread", ""):
        table.add_column(name, justify="right")
    for verdict in found:
        target = verdict.target
        what = f"{target.measure}, {target.subject}" + (f" / {target.baseline}" if target.baseline else "")
        bound = f"{target.relation} {target.bound:g}"
        if verdict.value is None:
            table.add_row(target.case, what, bound, "-", "-", "not measured")
            continue
        word = "[green]reached[/green]" if verdict.reached else "[red]not reached[/red]"
        table.add_row(target.case, what, bound, f"{verdict.value:.2f}", f"{verdict.low:.2f} - {verdict.high:.2f}", word)
    return table
