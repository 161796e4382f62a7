"""Where the bytes of a home are, and what keeps them. Pure: an image and the sizes of files in, figures out."""

from collections.abc import Mapping
from dataclasses import dataclass

from nosync.journal.image import Image
from nosync.journal.names import INPUT, LAYERS

PURPOSES = ("newest state", "history", "layers to be deleted", "input log", "journal", "other")


@dataclass(frozen=True, slots=True)
class Usage:
    """Files and bytes."""

    files: int = 0
    bytes: int = 0

    def and_one(self, size: int) -> "Usage":
        return Usage(self.files + 1, self.bytes + size)


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
