"""The knobs of compaction as options, the same for each command that has them."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from nosync.model.compaction import KNOBS

HELP = {
    "segment size": 'Fold what is new once it has so many bytes, as "64 MiB".',
    "segment age": 'Fold what is new once it is so old, as "1 minute".',
    "dirty ratio": "Rewrite what is dirty to this part, from 0 to 1.",
}


def knobs(command: Callable[..., None]) -> Callable[..., None]:
    """Gives the command `compaction`: what was said, by knob."""

    @wraps(command)
    def call(**given: Any) -> None:
        said = {name: given.pop(_argument(name)) for name in KNOBS}
        command(**given, compaction={name: value for name, value in said.items() if value is not None})

    for name in reversed(KNOBS):
        metavar = {"segment size": "SIZE", "segment age": "DURATION", "dirty ratio": "PART"}[name]
        call = click.option(f"--{name.replace(' ', '-')}", metavar=metavar, help=HELP[name])(call)
    return call


def _argument(knob: str) -> str:
    return knob.replace(" ", "_")
