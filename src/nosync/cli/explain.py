"""`nosync explain FLOW.py` or `nosync explain HOME`: the graph of a flow, what each part keeps, why, and what it costs.

`nosync explain FLOW.py HOME`: what a start of the program on the home would do.
"""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import click

from nosync.cli.output import print_json
from nosync.cli.program import load_flow
from nosync.history.home import open as open_home
from nosync.model.errors import Invalid
from nosync.model.picture import Figures, Picture
from nosync.observe.drawing import drawn, write_drawing
from nosync.observe.figures import figures_of
from nosync.observe.text import in_words
from nosync.runtime.comparison import compare


@click.command(short_help="The graph of a flow: what each part keeps, and costs.")
@click.argument("what", metavar="FLOW.py|HOME", type=click.Path(exists=True, path_type=Path))
@click.argument("home", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--svg", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Also draw the graph into this file.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def explain(what: Path, home: Path | None, svg: Path | None, as_json: bool) -> None:
    """The graph of the variable `flow` in FLOW.py; or of the flow in HOME, with the figures of its state (without Spark).

    With both, what a start of FLOW.py on HOME would do: what keeps its state, what is new or has changed, and why. Nothing is started.

    \b
    nosync explain flow.py
    nosync explain state/shop --svg shop.svg
    nosync explain flow.py state/shop
    """
    if home is not None:
        _compare(what, home, as_json)
        return
    picture, figures = _of_home(what) if what.is_dir() else (load_flow(what).program().picture(), {})
    if svg is not None:
        write_drawing(svg, drawn(picture, figures))
    if as_json:
        counted = [asdict(figures[box.id]) if box.id in figures else None for box in picture.boxes]
        print_json({"flow": picture.flow, "boxes": [{**box, "figures": own} for box, own in zip(picture.to_json(), counted)]})
    else:
        click.echo(in_words(picture, figures))


def _compare(program: Path, home: Path, as_json: bool) -> None:
    if program.is_dir():
        raise Invalid(f'"{program}" is a folder', hint="Name the program first: nosync explain FLOW.py HOME.")
    found = open_home(home)  # before Spark is started
    compared = compare(load_flow(program).program(), found)
    if as_json:
        print_json(compared.to_json())
    else:
        click.echo(str(compared))


def _of_home(home: Path) -> tuple[Picture, Mapping[str, Figures]]:
    opened = open_home(home)
    return opened.picture, figures_of(opened.picture, opened.image)
