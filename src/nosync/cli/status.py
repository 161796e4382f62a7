"""`nosync status HOME`: what a home holds, without Spark and without disturbing a run."""

from pathlib import Path
from typing import Any

import click
import pyarrow as pa

import nosync
from nosync.cli.output import console, grid, print_json, size


@click.command()
@click.argument("home", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def status(home: Path, as_json: bool) -> None:
    """Epoch, views and size of the state in HOME."""
    facts = _facts(home)
    if as_json:
        print_json(facts)
    else:
        _print(facts)


def _facts(home: Path) -> dict[str, Any]:
    opened = nosync.open(str(home))
    views = [
        {"name": name, "rows": opened.view(name).num_rows, "columns": _columns(opened.schema(name))}
        for name in opened.views
    ]
    return {"home": str(home), "epoch": opened.epoch, **opened.status(), "views": views}


def _columns(schema: pa.Schema) -> list[dict[str, str]]:
    return [{"name": field.name, "type": str(field.type)} for field in schema]


def _print(facts: dict[str, Any]) -> None:
    screen = console()
    shown = {key: value for key, value in facts.items() if key != "views"}
    screen.print(grid(("", ""), [(key.replace("_", " "), _fact(key, value)) for key, value in shown.items()]))
    screen.print()
    rows = [(view["name"], view["rows"], ", ".join(f"{c['name']} {c['type']}" for c in view["columns"])) for view in facts["views"]]
    screen.print(grid(("view", "rows", "columns"), rows, numeric=(False, True, False)))


def _fact(key: str, value: Any) -> Any:
    if key == "bytes":
        return size(value)
    return f"{value:.2f}" if isinstance(value, float) else value
