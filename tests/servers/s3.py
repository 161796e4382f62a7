"""S3 servers of others, each a process of its own on loopback, with one bucket and keys of its own."""

import secrets
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.servers import installing

BUCKET = "flows"
HOST = "127.0.0.1"
START_SECONDS = 60.0


@dataclass(frozen=True)
class Server:
    """Where a server listens, and the keys it asks for. `folder` holds its buckets."""

    port: int
    key: str
    secret: str
    folder: Path

    @property
    def endpoint(self) -> str:
        return f"http://{HOST}:{self.port}"

    def settings(self, port: int | None = None) -> dict[str, str]:
        """For the environment of whoever shall reach it; `port` when something lies in between."""
        return settings_for(f"http://{HOST}:{port or self.port}", self.key, self.secret)


def settings_for(endpoint: str, key: str, secret: str) -> dict[str, str]:
    """What a user puts into the environment to reach a server."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": key,
        "AWS_SECRET_ACCESS_KEY": secret,
        "AWS_REGION": "us-east-1",
        "NO_PROXY": HOST,
    }


@contextmanager
def versitygw(folder: Path) -> Iterator[Server]:
    """Its conditional put is atomic."""
    server = _server(folder)
    command = [str(installing.versitygw()), "--port", f"{HOST}:{server.port}", "--quiet", "posix", str(server.folder)]
    with _running(command, server, {"ROOT_ACCESS_KEY": server.key, "ROOT_SECRET_KEY": server.secret}):
        yield server


@contextmanager
def s3s_fs(folder: Path) -> Iterator[Server]:
    """Its conditional put is not atomic."""
    server = _server(folder)
    keys = ["--access-key", server.key, "--secret-key", server.secret]
    command = [str(installing.s3s_fs()), "--host", HOST, "--port", str(server.port), *keys, str(server.folder)]
    with _running(command, server, {}):
        yield server


def _server(folder: Path) -> Server:
    (folder / BUCKET).mkdir(parents=True)
    with socket.socket() as free:
        free.bind((HOST, 0))
        return Server(free.getsockname()[1], f"key{secrets.token_hex(8)}", f"word{secrets.token_hex(16)}", folder)


@contextmanager
def _running(command: list[str], server: Server, environment: Mapping[str, str]) -> Iterator[None]:
    log = server.folder.with_name(f"{server.folder.name}.log")
    with log.open("ab") as lines:
        process = subprocess.Popen(command, env=dict(environment), stdout=lines, stderr=lines)
    try:
        _await(process, server.port, log)
        yield
    finally:
        process.terminate()
        process.wait(START_SECONDS)


def _await(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while True:
        with suppress(OSError), socket.create_connection((HOST, port), timeout=1.0):
            return
        assert process.poll() is None and time.monotonic() < end, f"the server does not listen: {log.read_text()[-2000:]}"
        time.sleep(0.02)
