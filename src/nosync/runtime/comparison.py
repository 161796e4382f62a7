"""What a start of a program on a home would do, before it is done: what keeps its state, what has none yet, what is dropped, and why.

Promise: nothing is fenced, nothing written. Two declarations and two pictures in, words out.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from nosync.history.home import Home
from nosync.history.record import ViewRecord
from nosync.journal.entries import Declared
from nosync.journal.image import Image
from nosync.model.errors import Invalid
from nosync.model.identifiers import Epoch, TraceName
from nosync.model.picture import Box, Picture
from nosync.runtime.change import Difference, base, check_same_flow, check_settings
from nosync.runtime.derived_views import DerivedView
from nosync.runtime.program import Program
from nosync.runtime.rebuilding import ProgramChange
from nosync.runtime.takeover import impossible


@dataclass(frozen=True, slots=True)
class ComparedPart:
    """One part of the program, or of the one before: `outcome` is "kept", "renamed", "extended", "changed", "new" or "gone"."""

    outcome: str
    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """`choices` say what comes of each `on_change=`; there are none where nothing has to be chosen. `refused`: why there would be no start
    at all.
    """

    flow: str
    epoch: Epoch
    parts: tuple[ComparedPart, ...]
    choices: Mapping[str, str]
    refused: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        lines = [f'Flow "{self.flow}" on a home at epoch {self.epoch}', ""]
        width = max((len(part.name) for part in self.parts), default=0)
        lines += [f"{part.outcome:<8} {part.name:<{width}}  {part.why}" for part in self.parts]
        lines += ["", *self._ends()]
        return "\n".join(lines)

    def _ends(self) -> list[str]:
        if self.refused:
            return [f"A start is refused: {words}" for words in self.refused]
        if not self.choices:
            return [f"A start goes on with epoch {self.epoch + 1}: nothing has to be rebuilt."]
        return [f'on_change="{choice}": {words}' for choice, words in self.choices.items()]


def compare(program: Program, home: Home) -> Comparison:
    """The program beside what is in a home."""
    image, before, old = home.image, home.picture, home.image.declared
    assert old is not None
    program = program.named_after(old)
    change = program.change(old, old.shards)
    rewritten = change.rewritten(image)
    parts = [*_derived(rewritten), *_states(change.difference, before, program.picture(), rewritten)]
    parts += _names(old, change.declaration, change.difference)
    return Comparison(program.name, image.epoch, tuple(parts), _choices(change, image), tuple(_refusals(program, old, change)))


def _derived(views: Mapping[TraceName, DerivedView]) -> Iterator[ComparedPart]:
    """Views that are computed from what they were."""
    for one in views.values():
        yield ComparedPart("extended" if one.whole else "changed", f"view {one.view.name}", one.said)


def _states(found: Difference, before: Picture, after: Picture, derived: Mapping[TraceName, DerivedView]) -> Iterator[ComparedPart]:
    """What keeps state, in the order of what is worth knowing first."""
    old, new = _by_state(before), _by_state(after)
    for name in (name for name in found.changed if name not in derived):
        was = next((box for other, box in old.items() if base(other) == base(name)), None)
        yield ComparedPart("changed", _label(name, new), _what_changed(was, new.get(name), found, after))
    for name in (name for name in found.new if name not in derived):
        yield ComparedPart("new", _label(name, new), f"the home has no state of it: {_said(new.get(name))}")
    for name in found.gone:
        yield ComparedPart("gone", _label(name, old), "nothing asks for it any more: its state is dropped, and its history with it")
    for name in found.kept:
        yield ComparedPart("kept", _label(name, new), "as it is, with its history")


def _by_state(picture: Picture) -> dict[str, Box]:
    """By the name under which state is kept."""
    named = {box.name: box for box in picture.boxes if box.sort == "operator"}
    return {trace: box for box in picture.boxes for trace in box.traces} | named


def _label(state: str, boxes: Mapping[str, Box]) -> str:
    box = boxes.get(state)
    return f"{box.sort} {box.name}" if box is not None and box.sort != "operator" else base(state)


def _said(box: Box | None) -> str:
    return (box.what or box.keeps) if box is not None else "nothing is known of it"


def _what_changed(was: Box | None, now: Box | None, found: Difference, after: Picture) -> str:
    """The first thing that differs, as far as the pictures show it."""
    if was is None or now is None:
        return "what it computes has changed"
    if was.what != now.what:
        return f"gives {now.what}; before {was.what}"
    if was.steps != now.steps:
        return f"after {_listed(now.steps)}; before {_listed(was.steps)}"
    if tuple(map(base, was.inputs)) != tuple(map(base, now.inputs)):
        return f"reads {_listed(now.inputs)}; before {_listed(was.inputs)}"
    fresh = {box.id for state, box in _by_state(after).items() if state in found.fresh}
    upstream = next((box.name for box in after.boxes if box.id in now.inputs and box.id in fresh), None)
    if upstream is not None:
        return f"what it reads has changed: {base(upstream)}"
    if was.keeps != now.keeps:
        return f"keeps {now.keeps}; before {was.keeps}"
    return f"static table {found.tables[0]} has other rows" if found.tables else "types or functions that it uses have changed"


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "nothing"


def _names(old: Declared, new: Declared, found: Difference) -> Iterator[ComparedPart]:
    """What is only called otherwise, or needs no state of its own."""
    if old.flow != new.flow:
        yield ComparedPart("renamed", f"flow {new.flow}", f'before "{old.flow}": state and history stay')
    records = {name: ViewRecord.from_json(text) for name, text in old.views.items()}
    left = {record.trace: name for name, record in records.items() if name not in new.views}
    for name, record in {name: ViewRecord.from_json(text) for name, text in new.views.items()}.items():
        if _belongs(record.trace, found.fresh):
            continue
        known = records.get(name)
        if known is not None and known.trace == record.trace:
            if columns := _columns(known, record):
                yield ComparedPart("renamed", f"view {name}", columns)
        elif record.trace in left:
            before = left.pop(record.trace)
            columns = _columns(records[before], record)
            yield ComparedPart("renamed", f"view {name}", f'before "{before}": state and history stay{"; " * bool(columns)}{columns}')
        else:
            yield ComparedPart("new", f"view {name}", f"is read from {base(record.trace)}, which is kept: it has its past at once")
    for trace, name in left.items():
        if not _belongs(trace, found.gone):
            yield ComparedPart("gone", f"view {name}", f"its rows are those of {base(trace)}, which stays")
    for source in sorted(old.folders.keys() & new.folders.keys()):
        if old.folders[source] != new.folders[source]:
            yield ComparedPart("changed", f"source {source}", f"reads {new.folders[source]}; before {old.folders[source]}")


def _columns(before: ViewRecord, after: ViewRecord) -> str:
    """What its columns are called now, and what before; empty where that is the same."""
    names, known = after.schema.names, before.schema.names
    return f"columns {', '.join(names)}; before {', '.join(known)}" if names != known else ""


def _belongs(trace: TraceName, states: Iterable[str]) -> bool:
    """Whether it is one of those, or of an operator among them."""
    return any(trace == name or trace.startswith(f"{name}/") for name in states)


def _choices(change: ProgramChange, image: Image) -> dict[str, str]:
    found = change.difference
    if not found or not image.epoch:
        return {}
    not_so = impossible(change, image)
    if change.loses_nothing(image) and "rebuild" not in not_so:
        return {}
    names = ", ".join(dict.fromkeys(base(name) for name in found.fresh)) or "nothing"
    of = f" of {', '.join(sorted(change.sources))}" if change.sources else ""
    meanwhile = "while the rest goes on" if change.only_adds else "before the next epoch"
    rebuilt = f"computes {names} from the input{of} of epochs 1 to {image.epoch} {meanwhile}"
    emptied = f"lets {names} begin empty with epoch {image.epoch + 1}"
    said = {"rebuild": rebuilt, "discard": emptied} if found.fresh else {"rebuild": "drops what is gone", "discard": "drops what is gone"}
    for choice, error in not_so.items():
        said[choice] = f"not possible: {error.message}" + (f". {error.hint}" if len(not_so) == 1 else "")
    return {"refuse": "(if nothing is said) refuses to start", **said}


def _refusals(program: Program, old: Declared, change: ProgramChange) -> Iterator[str]:
    new = change.declaration
    same = partial(check_same_flow, old, new, program.formerly)
    settings = partial(check_settings, old.settings, new.settings, program.on_other_settings)
    yield from (why for check in (same, settings) if (why := _why_not(check)))


def _why_not(check: Callable[[], None]) -> str:
    try:
        check()
    except Invalid as error:
        return f"{error.message}. {error.hint}"
    return ""
