"""A PostgreSQL server of one's own: a process on loopback with a folder of its own, that can be killed and started again."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.servers import installing

HOST, USER, SECRET = "127.0.0.1", "postgres", "pass-word/of:nobody"
START_SECONDS = 60.0


@dataclass
class Postgres:
    """A server that is running, unless it was killed. It asks for a password on TCP."""

    folder: Path
    port: int
    binaries: Path
    _process: "subprocess.Popen[bytes] | None" = field(default=None)

    def url(self, secret: str = SECRET, database: str = "postgres", port: int | None = None) -> str:
        word = secret.replace("/", "%2F").replace(":", "%3A")
        return f"postgresql://{USER}:{word}@{HOST}:{port or self.port}/{database}"

    def query(self, statement: str, *given: Any) -> list[tuple[Any, ...]]:
        """What a statement gives."""
        import psycopg

        with psycopg.connect(self.url(), autocommit=True) as connection:
            cursor = connection.execute(statement, given)  # type: ignore[call-overload]
            return list(cursor.fetchall()) if cursor.description else []

    def start(self) -> None:
        options = [
            "-D", str(self.folder / "data"), "-p", str(self.port), "-c", f"listen_addresses={HOST}", "-c", "unix_socket_directories=",
            "-c", "wal_level=logical", "-c", "max_replication_slots=8", "-c", "max_wal_senders=8", "-c", "fsync=off",
        ]  # fmt: skip
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen([*_as_owner(), str(self.binaries / "postgres"), *options], stdout=log, stderr=log)
        end = time.monotonic() + START_SECONDS
        while True:
            try:
                self.query("select 1")
                return
            except Exception as error:
                words = (self.folder / "log").read_text()[-2000:]
                assert self._process.poll() is None and time.monotonic() < end, f"the server does not answer: {error}\n{words}"
            time.sleep(0.05)

    def kill(self) -> None:
        """All at once, as when the machine stops: nothing is written down any more."""
        process, self._process = self._process, None
        if process is None:
            return
        leader = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
        os.kill(leader, signal.SIGQUIT)  # immediate shutdown: a recovery from the log comes with the next start
        process.wait(START_SECONDS)


def _as_owner() -> list[str]:
    """PostgreSQL does not run as root."""
    return ["runuser", "-u", USER, "--"] if os.geteuid() == 0 else []


@contextmanager
def postgres() -> Iterator[Postgres]:
    folder = Path(tempfile.mkdtemp(prefix="nosync-postgres-"))
    binaries = installing.postgres()
    try:
        word = folder / "word"
        word.write_text(SECRET)
        if os.geteuid() == 0:
            for path in (folder, word):
                shutil.chown(path, USER)
        data = [str(binaries / "initdb"), "-D", str(folder / "data"), "-U", USER, "--auth=scram-sha-256", f"--pwfile={word}", "--no-sync"]
        subprocess.run([*_as_owner(), *data, "-E", "UTF8", "--locale=C.UTF-8"], check=True, capture_output=True, cwd="/")
        with socket.socket() as free:
            free.bind((HOST, 0))
            server = Postgres(folder, free.getsockname()[1], binaries)
        server.start()
        try:
            yield server
        finally:
            server.kill()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
