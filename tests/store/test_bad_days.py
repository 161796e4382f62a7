"""A remote that fails says what is known: nothing was written, or nobody knows."""

import socket
import threading
from collections.abc import Callable

import pytest

from nosync.model.errors import Conflict, NosyncError, OutcomeUnknown, Unavailable
from nosync.store.disk import LocalDisk
from nosync.store.failures import from_remote
from nosync.store.objects import Objects
from tests.store.servers import losing_answers, serving, silence, status

Connect = Callable[..., Objects]
READS: dict[str, Callable[[Objects, LocalDisk], object]] = {
    "read": lambda remote, disk: remote.read("a"),
    "exists": lambda remote, disk: remote.exists("a"),
    "sizes": lambda remote, disk: remote.sizes("a"),
    "download": lambda remote, disk: remote.download("a.arrow", disk),
}
WRITES: dict[str, Callable[[Objects, LocalDisk], object]] = {
    "create": lambda remote, disk: remote.create("a", b"x"),
    "replace": lambda remote, disk: remote.replace("a", b"x"),
    "delete": lambda remote, disk: remote.delete("a"),
    "upload": lambda remote, disk: remote.upload("on the disk.arrow", disk),
}


@pytest.fixture(autouse=True)
def short_limits(monkeypatch: pytest.MonkeyPatch, disk: LocalDisk) -> None:
    monkeypatch.setenv("AWS_TIMEOUT", "200ms")
    disk.create("on the disk.arrow", b"rows")


def failure(remote: Objects, disk: LocalDisk, call: Callable[[Objects, LocalDisk], object]) -> NosyncError:
    with pytest.raises(NosyncError) as raised:
        call(remote, disk)
    return raised.value


def nobody() -> str:
    """An endpoint at which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


@pytest.mark.parametrize("call", READS.values(), ids=READS.keys())
def test_a_read_that_finds_nobody_is_unavailable(s3: Connect, disk: LocalDisk, call: Callable[..., object]) -> None:
    error = failure(s3(nobody()), disk, call)
    assert type(error) is Unavailable
    assert "AWS_ENDPOINT_URL" in error.hint


@pytest.mark.parametrize("call", WRITES.values(), ids=WRITES.keys())
def test_a_write_that_finds_nobody_is_of_unknown_outcome(s3: Connect, disk: LocalDisk, call: Callable[..., object]) -> None:
    assert type(failure(s3(nobody()), disk, call)) is OutcomeUnknown


@pytest.mark.parametrize("code", [500, 503])
def test_a_server_in_trouble_may_have_written(s3: Connect, disk: LocalDisk, code: int) -> None:
    with serving(status(code)) as endpoint:
        remote = s3(endpoint)
        assert {type(failure(remote, disk, call)) for call in WRITES.values()} == {OutcomeUnknown}
        assert {type(failure(remote, disk, call)) for call in READS.values()} == {Unavailable}


def test_a_server_that_never_answers_is_given_up(s3: Connect, disk: LocalDisk) -> None:
    stopped = threading.Event()
    with serving(silence(stopped)) as endpoint:
        remote = s3(endpoint)
        try:
            assert type(failure(remote, disk, WRITES["create"])) is OutcomeUnknown
            assert type(failure(remote, disk, READS["read"])) is Unavailable
        finally:
            stopped.set()


@pytest.mark.parametrize("code", [401, 403])
def test_a_refusal_says_what_to_check(s3: Connect, disk: LocalDisk, code: int) -> None:
    with serving(status(code)) as endpoint:
        remote = s3(endpoint)
        for call in (*READS.values(), *WRITES.values()):
            error = failure(remote, disk, call)
            assert type(error) is Unavailable
            assert "Check the credentials" in error.hint


def test_a_refusal_after_trouble_does_not_undo_what_may_have_been_written(s3: Connect, disk: LocalDisk) -> None:
    with serving(status(503, 403)) as endpoint:
        error = failure(s3(endpoint), disk, WRITES["create"])
    assert type(error) is OutcomeUnknown
    assert "Check the credentials" in error.hint


def test_a_missing_bucket_is_not_an_empty_one(s3: Connect, s3_endpoint: str, disk: LocalDisk) -> None:
    remote = s3(s3_endpoint, "no-such-bucket")
    for call in ("read", "sizes", "download"):
        error = failure(remote, disk, READS[call])
        assert type(error) is Unavailable
        assert "bucket" in error.hint
    for call in ("create", "replace", "upload"):
        error = failure(remote, disk, WRITES[call])
        assert type(error) is Unavailable
        assert "bucket" in error.hint


def test_a_write_whose_answers_are_all_lost_has_happened_and_reads_back(s3: Connect, s3_endpoint: str) -> None:
    with serving(losing_answers(s3_endpoint, 4)) as endpoint:
        remote = s3(endpoint)
        with pytest.raises(OutcomeUnknown):
            remote.create("a", b"mine")
        assert remote.read("a") == b"mine"


def test_a_conflict_may_be_with_ones_own_first_attempt(s3: Connect, s3_endpoint: str) -> None:
    with serving(losing_answers(s3_endpoint, 1)) as endpoint:
        remote = s3(endpoint)
        with pytest.raises(Conflict):
            remote.create("a", b"mine")
        assert remote.read("a") == b"mine"


def test_lost_answers_to_other_calls_go_unnoticed(s3: Connect, s3_endpoint: str, disk: LocalDisk) -> None:
    with serving(losing_answers(s3_endpoint, 1)) as endpoint:
        remote = s3(endpoint)
        remote.replace("a", b"mine")
        assert remote.read("a") == b"mine"


@pytest.mark.parametrize("write", [False, True])
def test_without_credentials_nothing_was_sent(write: bool) -> None:
    error = from_remote(OSError("Generic S3 error: Error performing PUT http://169.254.169.254/latest/api/token"), "no", write=write)
    assert type(error) is Unavailable
    assert "Check the credentials" in error.hint


def test_a_broken_connection_is_not_mistaken_for_a_broken_disk() -> None:
    error = from_remote(OSError("Generic S3 error: Connection reset by peer (os error 104)"), "no", write=True)
    assert type(error) is OutcomeUnknown
