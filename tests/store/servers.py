"""Servers that answer as real ones do on bad days."""

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

BUCKET = "flows"


@contextmanager
def serving(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[str]:
    """The endpoint of a server that answers every request by the function."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            answer(self)

        do_PUT = do_POST = do_HEAD = do_DELETE = do_GET

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def status(*codes: int) -> Callable[[BaseHTTPRequestHandler], None]:
    """Requests are answered with these codes in turn, and with the last one from then on."""
    remaining = list(codes)

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.rfile.read(int(request.headers.get("Content-Length", 0)))
        request.send_response(remaining.pop(0) if len(remaining) > 1 else remaining[0])
        request.send_header("Content-Length", "0")
        request.end_headers()

    return answer


def silence(until: threading.Event) -> Callable[[BaseHTTPRequestHandler], None]:
    """No request is ever answered."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        until.wait()
        request.close_connection = True

    return answer


def losing_answers(endpoint: str, count: int) -> Callable[[BaseHTTPRequestHandler], None]:
    """Requests reach the endpoint and are carried out, but the first few answers are lost on the way back."""
    lost = 0

    def answer(request: BaseHTTPRequestHandler) -> None:
        nonlocal lost
        content = request.rfile.read(int(request.headers.get("Content-Length", 0)))
        connection = http.client.HTTPConnection(urlsplit(endpoint).netloc)
        connection.request(request.command, request.path, content, dict(request.headers))
        response = connection.getresponse()
        body = response.read()
        if lost < count:
            lost += 1
            request.close_connection = True
            return
        request.send_response(response.status)
        for name, value in response.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                request.send_header(name, value)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    return answer
