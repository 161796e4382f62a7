"""The proxy between hosts and the remote does what its modes say."""

import socket
import threading
from collections.abc import Iterator

import pytest

from tests.crash.link import Link
from tests.crash.place import LOOPBACK

ANSWER = b"answer"


class Server:
    """Answers every piece, and remembers what came."""

    def __init__(self) -> None:
        self.listening = socket.create_server((LOOPBACK, 0))
        self.came: list[bytes] = []
        self.news = threading.Event()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection = self.listening.accept()[0]
            except OSError:
                return
            with connection:
                if piece := connection.recv(100):
                    self.came.append(piece)
                    self.news.set()
                    connection.sendall(ANSWER)


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()
    yield found
    found.listening.close()


def answer(port: int, seconds: float = 10.0) -> bytes:
    """What comes back for a request until the connection ends."""
    with socket.create_connection((LOOPBACK, port), timeout=seconds) as connection:
        try:
            connection.sendall(b"request")
            return b"".join(iter(lambda: connection.recv(100), b""))
        except OSError:
            return b""


def test_an_open_link_and_a_slow_one_pass_everything(server: Server) -> None:
    with Link(socket.create_server((LOOPBACK, 0)), server.listening.getsockname()) as link:
        assert answer(link.port) == ANSWER
        link.become("slow")
        assert answer(link.port) == ANSWER


def test_a_cut_link_passes_nothing_until_it_is_open_again(server: Server) -> None:
    with Link(socket.create_server((LOOPBACK, 0)), server.listening.getsockname()) as link:
        link.become("cut")
        assert answer(link.port) == b"" and not server.came
        link.become("open")
        assert answer(link.port) == ANSWER


def test_a_deaf_link_brings_the_request_and_loses_the_answer(server: Server) -> None:
    with Link(socket.create_server((LOOPBACK, 0)), server.listening.getsockname()) as link:
        link.become("deaf", answer_bytes=2)
        assert answer(link.port) == ANSWER[:2]
        link.become("deaf")
        assert answer(link.port) == b"" and server.came == [b"request", b"request"]


def test_what_was_sent_into_a_silent_link_arrives_after_its_sender_gave_up(server: Server) -> None:
    with Link(socket.create_server((LOOPBACK, 0)), server.listening.getsockname()) as link:
        link.become("silent")
        assert answer(link.port, seconds=0.2) == b"" and not server.came
        link.become("open")
        assert server.news.wait(10.0) and server.came == [b"request"]
