"""All mutants of a file: every operator at every place of every function.

Promise: a mutant keeps its name while its function keeps its own and the source it is made from stays as it is, wherever both move to.
Pure but for reading the file. Called by the runner, and by the check of the judgements.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import CodeType

from .operators import OPERATORS, STORAGE, Edit, Place, called

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change to one function. `lines` are those a test must run to meet it, `first` is the line that the function begins
    with; `within` tells the function's source from another.
    """

    file: str
    function: str
    kind: str
    text: str
    digest: str
    lines: tuple[int, int]
    first: int
    within: str
    edit: Edit
    tree: ast.Module

    @property
    def name(self) -> str:
        return f"{self.file}::{self.key}"

    @property
    def key(self) -> str:
        return f"{self.function}::{self.kind}::{self.digest}"


def mutants_of(source: str, file: str) -> Iterator[Mutant]:
    """In the order of the source. Each may be made once: it changes the tree that all of them share."""
    tree = ast.parse(source)
    storage = _reaching_storage(tree)
    seen = Counter[tuple[str, str, str]]()
    for name, function in functions_in(tree):
        within = _digest(ast.unparse(function))
        for edit in _edits(function, storage):
            digest = _digest(edit.text)
            seen[name, edit.kind, digest] += 1
            times = seen[name, edit.kind, digest]
            lines = (edit.node.lineno, edit.node.end_lineno)  # type: ignore[attr-defined]
            digest += f"-{times}" if times > 1 else ""
            yield Mutant(file, name, edit.kind, edit.text, digest, lines, function.lineno, within, edit, tree)


def mutants_in(root: Path, files: list[str]) -> list[Mutant]:
    """Of files below the package's root."""
    return [mutant for file in files for mutant in mutants_of((root / file).read_text(encoding="utf-8"), file)]


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:6]


def functions_in(tree: ast.AST, outside: str = "") -> Iterator[tuple[str, Function]]:
    """Functions of the module and methods of its classes, each with all that is inside it."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function):
            yield outside + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from functions_in(node, f"{outside}{node.name}.")


def _edits(function: Function, storage: frozenset[str]) -> Iterator[Edit]:
    for place in _places(function, storage):
        for operator in OPERATORS:
            yield from operator(place)


def _places(owner: ast.AST, storage: frozenset[str]) -> Iterator[Place]:
    """What a run can come to: no annotations, no decorators, nothing that only makes a message."""
    if isinstance(owner, ast.Raise | ast.JoinedStr):
        return
    fields = ("body",) if isinstance(owner, Function | ast.ClassDef) else owner._fields
    for field in fields:
        held = getattr(owner, field, None)
        if field in ("annotation", "returns", "pattern"):
            continue
        for index, node in enumerate(held if isinstance(held, list) else [held]):
            if isinstance(node, ast.AST):
                yield Place(owner, field, index if isinstance(held, list) else None, storage)
                yield from _places(node, storage)


def _reaching_storage(tree: ast.Module) -> frozenset[str]:
    """Storage's own calls, and the functions of this file that come to make one."""
    calls = {name.rpartition(".")[2]: set(called(function)) for name, function in functions_in(tree)}
    reaching = set(STORAGE)
    while more := {name for name, made in calls.items() if name not in reaching and made & reaching}:
        reaching |= more
    return frozenset(reaching)


def compiled(mutant: Mutant, filename: str) -> CodeType:
    """The code of the function with the change in it. Spends the mutant."""
    mutant.edit.make()
    return next(code for code in codes_in(compile(mutant.tree, filename, "exec")) if code.co_qualname == mutant.function)


def codes_in(code: CodeType) -> Iterator[CodeType]:
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield inner
            yield from codes_in(inner)
