"""What this library makes for itself is for its owner alone, whatever the umask."""

import os
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import obstore
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import nosync as ns
from nosync.bridge.streams import Described
from nosync.journal.entries import Opened
from nosync.journal.journal import Journal
from nosync.journal.taken import Marks, Taken
from nosync.model.hash_range import ALL_HASHES
from nosync.model.run import this_process
from nosync.pipelines.storage import Storage
from nosync.sources.postgres_slot import Slot
from nosync.sources.streams import SparkStream
from nosync.sources.watched import WatchedFiles
from nosync.state.layer import write_layer
from nosync.store.addresses import client_of
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
def test_what_sources_and_pipelines_keep_is_for_its_owner_alone(quick: SparkSession, tmp_path: Path) -> None:
    """Fetched objects, files that are watched, what streams and slots remember, which home a pipeline uses."""
    home, address = tmp_path / "home", f"memory://{uuid4().hex}"
    obstore.put(client_of(address, os.environ), "far/a.json", b'{"x": 1}\n')
    objects = ns.files(address, format="json", schema="x int")
    schema = objects.declare("s", quick)
    objects.start(home / "input" / "objects", Taken(list, None, Marks()))
    assert objects.available() is not None and list((home / "input").rglob("a.json"))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text("{}")
    watched = WatchedFiles((tmp_path / "in",), "json", schema, {})
    watched.start(home / "input" / "watched", Taken(list, None, Marks()))
    assert watched.available() is not None
    stream = SparkStream(None, Described("socket", {}, (), schema, False))  # type: ignore[arg-type]
    stream.start(home / "input" / "stream", Taken(list, None, Marks()))
    stream._restore({"sources/0": "seen"})
    slot = Slot("postgresql://host/database", "shop", None, ())
    slot.begin(home / "input" / "slot")
    slot._write_mark()
    Storage(home / "nosync").save()
    assert len([path for path in home.rglob("*") if path.is_file()]) == 5
    assert open_to_others(home) == []


@pytest.mark.usefixtures("usual_umask")
def test_a_folder_that_was_there_keeps_the_permissions_it_was_given(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(mode=0o750)
    LocalDisk(tmp_path / "home").replace("journal/records/1", b"x")
    assert (tmp_path / "home").stat().st_mode & 0o777 == 0o750
    assert (tmp_path / "home" / "journal").stat().st_mode & 0o777 == 0o700
