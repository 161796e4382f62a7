"""Fails where something that is read back could become code: pickles, marshalled code, `eval` and the like, anywhere in src.

Spark ships the user's own functions to its workers as pickles; that is between Spark and the program that declares them, and never
touches a file of ours. The places that take part in it are named below.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
MODULES = {"pickle", "_pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve", "yaml", "jsonpickle", "code", "codeop", "runpy"}
NAMES = {"CPickleSerializer", "PickleSerializer", "AutoBatchedSerializer", "PyExtensionType", "read_pickle", "to_pickle"}
OF_YAML = {"safe_load", "YAMLError"}  # what may be used of it
CALLS = {"eval", "exec", "compile", "__import__"}
ALLOWED = {
    ("cli/program.py", "cloudpickle"),  # says that functions of the user's file travel by value
    ("pipelines/loading.py", "cloudpickle"),  # the same of the files of a pipeline
    ("pipelines/spec.py", "yaml"),  # the file of a pipeline, a part of the program: plain values only, by safe_load
    ("bridge/functions.py", "CPickleSerializer"),  # takes the user's functions out of the plan that was just declared
}


def offences(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Lines and what they use."""
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                yield from ((node.lineno, part) for alias in node.names for part in alias.name.split(".") if part in MODULES)
            case ast.ImportFrom():
                parts = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
                yield from ((node.lineno, part) for part in parts if part in MODULES | NAMES)
            case ast.Call(func=ast.Name(id="needed") | ast.Attribute(attr="import_module"), args=[ast.Constant(value=str(name)), *_]):
                yield from ((node.lineno, part) for part in name.split(".") if part in MODULES)
            case ast.Attribute(value=ast.Name(id="yaml")) if node.attr not in OF_YAML:
                yield node.lineno, f"yaml.{node.attr}"
            case ast.Attribute() if node.attr in NAMES:
                yield node.lineno, node.attr
            case ast.Call(func=ast.Name(id=name)) if name in CALLS:
                yield node.lineno, name
            case ast.keyword(arg="allow_pickle"):
                yield node.value.lineno, "allow_pickle"


def main(source: Path = ROOT / "src/nosync") -> int:
    found = [
        f"{path.relative_to(source)}:{line}: {what}"
        for path in sorted(source.rglob("*.py"))
        for line, what in offences(ast.parse(path.read_text()))
        if (str(path.relative_to(source)), what) not in ALLOWED
    ]
    print("\n".join(found) or "nothing that is read back can become code")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
