"""Where the bytes of a home are, and what keeps them. Pure: an image and the sizes of files in, figures out.

What keeps something is a `Keeper`: beside the ladder, whose epochs the image names, these are pins, sinks that have yet to get an epoch,
tiers that a recovery would have to compute epochs for anew, and readers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from nosync.journal.image import Image
from nosync.journal.names import INPUT, LAYERS
from nosync.model.identifiers import NO_EPOCH, Epoch, RecordNumber, TraceName

PURPOSES = ("newest state", "history", "layers to be deleted", "input log", "journal", "other")


@dataclass(frozen=True, slots=True)
class Usage:
    """Files and bytes."""

    files: int = 0
    bytes: int = 0

    def and_one(self, size: int) -> "Usage":
        return Usage(self.files + 1, self.bytes + size)


@dataclass(frozen=True, slots=True)
class Keeper:
    """Keeps the epochs from `first` to `last`: with them, files that might go otherwise. A reader keeps files only, whose epochs it does
    not say, `until` a time.
    """

    kind: Literal["pin", "sink", "recovery", "reader"]
    reason: str
    first: Epoch = NO_EPOCH
    last: Epoch = NO_EPOCH
    usage: Usage = Usage()
    until: float = 0.0


def keepers(
    image: Image, sizes: Mapping[str, int], safe: Mapping[str, Epoch], leases: Sequence[tuple[RecordNumber, float]]
) -> list[Keeper]:
    """`safe`: by kind of failure, the newest epoch that survives it; `leases`: those of readers."""
    newest = image.epoch
    found = [Keeper("pin", f'pin "{name}"', epoch, epoch) for name, epoch in sorted(image.pins.items())]
    for name, sink in sorted((image.declared.sinks if image.declared else {}).items()):
        released = image.released.get(name, NO_EPOCH)
        used = _layers_behind(image, TraceName(str(sink.get("trace", ""))), released)
        if used.files:
            found.append(Keeper("sink", f'sink "{name}" has yet to get them', Epoch(released + 1), newest, used))
    for failure, epoch in safe.items():
        if epoch < newest:
            reason = f"a recovery after loss of the {failure} would compute them anew from their input"
            found.append(Keeper("recovery", reason, Epoch(epoch + 1), newest, _input_behind(image, sizes, epoch)))
    return [*found, *(Keeper("reader", _read(record), until=until) for record, until in leases)]


def _read(record: RecordNumber) -> str:
    return f"a reader: files that records up to {record:,} name" if record else "a reader that has just begun: all files"


def _layers_behind(image: Image, trace: TraceName, epoch: Epoch) -> Usage:
    layers = [layer for found in image.traces.get(trace, {}).values() for layer in found if layer.upper > epoch + 1]
    return Usage(len(layers), sum(layer.bytes for layer in layers))


def _input_behind(image: Image, sizes: Mapping[str, int], epoch: Epoch) -> Usage:
    """Of the input that the home keeps itself: other input is its source's."""
    names = [name for number, opened in image.opened.items() if number > epoch for name in opened.files if name in sizes]
    return Usage(len(names), sum(sizes[name] for name in names))


def by_purpose(image: Image, sizes: Mapping[str, int]) -> dict[str, Usage]:
    """By what the files are for. Sizes are those on the store: on a remote, compressed."""
    newest, named = {layer.path for layer in image.newest_layers()}, {layer.path for layer in image.layers()}
    found = dict.fromkeys(PURPOSES, Usage())
    for name, size in sizes.items():
        purpose = _purpose(name, name in newest, name in named)
        found[purpose] = found[purpose].and_one(size)
    return found


def _purpose(name: str, newest: bool, named: bool) -> str:
    folder = name.partition("/")[0]
    if folder == LAYERS:
        return "newest state" if newest else "history" if named else "layers to be deleted"
    return {INPUT: "input log", "journal": "journal"}.get(folder, "other")


def by_trace(image: Image) -> dict[str, tuple[Usage, Usage]]:
    """By trace, what its newest state takes, and what its history takes besides."""
    newest = {layer.path for layer in image.newest_layers()}
    found: dict[str, tuple[Usage, Usage]] = {}
    for layer in image.layers():
        state, history = found.get(layer.trace, (Usage(), Usage()))
        counted = (state.and_one(layer.bytes), history) if layer.path in newest else (state, history.and_one(layer.bytes))
        found[layer.trace] = counted
    return found
