"""Copying in a process of its own ends as copying by the remote itself does: with the same objects, and the same errors."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from nosync.model.errors import Corrupt, OutcomeUnknown, Unavailable
from nosync.store.disk import LocalDisk
from nosync.store.objects import Objects, open_remote
from nosync.tiers.uploading import PRIORITY, UploadProcess, answer, error_of, upload_process

NAME = "layers/v/0-f/1-2-1.0-0.arrow"


@pytest.fixture
def uploader(disk: LocalDisk, tmp_path: Path) -> Iterator[UploadProcess]:
    found = upload_process(open_remote((tmp_path / "remote").as_uri()), disk)
    assert found is not None
    yield found
    found.close()


def process_of(uploader: UploadProcess) -> psutil.Process:
    assert uploader._process is not None
    return psutil.Process(uploader._process.pid)


def test_the_objects_are_those_of_the_remote_itself_and_epochs_come_first(uploader: UploadProcess, disk: LocalDisk, tmp_path: Path) -> None:
    content = os.urandom(1 << 16) * 100
    disk.replace(NAME, content)
    remote = open_remote((tmp_path / "remote").as_uri())
    assert uploader.upload(NAME, disk) == remote.sizes("layers")[NAME] == open_remote((tmp_path / "other").as_uri()).upload(NAME, disk)
    assert remote.read(NAME) == content
    assert process_of(uploader).nice() == min(os.nice(0) + PRIORITY, 19)  # of one that is low already
    with pytest.raises(Corrupt, match="is not there"):
        uploader.upload("layers/v/0-f/2-3-1.0-0.arrow", disk)
    process_of(uploader).send_signal(signal.SIGSTOP)  # in the middle of whatever it does
    process_of(uploader).kill()
    with pytest.raises(OutcomeUnknown, match="ended"):
        uploader._ask(NAME)
    assert uploader.upload(NAME, disk) > 0


def test_after_its_end_no_process_is_started_for_whoever_has_not_heard_of_it(uploader: UploadProcess, disk: LocalDisk) -> None:
    disk.replace(NAME, b"content")
    uploader.close()
    with pytest.raises(Unavailable, match="the run has ended"):
        uploader.upload(NAME, disk)
    assert uploader._process is None


def test_every_error_of_the_remote_arrives(disk: LocalDisk, s3: Callable[[str], Objects]) -> None:
    disk.replace(NAME, b"x")
    away = s3("http://127.0.0.1:1")
    found = answer(away, NAME, disk)
    with pytest.raises(OutcomeUnknown) as direct:
        away.upload(NAME, disk)
    error = error_of(found)
    assert isinstance(error, OutcomeUnknown) and error.hint == direct.value.hint
    assert isinstance(error_of({"error": "Unavailable", "message": "m", "hint": "h"}), Unavailable)


def test_a_remote_in_memory_is_of_this_process_alone(disk: LocalDisk) -> None:
    assert upload_process(open_remote("memory://here"), disk) is None
    assert urlsplit(open_remote("memory://here").url).scheme == "memory"
