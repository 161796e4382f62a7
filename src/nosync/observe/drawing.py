"""A flow's graph as an SVG document: sources on the left, views and sinks on the right, each box with what it keeps and costs."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import wrap
from xml.sax.saxutils import escape

from nosync.model.errors import Invalid
from nosync.model.picture import Box, Figures, Picture
from nosync.observe.layout import Layout, Rectangle, laid_out
from nosync.observe.text import NO_FIGURES, counted, visible

LETTERS, LINE, PADDING = 44, 16.0, 12.0
LETTER = 6.8  # a usual letter is so wide, in the small font
COLOURS = {
    "source": ("#e8f1fb", "#3b78b5"),
    "operator": ("#fdf3e1", "#c98a1b"),
    "view": ("#e9f6ec", "#3d8b52"),
    "sink": ("#f5eaf6", "#8d4f95"),
}
STYLE = """text { font-family: 'Helvetica Neue', Arial, sans-serif; font-size: 12px; fill: #333 }
.title { font-weight: bold; font-size: 13px; fill: #111 } .kind { font-size: 11px; fill: #666 } .now { fill: #0b5394 }
.edge { fill: none; stroke: #888; stroke-width: 1.4 }"""


def write_drawing(path: str | Path, document: str) -> None:
    """Into a file; `Invalid` where there can be none."""
    try:
        Path(path).write_text(document)
    except OSError as error:
        raise Invalid(f'svg="{path}" cannot be written: {error.strerror}', hint="Pass a file in a folder that is there.") from None


def drawn(picture: Picture, figures: Mapping[str, Figures] = NO_FIGURES) -> str:
    """The document as text."""
    lines = {box.id: list(_lines(box, figures.get(box.id))) for box in picture.boxes}
    layout = laid_out(picture, {name: _size(found) for name, found in lines.items()})
    return "\n".join(_document(picture, layout, lines))


Lines = list[tuple[str, str]]  # the class of each line, and its text


def _lines(box: Box, figures: Figures | None) -> Iterator[tuple[str, str]]:
    yield "title", box.name
    yield "kind", box.kind
    for step in box.steps:
        yield from _wrapped("", step)
    yield from _wrapped("", box.what)
    yield from _wrapped("keeps ", box.keeps)
    yield from _wrapped("", f"({box.why})" if box.why else "")
    yield from _wrapped("kept ", box.kept)
    yield from _wrapped("costs ", box.costs)
    yield from _wrapped("", box.promises)
    if figures is not None:
        yield from (("now", line) for line in wrap(counted(figures), LETTERS))


def _wrapped(before: str, text: str) -> Iterator[tuple[str, str]]:
    if text:
        yield from (("", line) for line in wrap(before + text, LETTERS, max_lines=4, placeholder=" ..."))


def _size(lines: Lines) -> tuple[float, float]:
    widest = max(len(text) * (LETTER * 1.15 if sort == "title" else LETTER) for sort, text in lines)
    return widest + 2 * PADDING, len(lines) * LINE + 2 * PADDING - 4


def _document(picture: Picture, layout: Layout, lines: Mapping[str, Lines]) -> Iterator[str]:
    size = f'width="{layout.width:.0f}" height="{layout.height:.0f}" viewBox="0 0 {layout.width:.0f} {layout.height:.0f}"'
    yield f'<svg xmlns="http://www.w3.org/2000/svg" {size}>'
    yield f"<title>{escape(visible('Flow ' + picture.flow))}</title>"
    yield f"<style>{STYLE}</style>"
    yield '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    yield '<path d="M0,0 L8,4 L0,8 z" fill="#888"/></marker>'
    yield f'<rect width="{layout.width:.0f}" height="{layout.height:.0f}" fill="white"/>'
    for edge in layout.edges:
        yield f'<path class="edge" marker-end="url(#tip)" d="{_curve(edge)}"/>'
    for box in picture.boxes:
        yield from _drawn_box(box, layout.boxes[box.id], lines[box.id])
    yield "</svg>"


def _curve(edge: list[Rectangle]) -> str:
    """Smooth from place to place, straight through those that it only passes."""
    x, y = edge[0].x + edge[0].width, edge[0].middle
    path = f"M{x:.1f},{y:.1f}"
    for number, place in enumerate(edge[1:], start=1):
        half = (place.x - x) / 2
        path += f" C{x + half:.1f},{y:.1f} {x + half:.1f},{place.middle:.1f} {place.x:.1f},{place.middle:.1f}"
        x, y = place.x, place.middle
        if number < len(edge) - 1:
            x += place.width
            path += f" H{x:.1f}"
    return path


def _drawn_box(box: Box, place: Rectangle, lines: Lines) -> Iterator[str]:
    fill, stroke = COLOURS[box.sort]
    rectangle = f'x="{place.x:.1f}" y="{place.y:.1f}" width="{place.width:.1f}" height="{place.height:.1f}" rx="7"'
    yield f'<g><rect {rectangle} fill="{fill}" stroke="{stroke}"{"" if box.traces else _dashed(box)}/>'
    for number, (sort, text) in enumerate(lines, start=1):
        style = f' class="{sort}"' if sort else ""
        yield f'<text{style} x="{place.x + PADDING:.1f}" y="{place.y + PADDING - 6 + number * LINE:.1f}">{escape(visible(text))}</text>'
    yield "</g>"


def _dashed(box: Box) -> str:
    """What keeps no state of its own."""
    return "" if box.sort == "source" else ' stroke-dasharray="5,4"'
