"""A relay between a zone and its child, which can hold requests at a chosen moment."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx

WITHIN_S = 60.0
PASSED = ("x-auth-token", "content-type", "openstack-api-version", "accept")
UNFINISHED = b"..."
"""The end of an answer after which the connection stays open."""
CREATE, UNDO = "/compute/v2.1/servers", "/compute/v2.1/zones/undo"


class Relay:
    """Passes requests to a child. ``address`` is its own address.

    ``requests`` has the methods, paths and bodies of all requests.

    A held request may pass to the child first. When it is released, it is answered or its
    connection is closed.
    """

    def __init__(self, child: str) -> None:
        self._child = child
        self._held: dict[str, bool] = {}
        self._answers = False
        self._seen: dict[str, threading.Event] = {}
        self._released = threading.Event()
        self._instead: list[tuple[str, str, bytes, bool]] = []
        self.requests: list[tuple[str, str, bytes]] = []
        relay = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                relay.serve(self)

            do_POST = do_PUT = do_DELETE = do_GET

            def log_message(self, format: str, *args: object) -> None:
                """Print nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"

    def hold(self, path: str, *, passes: bool, answers: bool = False) -> threading.Event:
        """Hold each ``POST`` of this path; the returned event is set when one was received."""
        self._held[path] = passes
        self._answers = answers
        self._seen[path] = threading.Event()
        self._released.clear()
        return self._seen[path]

    def answer(self, method: str, path: str, raw: bytes, *, passes: bool = False) -> None:
        """Answer requests below a path with these bytes; with ``passes``, the child gets them too.

        After an unfinished answer, the connection stays open for a while.
        """
        self._instead.append((method, path, raw, passes))

    def release(self) -> None:
        """Pass and answer all requests again."""
        self._held.clear()
        self._instead.clear()
        self._released.set()

    def serve(self, request: BaseHTTPRequestHandler) -> None:
        """Pass one request, or hold it."""
        body = request.rfile.read(int(request.headers.get("content-length", 0)))
        path = request.path.partition("?")[0]
        self.requests.append((request.command, path, body))
        for method, start, raw, passes_too in self._instead:
            if method == request.command and path.startswith(start):
                if passes_too:
                    self._passed(request, body)
                request.wfile.write(raw)
                request.close_connection = True
                if not raw or raw.endswith(UNFINISHED):
                    self._released.wait(WITHIN_S)
                return
        passes = self._held.get(path) if request.command == "POST" else None
        answer = None if passes is False else self._passed(request, body)
        if passes is not None:
            self._seen[path].set()
            self._released.wait(WITHIN_S)
        if passes is not None and not self._answers:
            request.close_connection = True
            return
        assert answer is not None, "only a request that passes is answered"
        request.send_response(answer.status_code)
        for name in ("content-type", "location"):
            if name in answer.headers:
                request.send_header(name, answer.headers[name])
        request.send_header("content-length", str(len(answer.content)))
        request.end_headers()
        request.wfile.write(answer.content)

    def _passed(self, request: BaseHTTPRequestHandler, body: bytes) -> httpx.Response:
        headers = {name: request.headers[name] for name in PASSED if name in request.headers}
        with httpx.Client(trust_env=False, timeout=WITHIN_S) as client:
            return client.request(
                request.command, self._child + request.path, content=body, headers=headers
            )


@contextmanager
def relay_to(child: str) -> Iterator[Relay]:
    """Run a relay to a child until the block ends."""
    relay = Relay(child)
    thread = threading.Thread(target=relay.server.serve_forever, daemon=True)
    thread.start()
    try:
        yield relay
    finally:
        relay.release()
        relay.server.shutdown()
        relay.server.server_close()
        thread.join()
