"""`make mutate`: every mutant of the durability core is shown to the tests that run its lines, then to simulated histories.

Exits with 1 when one survives that is not judged equivalent (`equivalent.toml`), or when a judgement speaks of a mutant that is no more.
"""

import argparse
import os
import sys
import time
from dataclasses import dataclass, field
from hashlib import sha256
from tempfile import TemporaryDirectory

import moto.server  # noqa: F401  (imported here once, not by a fixture in every copy)
import pytest

from . import judgements
from .forking import settle_memory
from .mutants import Mutant, mutants_in
from .reach import Reach
from .report import count, described, table
from .running import Findings, Runner, Tests, functions_loaded
from .targets import PACKAGE, ROOMS, ROOT, TESTS, chosen, files_of

CACHE = ROOT / ".mutation"


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
        functions, tests, findings = functions_loaded(), Tests(quick), Findings(CACHE)
        settle_memory()
        reached = Reach(CACHE, say).of(tests.groups)
        say(*(f"fails without any change, and is left out: {name}" for name in reached.failed))
        runner = Runner(functions, tests, reached)
        runner.check()
        self._show(mutants, runner, findings)
        counts = {room: count(found, findings.known, self.judged) for room, found in rooms.items()}
        say("", table(counts))
        every = [mutant for room in ROOMS for mutant in mutants_in(PACKAGE, files_of(room))]
        gone = judgements.stale(self.judged, every)
        say(*(f"judged, but no such mutant exists: {name}" for name in gone))
        self.code = 1 if gone or any(found.survived for found in counts.values()) else 0
        return True

    def _show(self, mutants: list[Mutant], runner: Runner, findings: Findings) -> None:
        against, started, shown = _tree_digest(), time.monotonic(), 0
        for mutant in mutants:
            found = None if self.options.afresh else findings.about(mutant, against)
            if found is None and not (mutant.name in self.judged and self.options.unjudged):
                found = runner.show(mutant, findings.known.get(mutant.name), against)
                findings.add(found)
                shown += 1
                if shown % 100 == 0:
                    say(f"{shown} shown, {time.monotonic() - started:.0f} s; now {mutant.file}")
            if found is not None and found.survived and mutant.name not in self.judged:
                say(f"survived {found.tests} tests: {described(mutant)}")
            if found is not None and found.by and mutant.name in self.judged:
                say(f"judged equivalent, but {found.by} notices: {described(mutant)}")


def known(only: str) -> str:
    """What was found so far, by file."""
    findings, judged = Findings(CACHE).known, judgements.read()
    files = [file for files in chosen(only).values() for file in files]
    return table({file: count(mutants_in(PACKAGE, [file]), findings, judged) for file in files})


def _tree_digest() -> str:
    """Of everything that may notice a mutant."""
    files = sorted(path for folder in ("src", "tests") for path in (ROOT / folder).rglob("*.py"))
    return sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]


def say(*lines: str) -> None:
    for line in lines:
        print(line, flush=True)


def main() -> int:
    asked = argparse.ArgumentParser(prog="mutate", description=__doc__)
    asked.add_argument("--only", default="", help="a room such as journal, or a file such as journal/chain.py")
    asked.add_argument("--afresh", action="store_true", help="show again what was noticed before, too")
    asked.add_argument("--unjudged", action="store_true", help="do not show what is judged equivalent")
    asked.add_argument("--known", action="store_true", help="show nothing, say what is known by file")
    options = asked.parse_args()
    if not chosen(options.only):
        asked.error(f'no file of the core begins with "{options.only}"')
    CACHE.mkdir(exist_ok=True)
    if options.known:
        say(known(options.only))
        return 0
    os.chdir(ROOT)
    plugin = Mutating(options)
    flags = ["-q", "-p", "no:cacheprovider", "-p", "no:faulthandler", "--no-header", "--basetemp"]
    with TemporaryDirectory(prefix="mutation-") as folder:
        code = pytest.main([*flags, f"{folder}/tests", *TESTS], plugins=[plugin])
    return int(code) or plugin.code


if __name__ == "__main__":
    sys.exit(main())
