"""An operator's check of leases: a real HTTP server that records what it is asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

START_WITHIN_S = 10.0


@dataclass
class LeaseCheckService:
    """What the service answers, and what it was asked: path, token and body of each request.

    It does not answer while ``is_silent``.
    """

    status: int = 204
    body: bytes = b""
    is_silent: bool = False
    url: str = ""
    asked: list[tuple[str, str | None, dict[str, Any]]] = field(default_factory=list)
    may_end: threading.Event = field(default_factory=threading.Event)

    def denies(self, message: str) -> None:
        """Answer with a denial from now on."""
        self.status, self.body = 403, json.dumps({"message": message}).encode()

    @property
    def paths(self) -> list[str]:
        """The paths of all requests."""
        return [path for path, _, _ in self.asked]


@contextmanager
def serving() -> Iterator[LeaseCheckService]:
    """Serve until the block ends."""
    service = LeaseCheckService()

    class Requests(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["content-length"])
            body = json.loads(self.rfile.read(length))
            service.asked.append((self.path, self.headers["x-auth-token"], body))
            if service.is_silent:
                service.may_end.wait(START_WITHIN_S)
                return
            self.send_response(service.status)
            self.send_header("content-length", str(len(service.body)))
            self.end_headers()
            self.wfile.write(service.body)

        def log_message(self, format: str, *args: Any) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Requests)
    service.url = f"http://127.0.0.1:{server.server_port}/check/"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield service
    finally:
        service.may_end.set()
        server.shutdown()
        thread.join(START_WITHIN_S)
        server.server_close()
