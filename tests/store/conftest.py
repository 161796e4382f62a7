"""Stores of every kind; the one in a bucket is reached over HTTP on this host."""

import logging
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from moto.server import ThreadedMotoServer

from nosync.model.store import Store
from nosync.store.disk import LocalDisk
from nosync.store.objects import Objects, open_remote
from tests.store.servers import BUCKET

REMOTES = ("file", "memory", "s3")


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    """A server that speaks S3 and has one bucket."""
    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    urllib.request.urlopen(urllib.request.Request(f"{endpoint}/{BUCKET}", method="PUT")).close()
    yield endpoint
    server.stop()


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Objects]:
    """A remote in the bucket behind an endpoint, set up as a user does it: by the environment."""

    def remote(endpoint: str, bucket: str = BUCKET) -> Objects:
        settings = {
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
            "NO_PROXY": "127.0.0.1",
        }
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        return open_remote(f"s3://{bucket}/flows/{uuid4().hex}")

    return remote


@pytest.fixture
def disk(tmp_path: Path) -> LocalDisk:
    return LocalDisk(tmp_path / "home")


@pytest.fixture(params=REMOTES)
def remote(request: pytest.FixtureRequest, tmp_path: Path) -> Objects:
    """An empty remote of each kind."""
    if request.param == "file":
        return open_remote(f"file://{tmp_path}/remote of all")
    if request.param == "memory":
        return open_remote(f"memory://{uuid4().hex}")
    return request.getfixturevalue("s3")(request.getfixturevalue("s3_endpoint"))  # type: ignore[no-any-return]


@pytest.fixture(params=("disk", *REMOTES))
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """An empty store of each kind."""
    if request.param == "disk":
        return LocalDisk(tmp_path / "home")
    return remote.__wrapped__(request, tmp_path)  # type: ignore[attr-defined,no-any-return]
