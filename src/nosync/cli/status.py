"""`nosync status HOME`: what a home holds, without Spark and without disturbing a run."""

from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import click
import pyarrow as pa

from nosync.cli.output import console, grid, listed, print_json, size
from nosync.history.home import open as open_home


@click.command()
@click.argument("home", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.option("--rows", "count_rows", is_flag=True, help="Count the rows of each view too: reads all its layers.")
def status(home: Path, as_json: bool, count_rows: bool) -> None:
    """Epoch, safe points, sinks, views and size of the state in HOME, and who runs it. `fsck --remote` says what survives the site."""
    facts = _facts(home, count_rows)
    if as_json:
        print_json(facts)
    else:
        _print(facts)


def _facts(home: Path, count_rows: bool) -> dict[str, Any]:
    """From the journal and the status file alone: layers may be lost, or on their way back. Counting rows is what needs them."""
    opened = open_home(home)
    counts = {name: {"rows": sum(batch.num_rows for batch in opened.batches(name))} for name in opened.views if count_rows}
    views = [{"name": name, **counts.get(name, {}), "columns": _columns(opened.schema(name))} for name in opened.views]
    return {"home": str(home), **opened.status.to_json(), "views": views}


def _columns(schema: pa.Schema) -> list[dict[str, str]]:
    return [{"name": field.name, "type": str(field.type)} for field in schema]


def _print(facts: dict[str, Any]) -> None:
    screen = console()
    screen.print(grid(("home", facts["home"]), [(words, fact) for words, fact in map(partial(_fact, facts), FACTS) if fact]))
    screen.print()
    views = [view | {"columns": ", ".join(f"{column['name']} {column['type']}" for column in view["columns"])} for view in facts["views"]]
    heads = [head for head in ("name", "rows", "columns") if any(head in view for view in views)]
    rows = [tuple(view[head] for head in heads) for view in views]
    screen.print(grid(("view", *heads[1:]), rows, numeric=[head == "rows" for head in heads]))


FACTS = {
    "flow": "flow",
    "message": "now",
    "epoch": "epoch",
    "opened": "opened",
    "safe": "safe up to epoch, after loss of",
    "estimate": "recovery from the remote",
    "startedBy": "started by",
    "tiers": "this run brought",
    "sinks": "sinks have up to epoch",
    "troubles": "errors behind the stream",
    "shards": "shards",
    "rows": "rows",
    "rejected": "rejected",
    "skipped": "set aside",
    "layers": "layers",
    "bytes": "bytes",
    "spaceAmplification": "space amplification",
}


def _fact(facts: dict[str, Any], key: str) -> tuple[str, str]:
    return FACTS[key], _in_words(key, facts[key])


def _in_words(key: str, value: Any) -> str:
    match key:
        case "bytes":
            return size(value)
        case "estimate":
            return _estimated(value) if value else ""
        case "startedBy":
            return f"process {value['process']} on {value['host']} at {value['at']}" if value else "nobody"
        case "tiers":
            return ", ".join(
                f"{tier['survives']} {tier['objects']:,} files, {size(tier['bytes'])} ({size(tier['behind'])} to go)" for tier in value
            )
        case "skipped":
            return "; ".join(f"{source}: {listed(names)}" for source, names in value.items())
        case "troubles":
            return "; ".join(f"{one['duty']}: {one['count']:,}, the last {_iso(one['at'])}: {one['message']}" for one in value) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{name} {count:,}" for name, count in value.items()) or "none"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _estimated(value: dict[str, Any]) -> str:
    effort, within = value["effort"], value["within"]
    aim = f" of {within:g} s" if within and value["kept"] else f", not within {within:g} s" if within else ""
    objects = effort["records"] + effort["layers"]
    each, speed, epoch = (value["pace"][name] for name in ("object_seconds", "bytes_per_second", "epoch_seconds"))
    measured = f"{1e3 * each:.0f} ms an object, {size(int(speed))}/s, {epoch:.2g} s an epoch"
    return f"about {value['seconds']:g} s{aim}: {objects:,} objects, {size(effort['bytes'])}, {effort['epochs']:,} epochs; at {measured}"


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
