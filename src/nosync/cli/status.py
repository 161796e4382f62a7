"""`nosync status HOME`: what a home holds, without Spark and without disturbing a run."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import pyarrow as pa

from nosync.cli.output import console, grid, listed, print_json, size
from nosync.history.home import Home
from nosync.history.home import open as open_home
from nosync.history.status import ENDED, STATUS
from nosync.model.footprint import Footprint
from nosync.model.text import iso_seconds


@click.command(short_help="How a flow stands, since when, and by whom.")
@click.argument("home", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.option("--rows", "count_rows", is_flag=True, help="Count the rows of each view too: reads all its layers.")
def status(home: Path, as_json: bool, count_rows: bool) -> None:
    """How the flow in HOME stands: running or stopped, since when and by whom; epochs, safe points, sinks, views and size.

    \b
    nosync status state/shop
    nosync status state/shop --rows
    nosync status state/shop --json | jq .epoch
    """
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
    return {"home": str(home), **opened.status.to_json(), "since": _since(home, opened), "views": views}


def _since(home: Path, opened: Home) -> str:
    """Since when it is as it is: a run that goes on since it was started, one that has ended since it last said something."""
    status = opened.status
    if status.started_by is None:
        return ""
    if status.phase not in ENDED:
        return str(status.started_by["at"])
    try:
        return iso_seconds((home / STATUS).stat().st_mtime)
    except OSError:
        return ""


def _columns(schema: pa.Schema) -> list[dict[str, str]]:
    return [{"name": field.name, "type": str(field.type)} for field in schema]


def _print(facts: dict[str, Any]) -> None:
    screen = console()
    lines = [(FACTS[key], fact, MEANINGS.get(key, "")) for key in FACTS if (fact := _in_words(key, facts[key]))]
    screen.print(grid(("home", facts["home"], ""), lines))
    screen.print()
    views = [view | {"columns": ", ".join(f"{column['name']} {column['type']}" for column in view["columns"])} for view in facts["views"]]
    heads = [head for head in ("name", "rows", "columns") if any(head in view for view in views)]
    rows = [tuple(view[head] for head in heads) for view in views]
    screen.print(grid(("view", *heads[1:]), rows, numeric=[head == "rows" for head in heads]))


FACTS = {
    "flow": "flow",
    "message": "now",
    "since": "since",
    "epoch": "epoch",
    "opened": "opened",
    "safe": "safe up to epoch, after loss of",
    "estimate": "recovery from the remote",
    "startedBy": "started by",
    "standbys": "standing by",
    "tiers": "this run brought",
    "sinks": "sinks have up to epoch",
    "nextDeliveries": "sinks get more",
    "troubles": "errors behind the stream",
    "shards": "shards",
    "rows": "rows",
    "rejected": "rejected",
    "skipped": "set aside",
    "keep": "keeps",
    "keptEpochs": "epochs that can be read",
    "givesUp": "gives up next",
    "footprint": "this run takes",
    "layers": "layers",
    "neededBytes": "newest state",
    "historyBytes": "history",
    "inputBytes": "input log",
    "spaceAmplification": "space amplification",
}


MEANINGS = {
    "epoch": "computed steps, each a slice of all input",
    "opened": "the newest epoch whose input is recorded: it will be computed from just that",
    "safe": "the newest epoch that survives a kill (process), a power cut (host), the loss of the disk (site)",
    "startedBy": "who runs it, or ran it last",
    "standbys": "who would take over, within two seconds of its last sign of life: nosync run --standby",
    "tiers": "copied behind the stream, and what is still to go",
    "sinks": "what each sink has of the output",
    "nextDeliveries": "those with a pace of their own: flow.sink(..., trigger=)",
    "troubles": "what had to be tried again; the stream went on meanwhile",
    "shards": "parts of the keys, each with state of its own",
    "rejected": "rows that did not fit: nosync show HOME SOURCE.rejected",
    "skipped": "input left out for good: nosync skip",
    "keep": "as of which epochs the views can be read: nosync keep HOME",
    "footprint": "memory (PSS) and files, measured every ten seconds",
    "inputBytes": "rows that their source cannot give again",
    "spaceAmplification": "bytes on disk for each byte of the newest state: the rest is history",
}


def _in_words(key: str, value: Any) -> str:
    match key:
        case "neededBytes" | "historyBytes" | "inputBytes":
            return size(value)
        case "givesUp":
            return f"{value[1]:,} epochs at {_written(value[0])}" if value else ""
        case "since":
            return f"{_written(value)} ({_ago(value)})" if value else ""
        case "estimate":
            return _estimated(value) if value else ""
        case "startedBy":
            return f"process {value['process']} on {value['host']} at {_written(value['at'])}" if value else "nobody"
        case "footprint":
            return str(Footprint.from_json(value)) if value else ""
        case "standbys":
            return ", ".join(f"process {one['process']} on {one['host']}" for one in value)
        case "tiers":
            return ", ".join(
                f"{tier['survives']} {tier['objects']:,} files, {size(tier['bytes'])} ({size(tier['behind'])} to go)" for tier in value
            )
        case "nextDeliveries":
            return ", ".join(f"{sink} at {_written(at)}" for sink, at in value.items())
        case "skipped":
            return "; ".join(f"{source}: {listed(names)}" for source, names in value.items())
        case "troubles":
            met = ((f"{one['duty']}: {one['count']:,}", _written(iso_seconds(one["at"])), one["message"]) for one in value)
            return "; ".join(f"{count}, the last {at}: {message}" for count, at, message in met) or "none"
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


def _written(iso: str) -> str:
    """A time as people write it."""
    return f"{datetime.fromisoformat(iso).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _ago(iso: str) -> str:
    """In the largest unit that fits."""
    seconds = max(0, (datetime.now(UTC) - datetime.fromisoformat(iso)).total_seconds())
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= length:
            count = int(seconds // length)
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "just now"
