"""Addresses of remotes: what is possible, and what is said about the rest."""

from pathlib import Path
from uuid import uuid4

import pytest

import nosync as ns
from nosync.model.errors import Invalid, Unavailable
from nosync.store.addresses import LIMITS, _client_options, address_of, client_of
from nosync.store.objects import open_remote


@pytest.mark.parametrize("url", ["ftp://host/folder", "/mnt/backup", "backup", "", "http://host/x"])
def test_an_unknown_address_is_refused_with_what_is_possible(url: str) -> None:
    with pytest.raises(Invalid) as raised:
        open_remote(url)
    assert f'"{url}"' in raised.value.message
    for scheme in ("s3://", "gs://", "az://", "file:///", "memory://"):
        assert scheme in raised.value.hint


@pytest.mark.parametrize("url", ["file://folder", "file:folder"])
def test_a_folder_is_named_from_the_root(url: str) -> None:
    with pytest.raises(Invalid) as raised:
        open_remote(url)
    assert "three slashes" in raised.value.hint


def test_an_address_that_lacks_something_says_what(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
    with pytest.raises(Invalid, match="Account must be specified"):
        open_remote("az://container/prefix")
    for url, noun in (("s3:///prefix", "bucket"), ("s3://", "bucket"), ("gs://", "bucket"), ("az://", "container")):
        with pytest.raises(Invalid) as error:
            open_remote(url)
        assert error.value.message == f'"{url}" names no {noun}'
        assert error.value.hint == f"Write {url.partition(':')[0]}://{noun}/prefix."
    with pytest.raises(Invalid, match='"s3:///table" names no bucket'):
        ns.delta("s3:///table")


@pytest.mark.parametrize(
    "url", ["s3://bucket", "s3a://bucket/a/b", "gs://bucket/a", "az://container/a", "abfss://container@account.dfs.core.windows.net/a"]
)
def test_every_cloud_can_be_opened_without_asking_it(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
    assert open_remote(url).url == url


def test_memory_is_shared_by_name() -> None:
    name, other = uuid4().hex, uuid4().hex
    open_remote(f"memory://{name}").create("a", b"x")
    assert open_remote(f"memory://{name}").read("a") == b"x"
    assert open_remote(f"memory://{other}").read("a") is None
    assert open_remote(f"memory://{name}/below").read("a") is None


def test_a_folder_is_made_and_its_name_may_hold_anything(tmp_path: Path) -> None:
    open_remote(f"file://{tmp_path}/a%20b/ä").create("c", b"x")
    assert (tmp_path / "a b/ä/c").read_bytes() == b"x"


def test_a_folder_that_cannot_be_made_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(Unavailable, match="could not be made"):
        open_remote(f"file://{tmp_path}/file/folder")


def test_the_environment_goes_before_our_limits() -> None:
    environment = {"AWS_ALLOW_HTTP": "true", "AWS_TIMEOUT": "5m", "GOOGLE_PROXY_URL": "http://proxy"}
    assert _client_options("AWS", environment) == LIMITS | {"allow_http": True, "timeout": "5m"}
    assert _client_options("GOOGLE", environment) == LIMITS | {"proxy_url": "http://proxy"}
    assert _client_options("AZURE", environment) == LIMITS
    assert client_of("s3://bucket/a", environment)


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("s3://key:secret@bucket/a/", "s3://bucket/a"),
        ("az://container/a?sig=secret#secret", "az://container/a"),
        ("abfss://container@account.dfs.core.windows.net/a", "abfss://container@account.dfs.core.windows.net/a"),
        ("file:///folder/a", "file:///folder/a"),
    ],
)
def test_an_address_that_is_shown_holds_no_secret(url: str, address: str) -> None:
    assert address_of(url) == address
