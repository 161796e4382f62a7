"""`nosync keep`, `pin` and `du` on a home at rest, without Spark."""

import json
import re
import shutil
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from nosync.cli.main import main
from nosync.duties.upkeep import Upkeep
from nosync.history.home import open as open_home
from nosync.journal.entries import Computed, Declared, Opened
from nosync.journal.journal import Journal
from nosync.journal.pins import pin, unpin
from nosync.model.errors import Invalid, NotInHistory
from nosync.model.run import Runner
from nosync.model.status import Live
from nosync.store.disk import LocalDisk
from tests.security.homes import whole_home


def journal_of(home: Path, number: int = 1) -> Journal:
    return Journal(LocalDisk(home, fsync=lambda descriptor: None), None, Runner(number, "host", "boot", 0.0, f"{number:08x}"))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Twenty epochs, one a second, and a run that has stopped."""
    journal = journal_of(tmp_path)
    journal.append(Declared("shop", 1, {}, {}, {}))
    for epoch in range(1, 21):
        journal.append(Opened(epoch, float(epoch), {}), Computed(epoch, (), {}, {}))
    at_rest(tmp_path)
    return tmp_path


def nosync(*arguments: str) -> str:
    result = CliRunner().invoke(main, list(arguments))
    assert result.exit_code == 0, result.output
    at_rest(Path(arguments[1]))
    return result.output


def at_rest(home: Path) -> None:
    """As if the process that wrote last had ended: here it is the test's."""
    started = open_home(home).image.started
    assert started is not None
    LocalDisk(home).replace("status", Live(started.run, "stopped", "Stopped").to_bytes())


def tended(home: Path) -> Journal:
    """The next run, once it has thinned."""
    journal = journal_of(home, 9)
    upkeep = Upkeep(journal, journal.disk, None, {}, None, {}, now=lambda: 20.0)  # type: ignore[arg-type]
    while any(duty() for duty in upkeep.duties().values()):
        pass
    return journal


def test_what_is_kept_is_said_to_a_home_at_rest_and_its_pins_outlive_it(home: Path) -> None:
    assert "keeps all" in nosync("keep", str(home))
    assert 'pin "before" holds epoch 4' in nosync("pin", str(home), "before", "--at", "4")
    assert "keeps 5 epochs" in nosync("keep", str(home), "5")
    journal = tended(home)
    assert (journal.image.kept.since, journal.image.kept.among) == (16, (4,))
    assert open_home(home).resolve("before") == 4
    unpin(journal, "before")
    assert (after := tended(home)).image.kept.among == () and after.image.pins == {}


def test_only_what_is_kept_can_be_pinned_and_a_pin_has_one_epoch(home: Path) -> None:
    journal = journal_of(home, 2)
    pin(journal, "before", 4)
    pin(journal, "before", 4)
    with pytest.raises(Invalid, match='pin "before" holds epoch 4'):
        pin(journal, "before", 5)
    with pytest.raises(NotInHistory, match="epoch 21 is not there yet: the newest is 20"):
        pin(journal, "later", 21)
    for name in ("4", "safe", "2026-05-01", "1 hour ago", "two years ago"):
        with pytest.raises(Invalid, match=f'"{name}" is no name for a pin'):
            pin(journal, name, 4)
    with pytest.raises(Invalid, match='there is no pin "other"'):
        unpin(journal, "other")


def test_bytes_are_told_by_what_they_are_for(home: Path) -> None:
    facts = json.loads(nosync("du", str(home), "--json"))
    assert facts["purposes"]["journal"]["files"] >= 21 and facts["purposes"]["newest state"] == {"files": 0, "bytes": 0}
    assert sum(one["bytes"] for one in facts["purposes"].values()) == sum(LocalDisk(home).sizes("").values())
    assert "journal" in nosync("du", str(home))


def test_what_keeps_bytes_is_told_by_name(tmp_path: Path) -> None:
    shutil.copytree(whole_home(), tmp_path / "home")
    home = LocalDisk(tmp_path / "home")
    for name, record, until in (("a" * 32, 7, time.time() + 99), ("b" * 32, 0, time.time() + 99), ("c" * 32, 3, 1.0)):
        home.replace(f"readers/{name}", json.dumps({"record": record, "until": until}).encode())
    at_rest(tmp_path / "home")
    nosync("pin", str(tmp_path / "home"), "before", "--at", "2")
    home.delete("synced")
    said = [line for line in nosync("du", str(tmp_path / "home")).splitlines() if line.startswith("kept: ")]
    assert [re.sub(r"[\d.]+ KiB|until .*", "#", line) for line in said] == [
        "kept: all: every epoch from 1 on, 0 before",
        'kept: epoch 2: pin "before"',
        'kept: epochs 2 to 5: sink "out" has yet to get them (5 files, #)',
        "kept: epochs 4 to 5: a recovery after loss of the host would compute them anew from their input (2 files, 8 B)",
        "kept: a reader that has just begun: all files, #",
        "kept: a reader: files that records up to 7 name, #",
    ]
