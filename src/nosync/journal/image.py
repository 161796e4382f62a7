"""What a journal says: a fold over its entries, and nothing else."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from nosync.journal.entries import Computed, Declared, Entry, Merged, Opened, Slice, Started
from nosync.model.layers import LayerInfo
from nosync.state.cover import cover


@dataclass
class Image:
    """The flow as of the last entry. `epoch` is the newest computed one, 0 before the first."""

    declared: Declared | None = None
    started: Started | None = None
    opened: dict[int, Opened] = field(default_factory=dict)
    epoch: int = 0
    traces: dict[str, dict[int, list[LayerInfo]]] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    rejected: dict[str, int] = field(default_factory=dict)
    newest: dict[str, dict[int, tuple[LayerInfo, ...]]] = field(default_factory=dict)
    kept_bytes: dict[str, int] = field(default_factory=dict)

    def apply(self, entry: Entry) -> None:
        match entry:
            case Declared():
                self.declared = entry
            case Started():
                self.started = entry
            case Opened():
                self.opened[entry.epoch] = entry
            case Computed():
                self.epoch = entry.epoch
                _add(self.rows, entry.rows)
                _add(self.rejected, entry.rejected)
                for layer in entry.layers:
                    self._place(layer)
            case Merged():
                self._place(entry.layer)

    def _place(self, layer: LayerInfo) -> None:
        """Adds a layer to its trace, and to the newest cover in the place of what it collapses."""
        self.traces.setdefault(layer.operator, {}).setdefault(layer.shard, []).append(layer)
        covers = self.newest.setdefault(layer.operator, {})
        known = covers.get(layer.shard, ())
        newer = tuple(other for other in known if other.lower >= layer.upper)
        older = tuple(other for other in known if other.upper <= layer.lower)
        covers[layer.shard] = (*newer, layer, *older)
        self.kept_bytes[layer.operator] = self.kept_bytes.get(layer.operator, 0) + layer.bytes

    def covers(self, operator: str, at: int) -> dict[int, tuple[LayerInfo, ...]]:
        """Per shard, the layers that hold the operator's state as of an epoch, newest first."""
        if at == self.epoch:
            return dict(self.newest.get(operator, {}))
        return {shard: found for shard, layers in self.traces.get(operator, {}).items() if (found := cover(layers, at))}

    def slices(self, source: str) -> list[Slice]:
        """All that was ever taken from a source, in order."""
        return [opened.slices[source] for _, opened in sorted(self.opened.items()) if source in opened.slices]

    def unfinished(self) -> Opened | None:
        """An epoch that was opened but not computed: it comes next, as recorded."""
        return self.opened.get(self.epoch + 1)

    def layers(self) -> list[LayerInfo]:
        return [layer for shards in self.traces.values() for layers in shards.values() for layer in layers]

    def newest_layers(self) -> list[LayerInfo]:
        return [layer for covers in self.newest.values() for found in covers.values() for layer in found]


def _add(totals: dict[str, int], counts: dict[str, int]) -> None:
    for name, count in counts.items():
        totals[name] = totals.get(name, 0) + count


def fold(entries: Iterable[Entry]) -> Image:
    image = Image()
    for entry in entries:
        image.apply(entry)
    return image
