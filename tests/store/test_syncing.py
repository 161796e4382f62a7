"""What a disk does to let files and names survive a restart: all of it, before it says so, and nothing besides."""

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from nosync.model.errors import Unavailable
from nosync.store.disk import LocalDisk, whole_file
from nosync.store.folder import FolderBucket


class Noting:
    """An fsync that notes what was synced, with the bytes that were there by then; `fails` says where it fails."""

    def __init__(self, fails: Callable[[Path], OSError | None] = lambda path: None) -> None:
        self.synced: dict[Path, int] = {}
        self.fails = fails

    def __call__(self, descriptor: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        error = self.fails(path)
        if error is not None:
            raise error
        self.synced[path] = os.fstat(descriptor).st_size


def test_content_is_in_the_file_before_the_file_is_synced(tmp_path: Path) -> None:
    noting = Noting()
    with whole_file(tmp_path / "a", sync=noting) as file:
        file.write(b"content")
    assert list(noting.synced.values()) == [len(b"content")]


def test_an_object_of_a_folder_is_whole_when_it_is_synced(tmp_path: Path) -> None:
    noting = Noting()
    FolderBucket(tmp_path, noting).put("a/b", iter([b"con", b"tent"]), large=False)
    assert len(b"content") in noting.synced.values()


def test_a_folder_whose_names_were_synced_is_not_synced_for_everyone_who_looks(tmp_path: Path) -> None:
    FolderBucket(tmp_path).put("a/b", iter([b"content"]), large=False)
    noting = Noting()
    bucket = FolderBucket(tmp_path, noting)
    assert bucket.size("a/b") == len(b"content")
    assert tmp_path / "a" in noting.synced
    noting.synced.clear()
    assert bucket.size("a/b") == len(b"content")
    assert not noting.synced


def test_all_files_are_tried_before_it_is_said_that_one_failed(tmp_path: Path) -> None:
    """Whoever tries again would meet a thread that is still at work."""
    noting = Noting()

    def fails(path: Path) -> OSError | None:
        if path.name == "slow":
            time.sleep(0.05)
            return None
        return OSError(errno.EIO, "Input/output error")

    noting.fails = fails
    disk = LocalDisk(tmp_path, noting)
    disk.create("broken", b"x")
    disk.create("slow", b"x")
    with pytest.raises(Unavailable):
        disk.sync_files(["broken", "slow"])
    assert tmp_path / "slow" in noting.synced


def test_a_new_folder_is_synced_with_those_above_it_up_to_the_home(tmp_path: Path) -> None:
    noting = Noting()
    disk = LocalDisk(tmp_path, noting)
    disk.create("a/1", b"x")
    disk.sync_folders(["a/1"])
    assert set(tmp_path.parents) <= set(noting.synced)
    noting.synced.clear()
    disk.create("b/c/1", b"x")
    disk.sync_folders(["b/c/1"])
    assert sorted(noting.synced) == [tmp_path, tmp_path / "b", tmp_path / "b/c"]
    noting.synced.clear()
    disk.sync_folders(["b/c/1"])
    assert sorted(noting.synced) == [tmp_path / "b/c"]


def test_without_names_nothing_is_synced(tmp_path: Path) -> None:
    noting = Noting()
    LocalDisk(tmp_path, noting).sync_folders([])
    assert not noting.synced


def test_a_folder_that_goes_meanwhile_has_nothing_to_lose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noting = Noting()
    monkeypatch.setattr(Path, "is_dir", lambda path: True)
    LocalDisk(tmp_path, noting).sync_folders(["gone/1"])
    assert tmp_path in noting.synced


def test_a_folder_that_is_made_later_is_synced_with_those_above_it(tmp_path: Path) -> None:
    noting = Noting()
    disk = LocalDisk(tmp_path, noting)
    disk.sync_folders(["a/b/1"])
    disk.create("a/b/1", b"x")
    disk.sync_folders(["a/b/1"])
    assert {tmp_path, tmp_path / "a", tmp_path / "a/b"} <= set(noting.synced)


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS])
def test_folders_above_the_home_that_are_not_ours_to_open_are_left_alone(tmp_path: Path, code: int) -> None:
    home = tmp_path / "home"
    disk = LocalDisk(home, Noting(lambda path: None if path.is_relative_to(home) else OSError(code, os.strerror(code))))
    disk.create("a/1", b"x")
    disk.sync_folders(["a/1"])


def test_a_folder_above_the_home_that_fails_is_not_passed_over(tmp_path: Path) -> None:
    home = tmp_path / "home"
    noting = Noting(lambda path: None if path.is_relative_to(home) else OSError(errno.EIO, "Input/output error"))
    disk = LocalDisk(home, noting)
    disk.create("a/1", b"x")
    with pytest.raises(Unavailable):
        disk.sync_folders(["a/1"])
    noting.fails = lambda path: None
    disk.sync_folders(["a/1"])
    assert tmp_path in noting.synced


def test_syncing_leaves_no_file_open(tmp_path: Path) -> None:
    disk = LocalDisk(tmp_path)
    disk.create("a/1", b"x")
    before = len(os.listdir("/proc/self/fd"))
    disk.sync_files(["a/1"])
    disk.sync_folders(["a/1"])
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_file_that_goes_while_a_folder_is_listed_is_not_listed(disk: LocalDisk) -> None:
    disk.create("a/1", b"x")
    (disk.root / "a/gone").symlink_to(disk.root / "nowhere")
    assert disk.sizes("a") == {"a/1": 1}


def test_a_beginning_that_goes_by_itself_is_not_cleared(disk: LocalDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "walk", lambda root: [(str(root), [], ["." + "0" * 32])])
    assert disk.clear_beginnings(1) == 0
