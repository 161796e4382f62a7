"""A flow's graph in words and as a drawing."""

from xml.etree import ElementTree

from nosync.model.picture import Box, Figures, Picture
from nosync.observe.drawing import drawn
from nosync.observe.layout import laid_out
from nosync.observe.text import in_words

PICTURE = Picture(
    "shop",
    (
        Box("purchases", "source", "source", what="rows come and go"),
        Box("spend/aggregate", "operator", "accumulate", keeps="accumulators <by> key", inputs=("source purchases",), traces=("a",)),
        Box("spend", "view", "view", what="user, spent", inputs=("operator spend/aggregate",)),
        Box("whales", "view", "view", steps=("where spent > 1000",), inputs=("operator spend/aggregate",), traces=("whales/rows",)),
        Box("all", "view", "view", inputs=("source purchases", "view whales"), traces=("all/rows",)),
    ),
)
FIGURES = {"operator spend/aggregate": Figures(1234, 2, 2048, 12.4)}


def test_each_view_is_a_tree_and_what_was_reported_is_only_named() -> None:
    words = in_words(PICTURE, FIGURES)
    assert words.count("keeps  accumulators <by> key") == 1
    assert "now    1,234 rows in 2 layers, 2.0 KiB; 12 ms an epoch" in words
    assert "shared computed once for spend, whales" in words
    assert "+- accumulate spend/aggregate, see above" in words
    assert "after  where spent > 1000" in words


def test_a_picture_is_the_same_after_the_journal() -> None:
    assert Picture.from_json("shop", PICTURE.to_json()) == PICTURE


def test_the_drawing_is_well_formed_and_has_every_box_and_edge() -> None:
    drawing = ElementTree.fromstring(drawn(PICTURE, FIGURES))
    texts = ["".join(text.itertext()) for text in drawing.iter("{http://www.w3.org/2000/svg}text")]
    assert {"purchases", "spend/aggregate", "spend", "whales", "all"} <= set(texts)
    edges = [path for path in drawing.iter("{http://www.w3.org/2000/svg}path") if path.get("class") == "edge"]
    assert len(edges) == sum(len(box.inputs) for box in PICTURE.boxes)


def test_boxes_do_not_overlap_and_stand_behind_what_they_read() -> None:
    layout = laid_out(PICTURE, {box.id: (100.0, 40.0) for box in PICTURE.boxes})
    places = list(layout.boxes.values())
    for number, one in enumerate(places):
        for other in places[number + 1 :]:
            beside = one.x + one.width <= other.x or other.x + other.width <= one.x
            assert beside or one.y + one.height <= other.y or other.y + other.height <= one.y
    for box in PICTURE.boxes:
        assert all(layout.boxes[name].x < layout.boxes[box.id].x for name in box.inputs)
