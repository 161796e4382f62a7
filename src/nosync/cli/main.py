"""The `nosync` command: its subcommands, and how errors reach the user.

An error of ours is shown as its text, without a Python traceback, and ends with exit code 1; a wrong argument ends with 2.
"""

from typing import Any

import click

from nosync.cli.explain import explain
from nosync.cli.fsck import fsck
from nosync.cli.output import text_of
from nosync.cli.rescale import rescale
from nosync.cli.run import run
from nosync.cli.show import show
from nosync.cli.skip import skip
from nosync.cli.status import status
from nosync.model.errors import NosyncError


class Commands(click.Group):
    """Turns errors of this library into their text."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except NosyncError as error:
            raise click.ClickException(text_of(error)) from error


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="nosync")
def main() -> None:
    """Durable, time-travelling state for PySpark streams."""


for command in (run, status, show, explain, fsck, skip, rescale):
    main.add_command(command)
