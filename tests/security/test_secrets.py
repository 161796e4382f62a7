"""Passwords, keys and signatures stay where the user put them: not in the journal, not in messages, not on a command line."""

import logging
from pathlib import Path

import psutil
import pytest

from nosync.journal.entries import Opened
from nosync.journal.journal import Journal
from nosync.model.errors import Invalid, NosyncError, Unavailable
from nosync.model.run import this_process
from nosync.model.secrets import redacted
from nosync.runtime.durability import durability_of
from nosync.sources.files import files
from nosync.store.disk import LocalDisk
from nosync.store.objects import Objects, open_remote
from nosync.tiers.uploading import upload_process

SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCY"
GIVEN = (
    f"s3://AKIA:{SECRET}@bucket/prefix",
    f"s3://bucket/prefix?aws_secret_access_key={SECRET}",
    f"gs://bucket/prefix?token={SECRET}",
    f"abfss://container:{SECRET}@account.dfs.core.windows.net/p",
    f"az://container/p?sv=1&sig={SECRET}",
    f"postgresql://user:{SECRET}@host/database",
)


@pytest.mark.parametrize("address", GIVEN)
def test_an_address_with_credentials_is_refused_without_repeating_them(address: str) -> None:
    with pytest.raises(Invalid) as refused:
        open_remote(address)
    assert SECRET not in str(refused.value) and SECRET.split("/")[1] not in str(refused.value)


@pytest.mark.parametrize("text", [
    *GIVEN, f"password={SECRET} host=x", f"jdbc:postgresql://h/d?user=u&password={SECRET}",
    f'"sasl.password": "{SECRET}"', f"AWS_SECRET_ACCESS_KEY={SECRET}",
    f"error sending request for url (https://a.blob.core.windows.net/c/x?sv=2020&sig={SECRET}&se=1): refused",
])  # fmt: skip
def test_no_message_of_an_error_repeats_a_secret(text: str) -> None:
    for error in (NosyncError(text), Unavailable("m", hint=f"Look at {text}.")):
        assert SECRET not in str(error) + repr(error) + error.message + error.hint + "".join(map(str, error.args))


@pytest.mark.parametrize("text", [
    'view "spend": no column "token"', "s3://bucket/prefix", "abfss://container@account.dfs.core.windows.net/p", "http://127.0.0.1:9000/bucket",
    "Check the credentials in the environment (such as AWS_ACCESS_KEY_ID)", "layer \"layers/v/0-f/1-2.arrow\" has 3 bytes instead of 4",
])  # fmt: skip
def test_what_is_no_secret_stays_readable(text: str) -> None:
    assert redacted(text) == text


def test_options_and_addresses_are_not_part_of_what_objects_print(tmp_path: Path) -> None:
    source = files(tmp_path, format="csv", schema="a int", password=SECRET)
    assert SECRET not in repr(source)
    assert SECRET not in repr(durability_of(f"s3://k:{SECRET}@b", None, 1))


def test_credentials_of_the_environment_are_nowhere_in_the_home_the_remote_the_log_or_the_process_list(
    disk: LocalDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    caplog.set_level(logging.DEBUG)
    remote = open_remote((tmp_path / "remote").as_uri())
    journal = Journal(disk, remote, this_process(0.0))
    journal.append(Opened(1, 0.0, {}))  # type: ignore[arg-type]
    journal.ship()
    uploader = upload_process(remote, disk)
    assert uploader is not None
    try:
        disk.replace("layers/v/0-f/x.arrow", b"rows")
        uploader.upload("layers/v/0-f/x.arrow", disk)
        assert uploader._process is not None
        line = psutil.Process(uploader._process.pid).cmdline()
    finally:
        uploader.close()
    assert str(tmp_path) not in " ".join(line) and line[-2:] == ["-m", "nosync.tiers.upload_worker"]
    written = b"".join(file.read_bytes() for folder in (disk.root, tmp_path) for file in folder.rglob("*") if file.is_file())
    assert SECRET.encode() not in written and SECRET not in caplog.text


def test_an_unreachable_remote_is_reported_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"ACCESS_KEY_ID": "AKIA", "SECRET_ACCESS_KEY": SECRET, "ENDPOINT_URL": "http://127.0.0.1:1", "ALLOW_HTTP": "true"}
    for name, value in (settings | {"REGION": "x"}).items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setattr("nosync.store.addresses.RETRIES", {"max_retries": 0})
    remote: Objects = open_remote("s3://bucket/prefix")
    with pytest.raises(Unavailable) as error:
        remote.read("journal/records/1")
    cause = error.value.__cause__
    assert SECRET not in f"{error.value} {error.value!r} {cause} {cause!r} {remote!r} {remote.address}"
