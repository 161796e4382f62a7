"""One job of a recovery. A value."""

from dataclasses import dataclass

from nosync.model.engine import Targets
from nosync.model.identifiers import Epoch
from nosync.model.layers import LayerInfo


@dataclass(frozen=True, slots=True)
class Recompute:
    """One job over the input of epochs [first, last] that writes the layers of some ranges of some traces only."""

    first: Epoch
    last: Epoch
    targets: Targets

    def spans(self, layer: LayerInfo) -> bool:
        """Whether all epochs of a layer are among those of the job."""
        return self.first <= layer.lower and layer.upper <= self.last + 1

    def replaces(self, layer: LayerInfo) -> bool:
        """Whether what the job makes comes in the place of a layer."""
        return self.spans(layer) and any(held.overlaps(layer.reach) for held in self.targets.get(layer.trace, ()))
