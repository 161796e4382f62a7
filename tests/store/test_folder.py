"""A folder that stands for a bucket: what can be read survives a restart of its host, also after an fsync that failed."""

import os
import stat
from pathlib import Path

import pytest

from nosync.journal.journal import create
from nosync.model.errors import NosyncError, OutcomeUnknown, Unavailable
from nosync.store.folder import FolderBucket
from nosync.store.objects import Objects


class Syncs:
    """`os.fsync` that fails for files, or for folders, as long as it is asked to."""

    def __init__(self) -> None:
        self.failing = ""
        self.folders = 0

    def __call__(self, descriptor: int) -> None:
        kind = "folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file"
        if kind == self.failing:
            raise OSError(5, "Input/output error")
        self.folders += kind == "folder"


@pytest.fixture
def syncs() -> Syncs:
    return Syncs()


@pytest.fixture
def remote(tmp_path: Path, syncs: Syncs) -> Objects:
    return Objects("file:///remote", FolderBucket(tmp_path, syncs))


def test_a_file_that_could_not_be_synced_was_never_written(remote: Objects, syncs: Syncs) -> None:
    syncs.failing = "file"
    with pytest.raises(Unavailable):
        remote.create("journal/records/1", b"x")
    assert remote.read("journal/records/1") is None
    with pytest.raises(Unavailable):
        remote.replace("journal/records/1", b"x")
    assert remote.sizes("") == {}


def test_a_name_that_could_not_be_synced_is_not_read_back_as_written(remote: Objects, syncs: Syncs) -> None:
    syncs.failing = "folder"
    with pytest.raises(OutcomeUnknown):
        remote.create("journal/records/1", b"x")
    for look in (remote.read, remote.exists, remote.sizes):
        with pytest.raises(Unavailable):
            look("journal/records/1")
    with pytest.raises(NosyncError):
        create(remote, "journal/records/1", b"x")
    syncs.failing = ""
    create(remote, "journal/records/1", b"x")
    assert remote.read("journal/records/1") == b"x"


def test_what_an_earlier_process_left_is_synced_before_it_counts(tmp_path: Path, syncs: Syncs) -> None:
    (tmp_path / "layers/v/0-f").mkdir(parents=True)
    (tmp_path / "layers/v/0-f/1.arrow.packed").write_bytes(b"x")
    remote = Objects("file:///remote", FolderBucket(tmp_path, syncs))
    syncs.failing = "folder"
    with pytest.raises(Unavailable):
        remote.sizes("layers")
    syncs.failing = ""
    assert remote.sizes("layers") == {"layers/v/0-f/1.arrow": 1}
    assert syncs.folders


def test_a_taken_name_stays_and_beginnings_are_not_listed(remote: Objects, tmp_path: Path) -> None:
    remote.create("a", b"x")
    (tmp_path / ".0123456789abcdef0123456789abcdef").write_bytes(b"begun")
    with pytest.raises(NosyncError, match="exists"):
        remote.create("a", b"y")
    assert (remote.sizes(""), remote.read("a")) == ({"a": 1}, b"x")
