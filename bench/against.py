"""`make bench-against REV=abc1234`: this tree and an earlier revision of it in turn, over the same inputs, and the ratio of each figure.

The revision is checked out beside the tree for as long as it takes; both run in the environment of this tree, so only the code differs.
A ratio above 1 means that this tree takes longer.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.figures import median
from bench.measure import Measurement

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
CASES = ("plain", "realistic", "csv", "small", "growth", "p95")
Figures = dict[tuple[str, str], float]


@contextmanager
def checked_out(revision: str) -> Iterator[Path]:
    """The revision in a folder of its own, removed afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", tree, revision], cwd=ROOT, check=True)
        try:
            yield tree
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=ROOT, check=True)


def medians(latest: dict[str, Any]) -> Figures:
    """Milliseconds of the middle epoch by case and label; what failed or answered wrongly is left out."""
    skips = {case["name"]: case["skip"] for case in latest["cases"]}
    runs = [Measurement(**run) for run in latest["runs"]]
    return {(run.case, run.label): median(run, skips[run.case]) for run in runs if not run.error and not run.wrong}


def measured(tree: Path, work: Path, asked: argparse.Namespace) -> Figures:
    """One pass of the bench of a tree, nosync alone."""
    only = [word for case in asked.only or CASES for word in ("--only", case)]
    quick = [] if asked.full else ["--quick"]
    command = [sys.executable, "-m", "bench", *quick, *only, "--engine", "nosync", "--repetitions", "1", "--work", work, "--results", work]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tree / "src"), str(tree)])}
    subprocess.run(command, cwd=tree, env=environment, stdout=subprocess.DEVNULL, check=False)
    return medians(json.loads((work / "latest.json").read_text()))


def main(given: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.against", description="this tree beside an earlier revision")
    parser.add_argument("revision", help="a commit, tag or branch")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="each tree so often, in turn")
    parser.add_argument("--only", action="append", choices=CASES, metavar="CASE", help=f"{', '.join(CASES)}; may be repeated")
    parser.add_argument("--full", action="store_true", help="the inputs of `make bench`, not those of --quick")
    asked = parser.parse_args(given)
    ratios: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    with checked_out(asked.revision) as before:
        for _ in range(asked.rounds):
            old, new = (measured(tree, HERE / "work", asked) for tree in (before, ROOT))
            for key in old.keys() & new.keys():
                ratios[key].append((old[key], new[key]))
    title = f"milliseconds of the middle epoch, {asked.revision} and this tree, {asked.rounds} rounds in turn"
    table = Table(title=title, title_justify="left")
    for name in ("case", "engine", "before", "now", "now / before", "lowest", "highest"):
        table.add_column(name, justify="left" if name in ("case", "engine") else "right")
    for (case, label), pairs in sorted(ratios.items()):
        each = [new / old for old, new in pairs]
        middles = [f"{statistics.median(side):,.0f}" for side in zip(*pairs, strict=True)]
        table.add_row(case, label, *middles, *(f"{value:.2f}" for value in (statistics.median(each), min(each), max(each))))
    Console(width=None if sys.stdout.isatty() else 150).print(table)
    return 0 if ratios else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
