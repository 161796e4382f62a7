"""A host that restarts, without warning, at any moment between any two duties: what was said to be safe is there, with the same rows."""

import os
import random
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from nosync.model import run
from nosync.runtime import starting
from nosync.runtime.starting import begin
from nosync.runtime.stepping import Stepping
from nosync.store.disk import LocalDisk
from nosync.store.objects import open_remote
from tests.crash.orders import feed, judge, orders_flow, taken
from tests.crash.power import Power
from tests.longer import more

RESTARTS = 3


def live(life: Stepping, chance: random.Random, folder: Path) -> int:
    """Some epochs, and after each some of the duties behind them. Gives the epoch that was said to be safe."""
    for _ in range(2):
        feed(folder, [len(list(folder.iterdir()))])
        assert life.step() is not None
        duties = life.upkeep.duties()
        for name in chance.choices(sorted(duties), k=chance.randrange(8)):
            duties[name]()
    return life.upkeep.safe()["host"]


@pytest.mark.parametrize("seed", [1, *more([2])])
@pytest.mark.parametrize("kept", [False, True])
def test_what_was_safe_is_there_after_the_host_restarts(
    quick: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, kept: bool
) -> None:
    home, folder, boot, chance, power = tmp_path / "home", tmp_path / "in", tmp_path / "boot", random.Random(seed), Power()
    remote = open_remote(f"file://{tmp_path / 'remote'}") if kept else None
    monkeypatch.setattr(starting, "LocalDisk", partial(LocalDisk, fsync=power.fsync))
    monkeypatch.setattr(os, "fsync", power.fsync)
    monkeypatch.setattr(run, "BOOT", boot)
    feed(folder, [0])
    safe, torn, before = 0, 0, dict[int, list[str]]()
    for restart in range(RESTARTS + 1):
        boot.write_text(str(restart))
        life = begin(orders_flow(quick, folder)[0].program(), home, 2, remote).recover()
        try:
            assert life.image.epoch >= safe, f"seed {seed}, restart {restart}"
            assert [taken(home)[epoch] for epoch in range(1, safe + 1)] == [before[epoch] for epoch in range(1, safe + 1)]
            safe = live(life, chance, folder)
        finally:
            life.close()  # ends the merging process; nothing is drained
        judge(quick, home, folder)
        before = taken(home)
        torn += power.lose(home, chance)
        home = home.rename(tmp_path / f"home {restart}")  # Spark's workers live on here: they shall not know these files
    assert torn
