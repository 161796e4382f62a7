"""A disk: whole files or none, synced when asked, and no fsync believed that failed before."""

import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from nosync.model.errors import Unavailable
from nosync.store.disk import LocalDisk, whole_file


class Syncing:
    """An fsync that remembers what it synced, and fails where asked to."""

    def __init__(self, *failures: OSError | None) -> None:
        self.synced: list[Path] = []
        self.inodes: list[int] = []
        self.failures = list(failures)

    def __call__(self, descriptor: int) -> None:
        failure = self.failures.pop(0) if self.failures else None
        if failure:
            raise failure
        os.fsync(descriptor)
        self.synced.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")))
        self.inodes.append(os.fstat(descriptor).st_ino)


def everything_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Path]:
    """A folder on a file system of 64 KiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], capture_output=True).returncode:
        pytest.skip("this user may not mount")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_reading_makes_no_folder(disk: LocalDisk) -> None:
    assert disk.read("a") is None
    assert disk.sizes("") == {}
    assert not disk.exists("a")
    disk.delete("a")
    disk.sync_files(["a"])
    assert not disk.root.exists()


def test_writing_leaves_nothing_but_the_name(disk: LocalDisk) -> None:
    disk.create("a/1", b"x")
    disk.replace("a/1", b"y")
    assert everything_below(disk.root) == ["a/1"]


def test_what_a_crash_left_is_not_listed(disk: LocalDisk) -> None:
    disk.create(".folder/1", b"x")
    (disk.root / ".folder/.0123").write_bytes(b"half")
    assert disk.sizes("") == {".folder/1": 1}


def test_a_name_that_cannot_be_looked_up_is_not_reported_as_absent(disk: LocalDisk) -> None:
    disk.create("a", b"x")
    for call in (disk.exists, disk.read, disk.delete):
        with pytest.raises(Unavailable, match="File name too long"):
            call("x" * 300)


def test_a_full_disk_shows_nothing_half_written(full: Path) -> None:
    disk = LocalDisk(full)
    disk.create("record", b"before")
    for write in (disk.create, disk.replace):
        with pytest.raises(Unavailable, match="No space left") as raised:
            write("layer", bytes(100_000))
        assert "disk is full" in raised.value.hint
    with pytest.raises(Unavailable):
        disk.replace("record", bytes(100_000))
    assert everything_below(full) == ["record"]
    assert disk.read("record") == b"before"


def test_syncing_reaches_the_files_and_skips_what_is_gone(tmp_path: Path) -> None:
    syncing = Syncing()
    disk = LocalDisk(tmp_path, syncing)
    disk.create("a/1", b"x")
    disk.create("a/2", b"y")
    disk.sync_files(["a/1", "a/gone", "gone/1", "a/2"])
    assert sorted(syncing.synced) == [tmp_path / "a/1", tmp_path / "a/2"]


def test_a_file_whose_fsync_failed_is_written_anew(tmp_path: Path) -> None:
    syncing = Syncing(OSError(errno.EIO, "Input/output error"))
    disk = LocalDisk(tmp_path, syncing)
    disk.create("a/1", b"content" * 1000)
    doubtful = os.stat(disk.path("a/1")).st_ino
    with open(disk.path("a/1"), "rb"):  # its number cannot be given to the new file as long as somebody reads
        disk.sync_files(["a/1"])
    assert disk.read("a/1") == b"content" * 1000
    assert doubtful not in syncing.inodes
    assert os.stat(disk.path("a/1")).st_ino == syncing.inodes[0]
    assert syncing.synced[1] == tmp_path / "a"
    assert everything_below(tmp_path) == ["a/1"]


@pytest.mark.parametrize(
    ("code", "hint"),
    [(errno.ENOSPC, "disk is full"), (errno.EDQUOT, "disk is full"), (errno.EROFS, "read-only"), (errno.EIO, "Check the disk")],
)
def test_a_disk_that_keeps_failing_is_unavailable_and_loses_nothing(tmp_path: Path, code: int, hint: str) -> None:
    disk = LocalDisk(tmp_path, Syncing(OSError(errno.EIO, "Input/output error"), OSError(code, os.strerror(code))))
    disk.create("a/1", b"x")
    with pytest.raises(Unavailable, match=r"a/1\" is not synced") as raised:
        disk.sync_files(["a/1"])
    assert hint in raised.value.hint
    assert everything_below(tmp_path) == ["a/1"]
    assert disk.read("a/1") == b"x"


def test_each_folder_up_to_the_root_is_synced_once(tmp_path: Path) -> None:
    syncing = Syncing()
    disk = LocalDisk(tmp_path / "home", syncing)
    for name in ("a/b/1", "a/b/2", "a/c/3", "4"):
        disk.create(name, b"x")
    disk.sync_folders(["a/b/1", "a/b/2", "a/c/3", "4"])
    home = tmp_path / "home"
    assert sorted(path for path in syncing.synced if path.is_relative_to(home)) == [home, home / "a", home / "a/b", home / "a/c"]


def test_a_home_that_was_just_made_is_synced_into_the_folders_above_once(tmp_path: Path) -> None:
    syncing = Syncing()
    disk = LocalDisk(tmp_path / "state/shop", syncing)
    disk.create("1", b"x")
    disk.sync_folders(["1"])
    assert {tmp_path / "state", tmp_path} <= set(syncing.synced)
    syncing.synced.clear()
    disk.sync_folders(["1"])
    assert syncing.synced == [tmp_path / "state/shop"]


def test_a_folder_that_cannot_be_synced_is_named(tmp_path: Path) -> None:
    disk = LocalDisk(tmp_path, Syncing(OSError(errno.EIO, "Input/output error")))
    disk.create("1", b"x")
    with pytest.raises(Unavailable, match="folder"):
        disk.sync_folders(["1"])
    disk.sync_folders(["1"])


def test_the_way_to_a_new_folder_is_synced_even_beside_one_that_was(tmp_path: Path) -> None:
    syncing = Syncing()
    disk = LocalDisk(tmp_path, syncing)
    for name in ("layers/a/0-f/1", "layers/b/0-f/1"):
        disk.create(name, b"x")
        disk.sync_folders([name])
    assert syncing.synced.count(tmp_path / "layers") == 2
    syncing.synced.clear()
    disk.sync_folders(["layers/a/0-f/2"])
    assert syncing.synced == [tmp_path / "layers/a/0-f"]


def test_the_way_to_a_folder_that_was_asked_for_before_it_was_made_is_synced(tmp_path: Path) -> None:
    syncing = Syncing()
    disk = LocalDisk(tmp_path, syncing)
    disk.sync_folders(["input/s/1"])
    disk.create("input/s/2", b"x")
    disk.sync_folders(["input/s/2"])
    assert {tmp_path, tmp_path / "input", tmp_path / "input/s"} <= set(syncing.synced)


def test_only_what_a_crash_left_of_own_files_is_cleared(disk: LocalDisk) -> None:
    own = [
        "journal/records/.0123456789abcdef0123456789abcdef",
        "input/s/.0123456789abcdef0123456789abcdef.arrow",
        "layers/v/0-f/.1-2-1.0a-0b.arrow.77-140213",
        ".0123456789abcdef0123456789abcdef",
    ]
    others = [".env", ".gitignore", "layers/.keep", ".git/.0123456789abcdef0123456789abcdef", "notes/.hidden.arrow", ".1234"]
    for name in (*own, *others):
        disk.replace(name, b"x")
    disk.create("journal/records/1", b"x")
    assert disk.clear_beginnings(generation=2) == len(own)
    left = {str(path.relative_to(disk.root)) for path in disk.root.rglob("*") if path.is_file()}
    assert left == {*others, "journal/records/1"}


def test_a_clock_that_jumps_back_deletes_nothing_that_is_being_written(disk: LocalDisk) -> None:
    """The files of this run then look older than the run itself."""
    task = disk.path("layers/v/0-f/.1-2-5.0a-0b.arrow.77-140213")
    task.parent.mkdir(parents=True)
    task.write_bytes(b"x")
    os.utime(task, (0, 0))
    with whole_file(disk.path("journal/records/7")) as file:
        file.write(b"y")
        [beginning] = disk.path("journal/records").iterdir()
        os.utime(beginning, (0, 0))
        assert disk.clear_beginnings(generation=5) == 0
    assert disk.read("journal/records/7") == b"y" and task.exists()
    assert disk.clear_beginnings(generation=6) == 1
