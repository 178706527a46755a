"""A receiver of webhooks on a free port of this machine."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(slots=True)
class Receiver:
    """What arrived, and the statuses to answer with: the next ones first, and then 204."""

    url: str
    posts: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)


@contextmanager
def receiver() -> Iterator[Receiver]:
    """Receive posts until the block ends."""

    class Requests(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            """Keep a post, and answer it."""
            body = self.rfile.read(int(self.headers["content-length"]))
            made.posts.append(({k.lower(): v for k, v in self.headers.items()}, body))
            self.send_response(made.statuses.pop(0) if made.statuses else 204)
            self.send_header("location", made.url)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Requests)
    made = Receiver(f"http://127.0.0.1:{server.server_port}/hook")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
