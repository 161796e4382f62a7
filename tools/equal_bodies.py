"""Fails where two functions have the same body of four lines or more: one idea has one place.

Bodies are compared as they are written, without their docstrings and comments; the names of functions, parameters and variables count for
nothing. Places that are the same by chance, and will not stay so, are named below.
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent / "src"
LINES = 4
Function = ast.FunctionDef | ast.AsyncFunctionDef
ALLOWED: set[frozenset[str]] = set()


class Plain(ast.NodeTransformer):
    """Names of the function's own go by their number."""

    def __init__(self, names: Iterable[str]) -> None:
        self.places = {name: f"_{place}" for place, name in enumerate(dict.fromkeys(names))}

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self.places.get(node.id, node.id), node.ctx)


def body_of(function: Function) -> str | None:
    """What the function does; None where that is short."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    if not body or (body[-1].end_lineno or 0) - body[0].lineno + 1 < LINES:
        return None
    given = function.args
    names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg)))]
    text = ast.parse(ast.unparse(ast.Module(body, [])))
    names += [node.id for node in ast.walk(text) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    return ast.dump(Plain(names).visit(text))


def functions(path: Path) -> Iterator[Function]:
    return (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, Function))


def main() -> int:
    found: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for path in sorted(ROOT.rglob("*.py")):
        for function in functions(path):
            if (body := body_of(function)) is not None:
                found[body].append((f"{path.relative_to(ROOT).as_posix()}:{function.name}", function.lineno))
    equal = [places for places in found.values() if len(places) > 1 and frozenset(name for name, _ in places) not in ALLOWED]
    for places in equal:
        print("equal bodies: " + ", ".join(f"src/{name.replace(':', f':{line}:')}" for name, line in places))
    return bool(equal)


if __name__ == "__main__":
    sys.exit(main())
