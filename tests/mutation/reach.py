"""Which tests can notice a mutant: those that run its lines, the quickest first.

Found by running every test once under a tracer; kept by test file (`reach.json` in the cache) until that file changes. What is kept may be
older than the code: of a function that has changed all tests are taken that ran any line of it; a test that has come to run it since is not
known. Nothing is wrongly taken for noticed. `--retrace` does all anew.
"""

import ast
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from .forking import in_a_copy
from .mutants import Mutant, functions_in
from .targets import PACKAGE, ROOMS, ROOT, files_of
from .tracing import Lines, Slow, Tracer, at_most

SLOW_SECONDS = 1.5  # of the processor, under the tracer; slower tests are left out
TRACE_SECONDS = 600
ANYWHERE = "anywhere"  # in a function
Test = Callable[[], bool]  # says whether it passed
Places = dict[str, dict[int, tuple[str, int]]]


@dataclass(slots=True)
class Reached:
    """By function, then by line counted from its first: the tests that run it. Of each test the seconds it took, and its file's digest."""

    lines: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    def tests(self, mutant: Mutant) -> list[str]:
        """The quickest first."""
        known = self.lines.get(f"{mutant.file}::{mutant.function}", {})
        lines = range(mutant.lines[0] - mutant.first, mutant.lines[1] - mutant.first + 1)
        found = {test for line in (*map(str, lines), ANYWHERE) for test in known.get(line, ())}
        return sorted(found, key=lambda test: (self.seconds[test], test))

    def against(self, mutant: Mutant) -> str:
        """Tells these tests from others: one that has changed may notice what it did not before."""
        digests = {f"{test} {self.digests[test]}" for test in self.tests(mutant)}
        return sha256("\n".join(sorted(digests)).encode()).hexdigest()[:16]

    def add(self, part: dict[str, Any], digest: str = "", sources: Mapping[str, str] | None = None) -> None:
        """Of a function that is not what it was when it was traced (`sources` has what it is), nobody knows which lines a test runs."""
        for function, lines in part["lines"].items():
            known = self.lines.setdefault(function, {})
            changed = sources is not None and part.get("sources", {}).get(function) != sources.get(function)
            for line, tests in lines.items():
                known.setdefault(ANYWHERE if changed else line, []).extend(tests)
        self.seconds |= part["seconds"]
        self.digests |= dict.fromkeys(part["seconds"], digest)
        self.failed += part["failed"]


class Reach:
    """Traces what was not traced yet."""

    def __init__(self, cache: Path, say: Callable[[str], None], afresh: bool) -> None:
        self.path, self.say = cache / "reach.json", say
        self.kept: dict[str, dict[str, Any]] = json.loads(self.path.read_text()) if self.path.exists() and not afresh else {}

    def of(self, groups: dict[str, dict[str, Test]]) -> Reached:
        """Tests come in groups: by the file that they are in, or by what they import."""
        reached, places, sources = Reached(), _places(), _sources()
        for group, tests in groups.items():
            digest = self._digest(group)
            key = f"{group} {digest} {len(tests)}"
            part = self.kept.get(key, {"lines": {}, "seconds": {}, "failed": list(tests)})
            if part["failed"]:  # or never tried
                self.kept = {old: found for old, found in self.kept.items() if old.partition(" ")[0] != group}
                self.kept[key] = self._traced({name: tests[name] for name in part["failed"]}, places, part)
                self._keep()
                self.say(f"traced {group}")
            reached.add(self.kept[key], digest, sources)
        return reached

    def _keep(self) -> None:
        """Another run may read it meanwhile."""
        written = self.path.with_suffix(f".{os.getpid()}")
        written.write_text(json.dumps(self.kept))
        written.replace(self.path)

    def _traced(self, tests: dict[str, Test], places: Places, part: dict[str, Any]) -> dict[str, Any]:
        known = Reached(part["lines"], seconds=part["seconds"])
        found = _in_a_copy(tests, places)
        for one in [found] if found is not None else [self._alone(name, test, places) for name, test in tests.items()]:
            known.add(one)
        return {"lines": known.lines, "seconds": known.seconds, "failed": known.failed, "sources": _sources()}

    def _alone(self, name: str, test: Test, places: Places) -> dict[str, Any]:
        """Of a file one of whose tests hangs, or takes its process along."""
        found = _in_a_copy({name: test}, places)
        if found is None:
            self.say(f"cannot be traced, and is left out: {name}")
        return found or {"lines": {}, "seconds": {name: SLOW_SECONDS}, "failed": []}

    def _digest(self, group: str) -> str:
        path = ROOT / group
        files: Iterable[Path] = sorted(path.glob("*.py")) if path.is_dir() else [path]
        return sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


def _in_a_copy(tests: dict[str, Test], places: Places) -> dict[str, Any] | None:
    """None where the tests do not come to their end."""
    try:
        found: dict[str, Any] = json.loads(in_a_copy(lambda: json.dumps(_traced(tests, places)), TRACE_SECONDS))
    except (RuntimeError, ValueError):
        return None
    return found


def _traced(tests: dict[str, Test], places: Places) -> dict[str, Any]:
    lines: dict[str, dict[str, list[str]]] = {}
    seconds: dict[str, float] = {}
    failed: list[str] = []
    for name, test in tests.items():
        tracer, started, passed = Tracer(places), time.process_time(), False
        with suppress(Slow), at_most(SLOW_SECONDS), tracer.watching():
            passed = test()
        seconds[name] = round(time.process_time() - started, 4)
        if seconds[name] >= SLOW_SECONDS:
            continue
        if not passed:
            failed.append(name)
            continue
        for function, line in _located(tracer.lines, places):
            lines.setdefault(function, {}).setdefault(str(line), []).append(name)
    return {"lines": lines, "seconds": seconds, "failed": failed}


def _sources() -> dict[str, str]:
    """Of each function, a digest of what it is now."""
    trees = {file: ast.parse((PACKAGE / file).read_text(encoding="utf-8")) for room in ROOMS for file in files_of(room)}
    functions = {f"{file}::{name}": function for file, tree in trees.items() for name, function in functions_in(tree)}
    return {name: sha256(ast.dump(function).encode()).hexdigest()[:6] for name, function in functions.items()}


def _places() -> Places:
    """By file and line: the function that the line is in, and the line counted from the function's first."""
    found: Places = {}
    for file in [file for room in ROOMS for file in files_of(room)]:
        path = PACKAGE / file
        for name, function in functions_in(ast.parse(path.read_text(encoding="utf-8"))):
            for line in range(function.lineno, (function.end_lineno or 0) + 1):
                found.setdefault(str(path), {})[line] = (f"{file}::{name}", line - function.lineno)
    return found


def _located(lines: Lines, places: Places) -> Sequence[tuple[str, int]]:
    return [places[file][line] for file, line in sorted(lines) if line in places.get(file, {})]
