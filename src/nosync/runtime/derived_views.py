"""Views that a changed program computes from the columns that they had: their rows are rewritten, epoch by epoch, and none is computed from
input.

Promise: the view can be read as of every epoch as of which it could be read before. Where its rows began empty, or the home has no state of
it, it is not among these views.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nosync.graph.nodes import Derived, ViewNode
from nosync.history.changes import ChangeStep, steps
from nosync.history.record import ViewRecord
from nosync.history.view_covers import Past, covers_at
from nosync.journal.image import Image
from nosync.model.errors import NotInHistory
from nosync.model.identifiers import NO_EPOCH, Epoch, TraceName, epochs
from nosync.model.layers import Covers, LayerInfo
from nosync.spark.rewriting import Rewriting, fits
from nosync.state.cover import pieces

FIRST = Epoch(1)


@dataclass(frozen=True, eq=False)
class DerivedView:
    """A view whose rows are those of `before`. `whole`: all columns that it had are still in it."""

    view: ViewNode
    before: ViewRecord
    derived: Derived
    whole: bool

    @property
    def said(self) -> str:
        """What becomes of it, for people."""
        names, known = ", ".join(self.view.schema.names), ", ".join(self.before.schema.names)
        return f"columns {names}; before {known}: computed from its own rows, as of all epochs"

    def begun(self, image: Image) -> Epoch:
        """Where its history begins: where that of the rows before does."""
        known = image.begun.get(self.before.trace)
        return known.epoch if known is not None else FIRST

    def rewriting(self, image: Image, past: Past) -> Rewriting:
        covers = _covers(image, self.before, self.view.name, self.begun(image), past)
        layers = pieces(image.traces.get(self.before.trace, {}))
        found = steps(layers, list(covers), NO_EPOCH, {}, covers.__getitem__)
        ends = [NO_EPOCH, *covers]
        first = {last: Epoch(before + 1) for before, last in zip(ends, covers, strict=False)}
        return Rewriting(self.view, self.before, self.derived, [_readable(step, past) for step in found], first)


def derived_views(fresh: Sequence[ViewNode], before: Mapping[str, Any], now: Container[str]) -> dict[TraceName, DerivedView]:
    """Of views without state, those that can be computed from the rows of a view that was there `before`, under that name or another, which
    has no use `now`.
    """
    known = {name: ViewRecord.from_json(text) for name, text in before.items()} if fresh else {}
    found = {}
    for view in fresh:
        derived = _derived(view, {name: one for name, one in known.items() if name == view.name or name not in now})
        if derived is not None:
            found[view.trace] = derived
    return found


def _derived(view: ViewNode, known: Mapping[str, ViewRecord]) -> DerivedView | None:
    names = sorted(known, key=lambda name: name != view.name)
    for before in (known[name] for name in names if view.rows and known[name].rows == view.rows):
        marks = {mark: place for place, mark in reversed([*enumerate(before.marks)])}
        found = view.derive(marks) if view.derive is not None else None
        if found is not None and fits(before, found):
            return DerivedView(view, before, found, {*before.marks} <= {*view.marks})
    return None


def _covers(image: Image, before: ViewRecord, name: str, begun: Epoch, past: Past) -> dict[Epoch, Covers]:
    """Of all epochs as of which the rows can be read, in order."""
    found: dict[Epoch, Covers] = {}
    for epoch in (epoch for epoch in epochs(begun, image.epoch) if epoch in image.kept or epoch == image.epoch):
        try:
            found[epoch] = covers_at(image, before, name, epoch, past) if epoch < image.epoch else image.covers(before.trace, epoch)
        except NotInHistory:
            continue
    return found


def _readable(step: ChangeStep, past: Past) -> ChangeStep:
    """Where layers of just the step's epochs are gone, the states before and after are compared."""
    own = step.own
    return step if own is None or all(past.has(layer) for layer, _ in own) else replace(step, own=None)


def layers_of(asked: Rewriting) -> list[LayerInfo]:
    """What is read, each once."""
    read = [part for step in asked.steps for part in (*(step.own or ()), *step.before, *(() if step.own is not None else step.after))]
    return list({layer.path: layer for layer, _ in read}.values())
