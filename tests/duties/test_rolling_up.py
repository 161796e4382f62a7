"""When records are rolled up: only once every tier has all that they name."""

from pathlib import Path
from typing import Any
from uuid import uuid4

from nosync.duties.upkeep import Upkeep
from nosync.journal.entries import Computed, Opened
from nosync.journal.journal import Journal
from nosync.journal.names import layer_path
from nosync.model.errors import Unavailable
from nosync.model.hash_range import ALL_HASHES
from nosync.model.layers import LayerInfo
from nosync.model.policies.log_structured import LogStructured
from nosync.model.run import Runner
from nosync.model.store import Disk
from nosync.store.disk import LocalDisk
from nosync.store.objects import open_remote

EVERY = 5


class Slow:
    """Brings layers to a remote, unless it is down."""

    down = True

    def upload(self, name: str, disk: Disk) -> int:
        if self.down:
            raise Unavailable("not now")
        return 4


def test_records_are_not_rolled_up_before_the_layers_they_name_are_on_every_tier(tmp_path: Path) -> None:
    """A run that finds them rolled up could not tell any more that a layer was lost before it was safe."""
    disk, remote, uploader = LocalDisk(tmp_path, fsync=lambda descriptor: None), open_remote(f"memory://{uuid4().hex}"), Slow()
    journal = Journal(disk, remote, Runner(1, "host", "boot", 0.0, "00000001"))
    few: dict[str, Any] = {"policy": LogStructured(patience_seconds=0.0), "roll_records": EVERY, "uploader": uploader}
    upkeep = Upkeep(journal, disk, remote, {}, None, {}, **few)  # type: ignore[arg-type]
    for epoch in range(1, 2 * EVERY):
        path = layer_path("v", ALL_HASHES, epoch, epoch + 1, journal.run)
        disk.replace(path, b"rows")
        layer = LayerInfo("v", ALL_HASHES, epoch, epoch + 1, "diffs", path, 1, 4, "")
        journal.append(Opened(epoch, 0.0, {}), Computed(epoch, (layer,), {}, {}))
        work(upkeep)
    assert not journal.base and journal.shipped == journal.number
    uploader.down = False
    work(upkeep)
    assert journal.base >= EVERY


def work(upkeep: Upkeep) -> None:
    """Every duty until none has anything to do; what fails is left for later."""
    did = True
    while did:
        did = False
        for duty in upkeep.duties().values():
            try:
                did = duty() or did
            except Unavailable:
                continue
