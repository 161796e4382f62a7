"""`nosync sql HOME`: queries over the views of a home, one by one or as they are typed."""

import sys

import click

from nosync.cli.at import AT, epoch_meant
from nosync.cli.output import arrow_grid, console, print_json, text_of, visible
from nosync.history.home import Home
from nosync.history.home import open as open_home
from nosync.model.errors import Invalid


@click.command(short_help="Answer SQL over the views of a home.")
@click.argument("home", type=str)
@click.argument("statement", required=False)
@AT
@click.option("--json", "as_json", is_flag=True, help="One JSON array of rows for each statement.")
def sql(home: str, statement: str | None, at: str | None, as_json: bool) -> None:
    """Answer STATEMENT over the views in HOME, a folder or the URL of a remote; without one, those that are typed, until ".quit".

    Needs no Spark, but DuckDB (pip install 'nosync[sql]'). At the prompt, ".views" lists the views, and ".at WHEN" goes elsewhere in time.
    """
    opened = open_home(home)
    epoch_meant(opened, at)
    if statement is not None:
        _answer(opened, statement, at, as_json)
        return
    _prompt(home, opened, at, as_json)


def _prompt(home: str, opened: Home, at: str | None, as_json: bool) -> None:
    interactive = sys.stdin.isatty()
    while (line := _line(f"{opened.resolve(at) or opened.epoch}> " if interactive else "")) is not None:
        said = line.strip().rstrip(";")
        try:
            match said.split(maxsplit=1):
                case []:
                    continue
                case [".quit" | ".exit"]:
                    return
                case [".views"]:
                    for name in opened.views:
                        click.echo(f"{visible(name)}  {', '.join(f'{field.name} {field.type}' for field in opened.schema(name))}")
                case [".at", *when]:
                    opened, moved = open_home(home), when[0] if when else None
                    opened.resolve(moved)
                    at = moved
                case _:
                    _answer(opened, said, at, as_json)
        except Invalid as error:
            click.echo(text_of(error), err=True)


def _line(prompt: str) -> str | None:
    try:
        return input(prompt)
    except EOFError:
        return None


def _answer(opened: Home, statement: str, at: str | None, as_json: bool) -> None:
    found = opened.sql(statement, at)
    if as_json:
        print_json(found.to_pylist())
    else:
        console().print(arrow_grid(found))
