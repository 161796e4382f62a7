"""`nosync explain FLOW.py` or `nosync explain HOME`: the graph of a flow, what each part keeps, why, and what it costs."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import click

from nosync.cli.output import print_json
from nosync.cli.program import load_flow
from nosync.history.home import open as open_home
from nosync.model.picture import Figures, Picture
from nosync.observe.drawing import drawn
from nosync.observe.figures import figures_of
from nosync.observe.text import in_words


@click.command(short_help="The graph of a flow: what each part keeps, and costs.")
@click.argument("what", metavar="FLOW.py|HOME", type=click.Path(exists=True, path_type=Path))
@click.option("--svg", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Also draw the graph into this file.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def explain(what: Path, svg: Path | None, as_json: bool) -> None:
    """The graph of the variable `flow` in FLOW.py; or of the flow in HOME, with the figures of its state (without Spark)."""
    picture, figures = _of_home(what) if what.is_dir() else (load_flow(what).program().picture(), {})
    if svg is not None:
        svg.write_text(drawn(picture, figures))
    if as_json:
        counted = [asdict(figures[box.id]) if box.id in figures else None for box in picture.boxes]
        print_json({"flow": picture.flow, "boxes": [{**box, "figures": own} for box, own in zip(picture.to_json(), counted)]})
    else:
        click.echo(in_words(picture, figures))


def _of_home(home: Path) -> tuple[Picture, Mapping[str, Figures]]:
    opened = open_home(home)
    return opened.picture, figures_of(opened.picture, opened.image)
