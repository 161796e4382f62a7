"""`nosync import CHECKPOINT FLOW.py --home HOME`: begins a flow with the state of a Structured Streaming query."""

from pathlib import Path

import click

from nosync.cli.program import load_flow
from nosync.importing.begin import Import, carry_out, check_accepted, planned


@click.command("import", short_help="Begin a flow with the state of a streaming query.")
@click.argument("checkpoint", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("file", metavar="FLOW.py", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--home", type=click.Path(path_type=Path), help="Folder of the state, a new one.")
@click.option("--remote", metavar="URL", help="Also keep a copy there (s3://..., gs://..., az://..., file:///...).")
@click.option("--shards", type=int, metavar="N", help="Number of shards, whatever the partitions of the checkpoint.")
@click.option("--accept-losses", is_flag=True, help="Begin without what cannot be carried over.")
@click.option("--emitted", is_flag=True, help="Sinks write where the stream has written: they get only what comes after.")
@click.option("--dry-run", is_flag=True, help="Only say what can be carried over.")
def import_checkpoint(
    checkpoint: Path, file: Path, home: Path | None, remote: str | None, shards: int | None,
    accept_losses: bool, emitted: bool, dry_run: bool,
) -> None:  # fmt: skip
    """Begin the flow of FLOW.py where the query of CHECKPOINT has stopped: with its state, its offsets and its watermark.

    The query must have ended. CHECKPOINT is only read, and needed no more afterwards. What cannot be carried over is said before anything
    is written.

    \b
    nosync import state/spend shop.py --dry-run              what can be carried over
    nosync import state/spend shop.py --home state/shop      do it
    nosync run shop.py --home state/shop                     go on
    """
    if home is None and not dry_run:
        raise click.UsageError("Pass --home, a folder for the state of the flow, or --dry-run.")
    found = planned(load_flow(file).program(), checkpoint)
    _show(checkpoint, found)
    if home is None or dry_run:
        return
    check_accepted(found, accept_losses)
    whole = carry_out(found, home.expanduser(), remote, emitted, shards)
    if not whole:
        click.echo("the remote, or a sink, has yet to get it: the next run sees to that")
    click.echo(f"imported as epoch 1. Go on with: nosync run {file} --home {home}")


def _show(checkpoint: Path, found: Import) -> None:
    matched = found.matched
    click.echo(f"{checkpoint}: batch {found.checkpoint.batch} was committed last")
    for carried in matched.carried:
        click.echo(f'  carried      {carried.stored.said} -> "{carried.operator}"')
    for name in matched.slices:
        click.echo(f'  carried      where source "{name}" goes on')
    for remark in matched.remarks:
        click.echo(f"  differs      {remark}")
    for loss in matched.losses:
        click.echo(f"  not carried  {loss}")
