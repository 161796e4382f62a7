"""The `nosync` command: its subcommands, and how errors reach the user.

An error of ours is shown as its text, without a Python traceback, and ends with exit code 1; a wrong argument ends with 2.
"""

import sys
from typing import Any

import click

from nosync.cli.compact import compact
from nosync.cli.completion import completion
from nosync.cli.du import du
from nosync.cli.explain import explain
from nosync.cli.fsck import fsck
from nosync.cli.import_ import import_checkpoint
from nosync.cli.keep import keep, pin
from nosync.cli.list import list_homes
from nosync.cli.output import as_options, text_of
from nosync.cli.pipelines import pipelines
from nosync.cli.rescale import rescale
from nosync.cli.run import run
from nosync.cli.show import show
from nosync.cli.skip import skip
from nosync.cli.sql import sql
from nosync.cli.status import status
from nosync.cli.warm import warm
from nosync.cli.watch import watch
from nosync.model.arguments import did_you_mean
from nosync.model.errors import NosyncError

EXIT_CODES = """\b
Exit codes:
  0    done
  1    an error, whose first line says what to change; fsck: the next start repairs what is missing
  2    a wrong argument; fsck: something is lost for good
  130  a second Ctrl-C"""


ELSEWHERE = {
    "history": "It is there in Python: nosync.open(home).history(); `nosync status HOME` says how the flow stands.",
    "why": "It is there in Python, of a run: run.why(view, column=value); `nosync sql HOME` asks the views.",
    "changes": "They are there in Python: nosync.open(home).changes(view); `nosync watch HOME VIEW` shows them as they come.",
}


class Commands(click.Group):
    """Turns errors of this library into their text."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except NosyncError as error:
            words = text_of(error)
            raise click.ClickException(as_options(words) if ctx.invoked_subcommand == "run" else words) from error
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            sys.exit(130)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            hint = ELSEWHERE.get(args[0]) or did_you_mean(args[0], self.commands, "nosync {}")
            raise click.UsageError(f"{error.message} {hint}".strip(), ctx) from None


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120}, epilog=EXIT_CODES)
@click.version_option(package_name="nosync")
def main() -> None:
    """Durable, time-travelling state for PySpark streams.

    \b
    nosync run shop.py --home state/shop      run the flow that a file defines
    nosync status state/shop                  how it stands
    nosync show state/shop spend              the rows of a view, also --at an earlier epoch
    nosync watch state/shop spend             the same, live
    nosync pipelines run                      update the tables of a project of Declarative Pipelines

    All but `run`, `import`, `pipelines` and `explain FLOW.py` start no Spark, and none disturbs a run.
    """


LOOKING = (status, show, watch, list_homes, explain, fsck, du, sql)
DOING = (run, import_checkpoint, skip, rescale, keep, pin, compact, pipelines, completion, warm)
for command in (*LOOKING, *DOING):
    main.add_command(command)
