"""Before anybody is fenced: a start that must not go on is refused."""

from pathlib import Path
from uuid import uuid4

import pytest

from nosync.journal.journal import Journal
from nosync.model.errors import Invalid
from nosync.model.run import Runner
from nosync.recovery import preflight
from nosync.recovery.preflight import history_of
from nosync.store.disk import LocalDisk
from nosync.store.objects import Objects, open_remote


@pytest.fixture
def remote() -> Objects:
    return open_remote(f"memory://{uuid4().hex}")


def test_a_remote_is_tried_when_a_home_first_meets_it(tmp_path: Path, remote: Objects, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    monkeypatch.setattr(preflight, "check_creation", lambda remote: tried.append(remote.address))
    disk, other = LocalDisk(tmp_path), open_remote(f"memory://{uuid4().hex}")
    assert history_of(tmp_path, disk, None).number == 0
    assert history_of(tmp_path, disk, remote).number == 0
    Journal(disk, remote, Runner(1, "host", "boot", 0.0, "00000001"))
    assert history_of(tmp_path, disk, remote).number == 1
    history_of(tmp_path, disk, other)
    assert tried == [remote.address, other.address]


def test_what_is_no_home_and_what_forgets_its_remote_is_refused(tmp_path: Path, remote: Objects) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other/.env").write_text("mine")
    with pytest.raises(Invalid, match="is not the home of a flow"):
        history_of(tmp_path / "other", LocalDisk(tmp_path / "other"), remote)
    disk = LocalDisk(tmp_path / "home")
    Journal(disk, remote, Runner(1, "host", "boot", 0.0, "00000001"))
    with pytest.raises(Invalid, match="remote= is left out"):
        history_of(tmp_path / "home", disk, None)
    assert history_of(tmp_path / "home", disk, None, detached=True).number == 1
