"""`nosync run FLOW.py`: runs the flow that a file defines and reports each epoch."""

from pathlib import Path
from typing import Any

import click
from rich.console import Console

from nosync.cli.following import follow
from nosync.cli.output import print_json
from nosync.cli.program import load_flow
from nosync.cli.recovering import RecoveryDisplay
from nosync.runtime.change import CHOICES


def _shards(context: click.Context, option: click.Parameter, said: str | None) -> int | str | None:
    if said is None or said == "auto":
        return said
    if not said.isdecimal() or not int(said):
        raise click.BadParameter(f"{said} is neither a number of shards nor auto")
    return int(said)


@click.command()
@click.argument("file", metavar="FLOW.py", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--home", required=True, type=click.Path(file_okay=False, path_type=Path), help="Folder of the state; made if missing.")
@click.option("--shards", callback=_shards, metavar="N|auto", help="Number of shards from here on; auto: by cores and load.")
@click.option("--available-now", is_flag=True, help="Process what is there, then end.")
@click.option("--remote", metavar="URL", help="Also keep a copy there (s3://..., gs://..., az://..., file:///...).")
@click.option("--recover-within", metavar="DURATION", help='How soon a recovery from the remote shall be done, as "5s".')
@click.option(
    "--on-change", type=click.Choice(CHOICES), default="refuse", show_default=True, help="What becomes of state whose query has changed."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object per epoch.")
def run(
    file: Path,
    home: Path,
    shards: int | str | None,
    available_now: bool,
    remote: str | None,
    recover_within: str | None,
    on_change: str,
    as_json: bool,
) -> None:
    """Run the variable `flow` of FLOW.py. Ctrl-C stops after the current epoch; a second one at once."""
    options: dict[str, Any] = {"home": str(home), "remote": remote, "recover_within": recover_within, "on_change": on_change}
    if shards is not None:
        options["shards"] = shards
    if available_now:
        options["trigger"] = {"availableNow": True}
    started = load_flow(file).start(**options)
    display = RecoveryDisplay(started, Console(stderr=True, highlight=False), summary_to_stderr=as_json)
    try:
        follow(started, print_json if as_json else _print_epoch, display.look)
    finally:
        display.close()


def _print_epoch(progress: dict[str, Any]) -> None:
    """One epoch in one line."""
    line = f"epoch {progress['epoch']:>6}  {progress['numInputRows']:>10,} rows  {progress['durationMs']['triggerExecution']:>7,.0f} ms"
    rejected = progress["rejectedRows"]
    click.echo(f"{line}  {rejected:,} rejected" if rejected else line)
