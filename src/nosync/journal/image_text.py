"""An image as one JSON object, for roll-ups."""

from typing import Any

from nosync.journal.entries import Computed, Declared, Entry, Opened, Started, Thinned, from_json, to_json
from nosync.journal.image import Begun, Image
from nosync.journal.typed import checks_of
from nosync.model.hash_range import HashRange
from nosync.model.identifiers import TraceName
from nosync.model.layers import LayerInfo
from nosync.model.retention import Kept


def _kept(entry: Entry) -> Kept:
    if not isinstance(entry, Thinned):
        raise TypeError('"kept" of a roll-up is something else')
    return Kept(entry.since, entry.among)


_CHECKS = checks_of(Image)
_PLAIN = (
    "number", "history", "epoch", "rows", "rejected", "kept_layers", "kept_bytes", "reached", "released", "trimmed",
    "trim_done", "skipped", "keep", "pins",
)  # fmt: skip


def to_text(image: Image) -> dict[str, Any]:
    """The object."""
    text: dict[str, Any] = {name: getattr(image, name) for name in _PLAIN}
    text["swept"], text["seen"], text["times"] = list(image.swept), list(image.seen.items()), list(image.times.items())
    text["kept"] = to_json(Thinned(image.kept.since, image.kept.among))
    text["begun"] = {trace: list(begun) for trace, begun in image.begun.items()}
    text["releasing"] = {sink: list(intent) for sink, intent in image.releasing.items()}
    for name in ("declared", "started"):
        entry = getattr(image, name)
        text[name] = to_json(entry) if entry else None
    text["recent"] = [to_json(entry) for entry in image.opened.values()] + [to_json(entry) for entry in image.computed.values()]
    text["opened_in"], text["computed_in"] = list(image.opened_in.items()), list(image.computed_in.items())
    text["layers"] = [layer.to_json() for layer in image.layers()]
    text["newest"] = {
        trace: {str(held): [layer.path for layer in found] for held, found in covers.items()} for trace, covers in image.newest.items()
    }
    return text


def from_text(text: dict[str, Any]) -> Image:
    """The image that the text says; `ValueError`, `KeyError` or `TypeError` where it says none."""
    image = Image(**{name: text[name] for name in _PLAIN}, swept=tuple(text["swept"]))
    for name, kind in (("declared", Declared), ("started", Started)):
        entry = from_json(text[name]) if text[name] else None
        if not isinstance(entry, kind | None):
            raise TypeError(f'"{name}" of a roll-up is something else')
        setattr(image, name, entry)
    image.kept = _kept(from_json(text["kept"]))
    for entry in map(from_json, text["recent"]):
        if isinstance(entry, Opened):
            image.opened[entry.epoch] = entry
        if isinstance(entry, Computed):
            image.computed[entry.epoch] = entry
    image.seen, image.times = dict(text["seen"]), dict(text["times"])
    image.opened_in, image.computed_in = dict(text["opened_in"]), dict(text["computed_in"])
    image.begun = {trace: Begun(*begun) for trace, begun in text.get("begun", {}).items()}
    image.releasing = {sink: (epoch, together) for sink, (epoch, together) in text["releasing"].items()}
    for name in (*_PLAIN, "releasing", "swept", "seen", "times", "opened_in", "computed_in"):
        if not _CHECKS[name](getattr(image, name)):
            raise ValueError(f'"{name}" of a roll-up has another type than it should')
    known: dict[str, LayerInfo] = {}
    for layer in map(LayerInfo.from_json, text["layers"]):
        image.traces.setdefault(layer.trace, {}).setdefault(layer.range, []).append(layer)
        known[layer.path] = layer
    for trace, covers in text["newest"].items():
        image.newest[TraceName(trace)] = {HashRange.parse(held): tuple(known[path] for path in paths) for held, paths in covers.items()}
    return image

