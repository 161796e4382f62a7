"""`make mutate`: every mutant of the durability core is shown to the tests that run its lines, then to simulated histories.

Exits with 1 when one survives that is not judged equivalent (`equivalent.toml`), or when a judgement speaks of a mutant that is no more.
"""

import argparse
import multiprocessing
import os
import sys
import time
from dataclasses import dataclass, field
from itertools import groupby
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from tempfile import TemporaryDirectory

import moto.server  # noqa: F401  (imported here once, not by a fixture in every copy)
import pytest

from . import judgements
from .forking import freeze_memory
from .mutants import Mutant, mutants_in
from .reach import Reach
from .report import count, described, table
from .running import Findings, Runner, Tests, functions_loaded
from .targets import PACKAGE, ROOMS, ROOT, TESTS, chosen, files_of

CACHE = ROOT / ".mutation"
MEMORY = Path("/dev/shm")  # where an fsync costs nothing: no test of these asks what a disk keeps


@dataclass
class Mutating:
    """A plugin of pytest: where tests would be run, mutants are shown to them."""

    options: argparse.Namespace
    code: int = 0
    judged: dict[str, str] = field(default_factory=judgements.read)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        rooms = {room: mutants_in(PACKAGE, files) for room, files in chosen(self.options.only).items()}
        mutants = [mutant for room in rooms.values() for mutant in room]
        quick = [item for item in session.items if "spark" not in getattr(item, "fixturenames", ())]
        functions, tests, findings = functions_loaded(), Tests(quick, not self.options.by), Findings(CACHE)
        freeze_memory()
        reached = Reach(CACHE, say, self.options.retrace).of(tests.groups)
        say(*(f"fails without any change, and is left out: {name}" for name in reached.failed))
        runner = Runner(functions, tests, reached, findings.known.values())
        runner.check()
        self._show(mutants, runner, findings)
        if self.options.by:
            return True
        findings = Findings(CACHE)
        tell(mutants, findings, self.judged)
        counts = {room: count(found, findings.known, self.judged) for room, found in rooms.items()}
        say("", table(counts))
        every = [mutant for room in ROOMS for mutant in mutants_in(PACKAGE, files_of(room))]
        gone = judgements.stale(self.judged, every)
        say(*(f"judged, but no such mutant exists: {name}" for name in gone))
        self.code = 1 if gone or any(found.survived for found in counts.values()) else 0
        return True

    def _show(self, mutants: list[Mutant], runner: Runner, findings: Findings) -> None:
        """All that are not known, one function after the other: by several processes, each of which takes the next."""
        left = [mutant for mutant in mutants if self._is_open(mutant, runner, findings)]
        say(f"{len(left)} of {len(mutants)} to show")
        functions = [list(group) for _, group in groupby(left, key=lambda mutant: (mutant.file, mutant.function))]
        forking = multiprocessing.get_context("fork")
        taken = forking.Value("i", 0)
        showing = [forking.Process(target=self._work, args=(functions, taken, runner, findings)) for _ in range(self.options.processes)]
        for process in showing:
            process.start()
        for process in showing:
            process.join()
        if any(process.exitcode for process in showing):
            raise RuntimeError("not all were shown")

    def _is_open(self, mutant: Mutant, runner: Runner, findings: Findings) -> bool:
        if mutant.name in self.judged and self.options.unjudged:
            return False
        return bool(self.options.afresh) or findings.about(mutant, runner.reached.against(mutant)) is None

    def _work(self, functions: list[list[Mutant]], taken: "Synchronized[int]", runner: Runner, findings: Findings) -> None:
        started, shown = time.monotonic(), 0
        while True:
            with taken.get_lock():
                number, taken.value = taken.value, taken.value + 1
            if number >= len(functions):
                return
            for mutant in functions[number]:
                found = runner.show(mutant, findings.known.get(mutant.name))
                if found.by or not self.options.by:
                    findings.add(found)
                else:
                    say(f"survived {found.tests} tests: {described(mutant)}")
            before, shown = shown, shown + len(functions[number])
            if shown // 100 > before // 100:
                say(f"{shown} shown, {time.monotonic() - started:.0f} s; now {functions[number][0].file}")


def tell(mutants: list[Mutant], findings: Findings, judged: dict[str, str]) -> None:
    """What somebody must look at."""
    for mutant in mutants:
        found = findings.known.get(mutant.name)
        if found is None or found.within != mutant.within:
            continue
        if found.survived and mutant.name not in judged:
            say(f"survived {found.tests} tests: {described(mutant)}")
        if found.by and mutant.name in judged:
            say(f"judged equivalent, but {found.by} notices: {described(mutant)}")


def known(only: str) -> None:
    """What was found so far, by file."""
    findings, judged = Findings(CACHE), judgements.read()
    mutants = {file: mutants_in(PACKAGE, [file]) for files in chosen(only).values() for file in files}
    tell([one for found in mutants.values() for one in found], findings, judged)
    say(table({file: count(found, findings.known, judged) for file, found in mutants.items()}))


def say(*lines: str) -> None:
    for line in lines:
        print(line, flush=True)


def main() -> int:
    asked = argparse.ArgumentParser(prog="mutate", description=__doc__)
    asked.add_argument("--only", default="", help="a room such as journal, or a file such as journal/chain.py")
    asked.add_argument("--afresh", action="store_true", help="show again what was noticed before, too")
    asked.add_argument("--retrace", action="store_true", help="find out again which tests run which lines")
    asked.add_argument("--unjudged", action="store_true", help="do not show what is judged equivalent")
    asked.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="how many show mutants at once")
    asked.add_argument("--by", nargs="+", help="files of tests: a quick look at what these notice; what survives them stays unknown")
    asked.add_argument("--known", action="store_true", help="show nothing, say what is known by file")
    options = asked.parse_args()
    if not chosen(options.only):
        asked.error(f'no file of the core begins with "{options.only}"')
    CACHE.mkdir(exist_ok=True)
    if options.known:
        known(options.only)
        return 0
    os.chdir(ROOT)
    plugin = Mutating(options)
    flags = ["-q", "-p", "no:cacheprovider", "-p", "no:faulthandler", "-p", "no:hypothesispytest", "--no-header", "--basetemp"]
    with TemporaryDirectory(prefix="mutation-", dir=MEMORY if MEMORY.is_dir() else None) as folder:
        code = pytest.main([*flags, f"{folder}/tests", *(options.by or TESTS)], plugins=[plugin])
    return int(code) or plugin.code


if __name__ == "__main__":
    sys.exit(main())
