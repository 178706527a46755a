"""A child zone that answers as a test wants: late, wrongly, or with bytes that are no HTTP."""

from __future__ import annotations

import json
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

Raw = bytes | Iterator[bytes]
END = b"\r\n\r\n"
ZONE_ID = "7d0a3c1e-0000-4000-8000-000000000001"
BLOB = "c2VhbGVk"
BEST = -1e6
EAST: dict[str, Any] = {
    "zone_name": "east",
    "allow_admin_api": True,
    "enable_zone_routing": True,
    "build_plan_encryption_key": ["c286696d887c9aa0611bbb3e2025a45b"],
}
"""The settings of a zone whose children a test plays."""
DRIP_S = 0.05
READ_BYTES = 65536


def http(body: Any = b"", status: int = 200, *headers: str, length: int | None = None) -> bytes:
    """Return the bytes of an answer. A body that is not bytes is sent as JSON."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    size = len(raw) if length is None else length
    lines = [f"HTTP/1.1 {status} Odd", f"content-length: {size}", "connection: close", *headers]
    if not any(each.startswith("content-type") for each in headers):
        lines.append("content-type: application/json")
    return "\r\n".join(lines).encode("latin-1") + END + raw


def drip(start: bytes = b"", drop: bytes = b" ") -> Iterator[bytes]:
    """Yield an answer that never ends, slowly."""
    yield start
    while True:
        time.sleep(DRIP_S)
        yield drop


def flood(start: bytes = b"") -> Iterator[bytes]:
    """Yield an answer that never ends, fast."""
    yield start
    while True:
        yield b" " * READ_BYTES


@dataclass(frozen=True, slots=True)
class SeenRequest:
    """A request that the child got. ``path`` is relative to its address."""

    method: str
    path: str
    query: str
    body: Any
    headers: dict[str, str]


@dataclass(slots=True)
class HostileZone:
    """A child zone. If ``answers`` returns ``None`` for a request, the zone behaves well.

    Before each answer, ``begin`` is called with the request.
    """

    port: int = 0
    answers: Callable[[SeenRequest], Raw | None] = lambda asked: None
    info: Any = field(default_factory=lambda: {"id": ZONE_ID, "name": "odd", "capabilities": {}})
    asked: list[SeenRequest] = field(default_factory=list)
    begin: Callable[[SeenRequest], None] = lambda asked: None

    @property
    def api_url(self) -> str:
        """The address of its Compute API."""
        return f"http://127.0.0.1:{self.port}/v2.1"

    def answer(self, asked: SeenRequest) -> Raw:
        """Return the answer to a request."""
        self.asked.append(asked)
        self.begin(asked)
        if asked.path == "/zones/info":
            return http({"zone": self.info})
        told = self.answers(asked)
        if told is not None:
            return told
        is_create = asked.method == "POST" and asked.path == "/servers"
        return http(behaved(asked), 202 if is_create else 200)


def behaved(asked: SeenRequest) -> Any:
    """Return the body of the answer of a well-behaved child zone, which always has room."""
    if asked.path == "/zones/select":
        return {"weights": offers(asked.body["server"]["max_count"])}
    if asked.path == "/zones/undo":
        return {"gone": asked.body["servers"]}
    if asked.method == "POST" and asked.path == "/servers":
        return {"zone": {"outcomes": dict.fromkeys(ids_in(asked.body), "built")}}
    if asked.path in ("/servers", "/servers/detail"):
        return {"servers": [], "zone": {"keys": []}}
    return {"server": {"id": asked.path.split("/")[2]}}


def ids_in(create: Any) -> list[str]:
    """Return the ids of the servers that a create request names, with or without entries."""
    told = create["zone"]
    return [each["id"] for each in told["entries"]] if "entries" in told else told["servers"]


def offers(count: int, **more: Any) -> list[dict[str, Any]]:
    """Return offers that are better than all others."""
    return [{"weight": BEST, "blob": BLOB, "item": uuid4().hex, **more} for _ in range(count)]


@contextmanager
def hostile_zone() -> Iterator[HostileZone]:
    """Serve a child zone until the block ends."""
    zone = HostileZone()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            asked = _received(self.request)
            if asked is None:
                return
            told = zone.answer(asked)
            with suppress(OSError):
                for piece in [told] if isinstance(told, bytes) else told:
                    self.request.sendall(piece)

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True
        block_on_close = False

    with Server(("127.0.0.1", 0), Handler) as server:
        zone.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield zone
        finally:
            server.shutdown()


def _received(connection: socket.socket) -> SeenRequest | None:
    raw = b""
    while END not in raw:
        piece = connection.recv(READ_BYTES)
        if not piece:
            return None
        raw += piece
    head, _, body = raw.partition(END)
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): text for name, _, text in (each.partition(": ") for each in lines)}
    while len(body) < int(headers.get("content-length", "0")):
        body += connection.recv(READ_BYTES)
    method, target, _ = first.split(" ")
    path, _, query = target.removeprefix("/v2.1").partition("?")
    return SeenRequest(method, path, query, json.loads(body) if body else None, headers)
