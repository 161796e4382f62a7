"""What this library makes for itself is for its owner alone, whatever the umask."""

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from nosync.journal.entries import Opened
from nosync.journal.journal import Journal
from nosync.model.hash_range import ALL_HASHES
from nosync.model.run import this_process
from nosync.state.layer import write_layer
from nosync.store.disk import LocalDisk
from nosync.store.objects import open_remote


@pytest.fixture
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def open_to_others(folder: Path) -> list[str]:
    """What below the folder, and the folder itself, somebody else may look into."""
    return [f"{path} {path.stat().st_mode:o}" for path in (folder, *folder.rglob("*")) if path.stat().st_mode & 0o077]


@pytest.mark.usefixtures("usual_umask")
def test_homes_layers_and_remotes_in_folders_are_for_their_owner_alone(tmp_path: Path) -> None:
    disk, remote = LocalDisk(tmp_path / "deep" / "home"), open_remote((tmp_path / "far" / "remote").as_uri())
    journal = Journal(disk, remote, this_process(0.0))
    journal.append(Opened(1, 0.0, {}))  # type: ignore[arg-type]
    journal.ship()
    one = pa.array([1], pa.uint64())
    batch = pa.RecordBatch.from_pydict({"_hash": one, "_row": one, "_count": one.cast("int64")})
    facts = {"trace": "v", "range": ALL_HASHES, "lower": 1, "upper": 2, "kind": "diffs"}
    info = write_layer(disk.root, "layers/v/0-f/x.arrow", [batch], flow="shop", run="1.ab", **facts)  # type: ignore[arg-type]
    remote.upload(info.path, disk)
    disk.delete(info.path)
    assert remote.download(info.path, disk)
    assert disk.exists(info.path)
    assert open_to_others(tmp_path / "deep") + open_to_others(tmp_path / "far") == []


@pytest.mark.usefixtures("usual_umask")
def test_a_folder_that_was_there_keeps_the_permissions_it_was_given(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(mode=0o750)
    LocalDisk(tmp_path / "home").replace("journal/records/1", b"x")
    assert (tmp_path / "home").stat().st_mode & 0o777 == 0o750
    assert (tmp_path / "home" / "journal").stat().st_mode & 0o777 == 0o700
