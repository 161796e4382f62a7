"""Shows mutants to the tests. The process has everything imported and every test collected; each mutant lives in a copy of it.

Promise: nothing is written into the tree; what was found is kept after every mutant, so that a run may be stopped and resumed.
"""

import gc
import json
import mmap
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from types import FunctionType

import pytest
from _pytest.runner import runtestprotocol

from .forking import DIED, OUT_OF_TIME, end_after, in_a_copy
from .histories import histories
from .mutants import Mutant, compiled
from .reach import Reached, Test
from .targets import PACKAGE

CPU_SECONDS = 2  # more than a test takes without the change, several times over: a mutant that needs it hangs
CHECK_SECONDS, WALL_SECONDS = 600, 120
MOST_SECONDS = 4  # of tests that one mutant is shown to
CONTROLS = 300
SURVIVED = "survived"
HISTORIES = "tests/simulation"
Functions = dict[tuple[str, str], list[FunctionType]]


@dataclass(frozen=True, slots=True)
class Finding:
    """What became of a mutant: `by` is the test that noticed, after `OUT_OF_TIME` or `DIED` if it did not come to its end, or empty.
    `within` is the source of the mutant's function, `against` the tests that run its lines.
    """

    name: str
    by: str
    tests: int
    within: str
    against: str

    @property
    def survived(self) -> bool:
        return not self.by

    @property
    def hung(self) -> bool:
        return self.by.startswith((OUT_OF_TIME, DIED))

    @property
    def test(self) -> str:
        return self.by.partition(" in ")[2] if self.hung else self.by


class Findings:
    """What is known from runs before, one JSON object a line; the last one counts. Several processes may add to it at once."""

    def __init__(self, cache: Path) -> None:
        self.path = cache / "findings.jsonl"
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        self.known = {finding.name: finding for finding in (Finding(**json.loads(line)) for line in lines)}

    def add(self, finding: Finding) -> None:
        self.known[finding.name] = finding
        with self.path.open("a") as file:
            file.write(json.dumps(asdict(finding)) + "\n")

    def about(self, mutant: Mutant, against: str) -> Finding | None:
        """What is still true: a mutant of the same source that was noticed, or that survived the same tests."""
        found = self.known.get(mutant.name)
        if found is None or found.within != mutant.within or (found.survived and found.against != against):
            return None
        return found


class Tests:
    """All tests, by name; with simulated histories, or without."""

    def __init__(self, items: Sequence[pytest.Item], simulated: bool = True) -> None:
        self.groups: dict[str, dict[str, Test]] = {}
        for item in items:
            self.groups.setdefault(item.nodeid.partition("::")[0], {})[item.nodeid] = partial(_passes, item)
        if simulated:
            self.groups[HISTORIES] = {name: partial(_holds, act) for name, act in histories().items()}
        self.named = {name: test for tests in self.groups.values() for name, test in tests.items()}


def _passes(item: pytest.Item) -> bool:
    """What the whole session shares, such as servers, stays up: it is all that the next test will need."""
    return not any(report.failed for report in runtestprotocol(item, log=False, nextitem=item.session))  # type: ignore[arg-type]


def _holds(history: Callable[[], object]) -> bool:
    try:
        history()
    except Exception:
        return False
    return True


def functions_loaded() -> Functions:
    """All of the package, by file and name. To be asked before memory is frozen: what is frozen is not found any more."""
    functions: Functions = {}
    for found in gc.get_objects():
        if isinstance(found, FunctionType) and found.__code__.co_filename.startswith(str(PACKAGE)):
            functions.setdefault((found.__code__.co_filename, found.__code__.co_qualname), []).append(found)
    return functions


class Runner:
    """Shows one mutant after the other."""

    def __init__(self, functions: Functions, tests: Tests, reached: Reached, known: Iterable[Finding]) -> None:
        self.functions, self.tests, self.reached = functions, tests, reached
        self.unsteady = set[str]()
        self.noticed = Counter((finding.name.partition("::")[0], finding.by) for finding in known)  # by file and test, how often

    def check(self) -> None:
        """Raises where another tree's package was imported, or tests fail although nothing was changed: nothing would mean anything."""
        if not self.functions:
            raise RuntimeError(f"nothing was imported from {PACKAGE}")
        seconds = self.reached.seconds
        names = sorted((name for name in seconds if name in self.tests.named and name not in self.reached.failed), key=seconds.__getitem__)
        failing = in_a_copy(lambda: self._failing(names[:CONTROLS]), CHECK_SECONDS)
        if failing != SURVIVED:
            raise RuntimeError(f"{failing} fails although nothing was changed")

    def show(self, mutant: Mutant, before: Finding | None) -> Finding:
        first = before.test if before else ""
        names = self.chosen(mutant, first)
        by, test = self._answer(mutant, names)
        while by in (OUT_OF_TIME, DIED) and not self._passes_alone(test):
            self.unsteady.add(test)
            names = self.chosen(mutant, first)
            by, test = self._answer(mutant, names)
        noticed = {SURVIVED: "", OUT_OF_TIME: f"{by} in {test}", DIED: f"{by} in {test}"}.get(by, by)
        self.noticed[mutant.file, noticed] += 1
        return Finding(mutant.name, noticed, len(names), mutant.within, self.reached.against(mutant))

    def _answer(self, mutant: Mutant, names: list[str]) -> tuple[str, str]:
        """Of the tests, and the one that was running last."""
        if not names:
            return SURVIVED, ""
        with mmap.mmap(-1, 8) as running:  # shared with the copy: the number of the test that is running there
            by = in_a_copy(lambda: self._noticed(mutant, names, running), WALL_SECONDS)
            return by, names[int.from_bytes(running[:])]

    def _passes_alone(self, name: str) -> bool:
        """Without any change: a test that hangs by itself, or waits too long for a busy machine, notices nothing."""
        return in_a_copy(lambda: self._failing([name]), WALL_SECONDS) == SURVIVED

    def chosen(self, mutant: Mutant, first: str) -> list[str]:
        """The test that noticed it before, those that notice most of its file for their time, those of its room, all others that run it."""
        seconds_of, near = self.reached.seconds, f"tests/{mutant.file.partition('/')[0]}/"
        names = [name for name in self.reached.tests(mutant) if name in self.tests.named and name not in self.unsteady]
        use = {name: self.noticed[mutant.file, name] / max(seconds_of[name], 0.001) for name in names}
        names.sort(key=lambda name: (name != first, -use[name], not name.startswith(near)))
        found, seconds = [], 0.0
        for name in names:
            seconds += seconds_of[name]
            if seconds > MOST_SECONDS:
                break
            found.append(name)
        return found

    def _noticed(self, mutant: Mutant, names: list[str], running: mmap.mmap) -> str:
        self.put_in_place(mutant)
        return self._failing(names, running)

    def _failing(self, names: list[str], running: mmap.mmap | None = None) -> str:
        for number, name in enumerate(names):
            if running is not None:
                running[:] = number.to_bytes(8)
            end_after(CPU_SECONDS + 4 * self.reached.seconds.get(name, 0.0))
            if not self.tests.named[name]():
                return name
        return SURVIVED

    def put_in_place(self, mutant: Mutant) -> None:
        """Everybody who has the function has the changed one from here on."""
        filename = str(PACKAGE / mutant.file)
        code = compiled(mutant, filename)
        for function in self.functions[filename, mutant.function]:
            function.__code__ = code.replace(co_freevars=function.__code__.co_freevars)  # also those of a call that was left out
