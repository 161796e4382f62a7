"""A schema registry as small as can be: numbers to schemas by its HTTP API, on loopback."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Registry:
    """What it answers, by path. `answers_with`: a code that it answers everything with, while there is one."""

    port: int = 0
    paths: dict[str, Any] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    authorization: str = ""
    answers_with: int = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def register(self, number: int, schema: Any, **more: Any) -> None:
        self.paths[f"/schemas/ids/{number}"] = {"schema": json.dumps(schema), **more}


@contextmanager
def registry() -> Iterator[Registry]:
    found = Registry()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found.asked.append(self.path)
            code, body = 200, found.paths.get(self.path, {})
            if found.authorization and self.headers.get("Authorization") != found.authorization:
                code = 401
            elif found.answers_with:
                code = found.answers_with
            elif self.path != "/" and self.path not in found.paths:
                code, body = 404, {"error_code": 40403, "message": "Schema not found"}
            content = json.dumps(body).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
