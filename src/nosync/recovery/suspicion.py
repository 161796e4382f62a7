"""After damage was met: nothing in the home is trusted until the next start has read it.

    HOME/suspect   what was met, in words; there from then until a recovery has come to its end

Bytes that change under a layer are noticed by whoever reads all of it (a merge, a view, a sink, a recovery), and by an epoch that
searches a block which an earlier run left. One damaged layer puts all others in doubt.
"""

from nosync.journal.image import Image
from nosync.model.errors import Corrupt
from nosync.model.store import Disk

SUSPECT = "suspect"
START_AGAIN = "Start the flow on the same home again: everything is verified then, and what is damaged is fetched or computed anew."


def suspect(disk: Disk, error: Corrupt) -> None:
    """Leaves a note for the next start. Without it that start would meet the same damage and leave it then."""
    disk.replace(SUSPECT, error.message.encode())


def suspected(disk: Disk, image: Image) -> frozenset[str]:
    """Layers to verify: all, if there is a note."""
    return frozenset(layer.path for layer in image.layers()) if disk.exists(SUSPECT) else frozenset()


def cleared(disk: Disk) -> None:
    """All that is needed was verified, or had anew."""
    disk.delete(SUSPECT)
