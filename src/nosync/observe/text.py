"""A flow's graph in words: one tree for each view and sink, in the manner of `DataFrame.explain`. What was printed above is only named."""

from collections.abc import Iterator, Mapping, Sequence

from nosync.model.picture import Box, Figures, Picture
from nosync.model.sizes import size

NO_FIGURES: Mapping[str, Figures] = {}


def in_words(picture: Picture, figures: Mapping[str, Figures] = NO_FIGURES) -> str:
    """The whole flow. With `figures`, also what each state takes now."""
    printed: set[str] = set()
    boxes = {box.id: box for box in picture.boxes}
    lines = [f'Flow "{picture.flow}"']
    read = {name for box in picture.boxes for name in box.inputs}
    alone = [box for box in picture.boxes if box.id not in read and box.sort in ("source", "operator")]
    for end in [*picture.ends(), *alone]:
        if end.id not in printed:
            lines += ["", *_tree(end, picture, boxes, figures, printed)]
    return "\n".join(map(visible, lines))


def _tree(box: Box, picture: Picture, boxes: Mapping[str, Box], figures: Mapping[str, Figures], printed: set[str]) -> Iterator[str]:
    if box.id in printed:
        yield f"{title(box)}, see above"
        return
    printed.add(box.id)
    yield title(box)
    below = [boxes[name] for name in box.inputs]
    gutter = ":  " if below else "   "
    for name, words in details(box, picture, figures.get(box.id)):
        yield f"{gutter}{name:<7}{words}"
    for number, child in enumerate(below):
        last = number == len(below) - 1
        first, *rest = _tree(child, picture, boxes, figures, printed)
        yield ("+- " if last else ":- ") + first
        yield from (("   " if last else ":  ") + line for line in rest)


def title(box: Box) -> str:
    """`accumulate spend/aggregate`, `view spend`."""
    return f"{box.kind} {box.name}"


def details(box: Box, picture: Picture, figures: Figures | None) -> Iterator[tuple[str, str]]:
    """What there is to say of a box, by name."""
    if box.what:
        yield ("rows" if box.sort == "source" else "gives"), box.what
    for step in box.steps:
        yield "after", step
    if box.keeps:
        yield "keeps", box.keeps
    if box.why:
        yield "why", box.why
    if box.kept:
        yield "kept", box.kept
    if box.costs:
        yield "costs", box.costs
    if box.promises:
        yield "is", box.promises
    readers = picture.readers(box)
    if box.sort == "operator" and len(readers) > 1:
        yield "shared", "computed once for " + ", ".join(reader.name for reader in readers)
    if figures is not None:
        yield "now", counted(figures)


def counted(figures: Figures) -> str:
    """The figures in one line."""
    text = f"{figures.rows:,} rows in {figures.layers:,} layers, {size(figures.bytes)}"
    return text if figures.millis is None else f"{text}; {figures.millis:,.0f} ms an epoch"


def ways_in_words(ways: Sequence[str]) -> str:
    """Which way the epochs of a run went: those of few rows in the driver itself, others as jobs of many tasks."""
    if not ways:
        return ""
    narrow = sum(way == "narrow" for way in ways)
    return f"of the last {len(ways):,} epochs {narrow:,} narrow, {len(ways) - narrow:,} wide; the newest {ways[-1]}"


def visible(text: str) -> str:
    """The text with line breaks and terminal codes spelled out: names may have any characters, and nobody's terminal obeys them."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
