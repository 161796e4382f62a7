"""Layers travel whole, compressed and in bounded memory; nobody sees how they are stored."""

import os
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from threading import Barrier

import obstore
import pytest
from obstore.store import MemoryStore

from nosync.journal.chain import read_chain
from nosync.journal.names import record_name
from nosync.journal.record import FIRST, encode
from nosync.model.errors import Corrupt, OutcomeUnknown, Unavailable
from nosync.store.bucket import PART, CloudBucket
from nosync.store.disk import LocalDisk
from nosync.store.objects import Objects, open_remote
from nosync.store.packing import BLOCK
from tests.memory import growth_during

LAYER = "layers/spend%2Faggregate/0-f/1-2-1.0a-0b.arrow"
CONTENTS = {
    "empty": b"",
    "small": b"some rows" * 100,
    "a block": bytes(BLOCK),
    "more than a block": bytes(BLOCK + 1),
    "more than two parts": os.urandom(2 * PART + 12_345),
}


@pytest.mark.parametrize("name", [LAYER, "journal/rollups/1-2"])
@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS.keys())
def test_a_file_comes_back_as_it_went(remote: Objects, disk: LocalDisk, tmp_path: Path, name: str, content: bytes) -> None:
    disk.create(name, content)
    travelled = remote.upload(name, disk)
    assert remote.sizes("") == {name: travelled}
    assert remote.exists(name)
    other = LocalDisk(tmp_path / "other")
    assert remote.download(name, other)
    assert other.read(name) == content
    assert remote.read(name) == content
    assert other.sizes("") == {name: len(content)}


def test_a_layer_travels_in_fewer_bytes(remote: Objects, disk: LocalDisk) -> None:
    content = b"some rows" * 1_000_000
    disk.create(LAYER, content)
    assert remote.upload(LAYER, disk) < len(content) / 100


def test_an_upload_can_be_repeated(remote: Objects, disk: LocalDisk) -> None:
    disk.create(LAYER, b"rows")
    assert remote.upload(LAYER, disk) == remote.upload(LAYER, disk)
    assert remote.read(LAYER) == b"rows"


def test_an_uploaded_layer_can_be_deleted(remote: Objects, disk: LocalDisk) -> None:
    disk.create(LAYER, b"rows")
    remote.upload(LAYER, disk)
    remote.delete(LAYER)
    assert remote.sizes("") == {}
    assert not remote.exists(LAYER)


def test_downloading_what_is_not_there_says_so_and_leaves_no_file(remote: Objects, disk: LocalDisk) -> None:
    assert not remote.download(LAYER, disk)
    assert not disk.root.exists()


def test_uploading_what_is_not_there_is_corrupt_and_leaves_no_object(remote: Objects, disk: LocalDisk) -> None:
    with pytest.raises(Corrupt, match="is not there"):
        remote.upload(LAYER, disk)
    assert remote.sizes("") == {}


@pytest.mark.parametrize("damage", ["truncated", "other bytes"])
def test_a_damaged_object_is_corrupt_and_leaves_no_file(remote: Objects, disk: LocalDisk, damage: str) -> None:
    disk.create(LAYER, os.urandom(100_000))
    remote.upload(LAYER, disk)
    stored = b"".join(remote._bucket.parts(LAYER + ".packed"))
    damaged = stored[:-100] if damage == "truncated" else b"other" + stored
    remote._bucket.put(LAYER + ".packed", iter([damaged]), large=False)
    disk.delete(LAYER)
    with pytest.raises(Corrupt, match="cannot be decompressed"):
        remote.download(LAYER, disk)
    assert [path for path in disk.root.rglob("*") if path.is_file()] == []


def test_a_large_file_is_never_held_in_memory(tmp_path: Path, disk: LocalDisk) -> None:
    size = 512 << 20
    path = disk.path(LAYER)
    path.parent.mkdir(parents=True)
    block = os.urandom(BLOCK)
    with open(path, "wb") as file:
        for _ in range(size // BLOCK):
            file.write(block)
    remote, other = open_remote(f"file://{tmp_path}/remote"), LocalDisk(tmp_path / "other")

    def there_and_back() -> None:
        remote.upload(LAYER, disk)
        remote.download(LAYER, other)

    assert growth_during(there_and_back) < size / 4
    assert other.sizes("") == {LAYER: size}


def test_a_file_that_fails_on_the_way_leaves_no_object(remote: Objects, disk: LocalDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    disk.create(LAYER, os.urandom(2 * PART))

    def broken(content: bytes) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("nosync.store.objects.packed", broken)
    with pytest.raises(Unavailable, match="could not be read"):
        remote.upload(LAYER, disk)
    assert remote.sizes("") == {}


def test_an_object_that_arrives_torn_is_not_taken_for_there(disk: LocalDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    remote = open_remote("memory://torn")
    disk.replace("layers/a.arrow", b"x" * 1000)
    plain = obstore.put
    monkeypatch.setattr("nosync.store.bucket.obstore.put", lambda store, key, content, **how: plain(store, key, content[:-1], **how))
    with pytest.raises(OutcomeUnknown, match="bytes on memory://torn instead of"):
        remote.upload("layers/a.arrow", disk)


class Slow(CloudBucket):
    """Answers reads only when several wait at once."""

    together = Barrier(4)

    def parts(self, key: str) -> Iterator[bytes]:
        self.together.wait(timeout=60)
        return super().parts(key)


@pytest.fixture
def slow() -> Objects:
    return Objects("memory://slow", Slow("memory", MemoryStore()))


def test_records_of_a_journal_are_read_many_at_once(slow: Objects) -> None:
    digest = FIRST
    for number in range(1, 9):
        record = encode(number, "1.a", digest, [])
        slow.create(record_name(number), record.content)
        digest = record.digest
    assert read_chain(slow).number == 8


def test_files_are_fetched_many_at_once_and_reported_in_their_order(slow: Objects, disk: LocalDisk) -> None:
    names = [f"layers/v/0/{number}.arrow" for number in range(8)]
    for name in names[:-1]:
        slow.create(name, name.encode())
    assert list(slow.download_all(names, disk)) == [(name, name != names[-1]) for name in names]
    assert disk.read_all(names) == {name: name.encode() for name in names[:-1]}


def test_a_large_object_is_read_in_parts_and_a_small_one_at_once() -> None:
    bucket = CloudBucket("memory", MemoryStore())
    for size, parts in ((1, 1), (PART, 1), (PART + 1, 2), (2 * PART, 2)):
        bucket.put("a", iter([bytes(size)]), large=True)
        assert [len(part) for part in bucket.parts("a")] == [min(PART, size - start) for start in range(0, size, PART)]
        assert len(list(bucket.parts("a"))) == parts


@pytest.mark.parametrize(("answer", "raises"), [("NoSuchKey: the key does not exist", False), ("NoSuchBucket: no such bucket", True)])
def test_what_is_not_there_is_deleted_unless_its_bucket_is_missing(monkeypatch: pytest.MonkeyPatch, answer: str, raises: bool) -> None:
    def missing(*_: object) -> None:
        raise FileNotFoundError(answer)

    monkeypatch.setattr("nosync.store.bucket.obstore.delete", missing)
    bucket = CloudBucket("memory", MemoryStore())
    with pytest.raises(Unavailable, match="NoSuchBucket") if raises else nullcontext():
        bucket.delete("a")
