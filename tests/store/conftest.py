"""Stores of every kind; those in buckets are reached over HTTP on this host."""

from pathlib import Path
from uuid import uuid4

import pytest

from nosync.model.store import Store
from nosync.store.disk import LocalDisk
from nosync.store.objects import Objects, open_remote

REMOTES = ("file", "memory", "s3", "real s3")


@pytest.fixture(params=REMOTES)
def remote(request: pytest.FixtureRequest, tmp_path: Path) -> Objects:
    """An empty remote of each kind."""
    if request.param == "file":
        return open_remote(f"file://{tmp_path}/remote of all")
    if request.param == "memory":
        return open_remote(f"memory://{uuid4().hex}")
    if request.param == "real s3":
        server = request.getfixturevalue("real_s3")
        return request.getfixturevalue("s3")(server.endpoint, key=server.key, secret=server.secret)  # type: ignore[no-any-return]
    return request.getfixturevalue("s3")(request.getfixturevalue("s3_endpoint"))  # type: ignore[no-any-return]


@pytest.fixture(params=("disk", *REMOTES))
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """An empty store of each kind."""
    if request.param == "disk":
        return LocalDisk(tmp_path / "home")
    return remote.__wrapped__(request, tmp_path)  # type: ignore[attr-defined,no-any-return]
