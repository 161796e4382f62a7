"""A run that has nothing to do learns that another took over."""

from pathlib import Path
from uuid import uuid4

import pytest

from nosync.duties.upkeep import LOOK_SECONDS, Upkeep
from nosync.journal.journal import Journal
from nosync.model.errors import Fenced
from nosync.model.run import Runner
from nosync.store.disk import LocalDisk
from nosync.store.objects import open_remote


def test_an_idle_run_ends_when_another_host_took_over(tmp_path: Path) -> None:
    remote, now = open_remote(f"memory://{uuid4().hex}"), 0.0
    disk = LocalDisk(tmp_path / "first")
    journal = Journal(disk, remote, Runner(1, "first", "boot", 0.0, "00000001"))
    upkeep = Upkeep(journal, disk, remote, {}, None, {}, clock=lambda: now)  # type: ignore[arg-type]
    upkeep.tidy()
    Journal(LocalDisk(tmp_path / "second"), remote, Runner(2, "second", "boot", 0.0, "00000002"))
    upkeep.tidy()
    now = LOOK_SECONDS
    with pytest.raises(Fenced, match="process 2 on second took this flow over"):
        upkeep.tidy()
