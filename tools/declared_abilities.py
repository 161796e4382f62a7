"""Fails where code asks a value whether it has an attribute: what a thing can do is declared, in a type or a protocol, and resolved once.

Reading the fields of a known type by names from a list is something else, and allowed; so is the bridge, where names are the JVM's.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent / "src" / "nosync"
ALLOWED = {
    ("cli/program.py", "flow"),  # a name in the user's module
    ("compile/regrouping.py", "elementType"),  # Spark's arrays have it
    ("compile/repeatable.py", "__eq__"),  # of the user's values
    ("compile/row_functions.py", "__dict__"),  # of the user's function
    ("compile/rules/fold.py", "__name__"),  # of the user's function
    ("model/connectors.py", "name"),  # of what the user wrote, when it is declared
    ("model/events.py", "method"),  # of the user's listener, each of whose methods may be missing
    ("journal/typed.py", "__supertype__"),  # of a NewType
    ("spark/worker.py", "mallopt"),  # of the C library
}


def asked(path: Path) -> Iterator[tuple[int, str]]:
    """Line and name of each attribute that is asked for by its name."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("getattr", "hasattr"):
            if isinstance(node.args[1], ast.Constant):
                yield node.lineno, str(node.args[1].value)
            elif node.func.id == "hasattr" or len(node.args) == 3:
                yield node.lineno, ast.unparse(node.args[1])


def main() -> int:
    places = {path.relative_to(ROOT).as_posix(): path for path in sorted(ROOT.rglob("*.py")) if path.parent.name != "bridge"}
    found = [(name, line, attribute) for name, path in places.items() for line, attribute in asked(path)]
    for name, line, attribute in found:
        if (name, attribute) not in ALLOWED:
            print(f'src/nosync/{name}:{line}: asks for "{attribute}"; declare it in a type or a protocol')
    unused = ALLOWED - {(name, attribute) for name, _, attribute in found}
    for name, attribute in sorted(unused):
        print(f'tools/declared_abilities.py: nobody asks for "{attribute}" in {name} any more; take it off the list')
    return 1 if unused or any((name, attribute) not in ALLOWED for name, _, attribute in found) else 0


if __name__ == "__main__":
    sys.exit(main())
