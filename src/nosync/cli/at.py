"""`--at` of commands that look back: an epoch, a time, "safe" or the name of a pin, which only the home knows."""

import click

from nosync.cli.output import text_of
from nosync.history.home import Home
from nosync.model.errors import Invalid, NotInHistory
from nosync.model.identifiers import Epoch

AT = click.option("--at", metavar="WHEN", help='An epoch, a time ("2026-05-01 21:05", "1 hour ago"), "safe" or a pin; else newest.')


def epoch_meant(home: Home, at: str | None) -> Epoch:
    """The newest, if nothing was said. What is none of them is a wrong argument, with exit code 2."""
    try:
        found = home.resolve(at)
    except NotInHistory:
        raise
    except Invalid as error:
        raise click.BadParameter(text_of(error), param_hint="'--at'") from None
    return Epoch(home.epoch) if found is None else found
