"""One client's connection: HTTP's parser, and how much and how long it may keep us waiting.

Always true: the parser keeps no more than ``HEAD_BYTES_MAX`` and one piece off the wire, and
what a client began but for a body is whole within its time. Bodies have bounds of their own.
The head of an answer leaves with the first part of its body, if that is there already.
"""

from __future__ import annotations

import asyncio
import resource
from typing import Any

import structlog
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

LOG = structlog.get_logger("innkeeper.api")
HEAD_BYTES_MAX = 64 * 1024
"""For the line of a request and its headers; stock clients send a few hundred bytes."""
REFUSED_MAX = 64
"""Connections beyond the last that may be, which are told so; further ones are just closed."""
FILES_KEPT = 128
"""Files that are left for the database, for logs and for whatever else is opened."""
TOO_MANY = b"Too many connections are open."
TOO_LARGE = b"The head of the request is too large."
REFUSED = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-type: text/plain; charset=utf-8\r\n"
    b"content-length: %d\r\n"
    b"connection: close\r\n\r\n%b" % (len(TOO_LARGE), TOO_LARGE)
)
GO_ON = b"HTTP/1.1 100 Continue\r\n\r\n"
"""The server's own word ahead of an answer, for clients that wait with their body."""
SEPARATORS = len(b": \r\n")
LISTENING_S = 0.05
"""How long one goes on listening to a client whose time is over."""


class HeadTooLarge(Exception):
    """Stops the parser."""


class PatientConfig(uvicorn.Config):
    """The server's configuration, and how long its clients may take."""

    def __init__(
        self, app: Any, client_timeout_s: float, connections_max: int, **more: Any
    ) -> None:
        # Nothing here speaks over web sockets.
        super().__init__(app, http=Connection, ws="none", **more)
        self.client_timeout_s = client_timeout_s
        self.connections_max = possible(connections_max)


def possible(connections_max: int) -> int:
    """How many connections there can be; more files are asked for where that is too few.

    Where all files are in use, neither a database nor the next client can be reached, and what
    is left to be done is not done either.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections_max + REFUSED_MAX + FILES_KEPT
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return connections_max
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    left = max(1, allowed - REFUSED_MAX - FILES_KEPT)
    if left < connections_max / 2:
        LOG.warning("few_files", files=allowed, connections=left)
    return left


async def refuse_connection(_scope: Any, _receive: Any, send: Any) -> None:
    """Answer a request on a connection beyond the last that may be."""
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(TOO_MANY)).encode()),
        (b"retry-after", b"1"),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": TOO_MANY})


class Connection(HttpToolsProtocol):
    """Counts what the parser holds: what came since it last had something whole to give."""

    def __init__(
        self,
        config: PatientConfig,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._timeout_s = config.client_timeout_s
        self._connections_max = config.connections_max
        self._held_bytes = 0
        self._is_too_large = False
        self._is_beyond = False
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin; who connects has something to say."""
        super().connection_made(transport)
        if len(self.connections) > self._connections_max + REFUSED_MAX:
            # Waiting for a request to answer would take a file for as long.
            transport.abort()
            return
        self._is_beyond = self._are_too_many()
        self._timer = self.loop.call_later(self._timeout_s, self._give_up)

    def _are_too_many(self) -> bool:
        return len(self.connections) > self._connections_max

    def connection_lost(self, exc: Exception | None) -> None:
        """End, from either side."""
        self._got_on()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Feed the parser; what is too much even when it took all of it is refused."""
        self._held_bytes += len(data)
        super().data_received(data)
        if self._held_bytes:
            if self.transport.is_closing():
                return
            if self._held_bytes > HEAD_BYTES_MAX:
                self._refuse()
            elif self._timer is None:
                self._timer = self.loop.call_later(self._timeout_s, self._give_up)

    def on_message_begin(self) -> None:
        """Notice also a request that begins in one piece with the end of another."""
        self._held_bytes = self._held_bytes or 1
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Begin to answer, if the head is not too large; bytes behind it do not count."""
        if self._held_bytes > HEAD_BYTES_MAX and self._head_bytes() > HEAD_BYTES_MAX:
            self._is_too_large = True
            raise HeadTooLarge
        self._got_on()
        if self._is_beyond and self._are_too_many():
            # The connections that were there keep their places; this one ends with its answer.
            self.app = refuse_connection
        super().on_headers_complete()
        self.cycle.transport = _Joining(self.transport, self.loop)

    def on_body(self, body: bytes) -> None:
        """Keep a part of the body for whoever reads it."""
        self._got_on()
        super().on_body(body)

    def on_chunk_header(self) -> None:
        """Get on to the next part of a body in parts, or to what stands behind the last."""
        self._got_on()

    def on_message_complete(self) -> None:
        """End a request."""
        self._got_on()
        super().on_message_complete()

    def timeout_keep_alive_handler(self) -> None:
        """Let a client go that asks for nothing more."""
        # A process that did not run for a while finds its timers due before it hears what came
        # meanwhile: a request that waits there would be cut off without having been read.
        self.timeout_keep_alive_task = self.loop.call_later(
            LISTENING_S, super().timeout_keep_alive_handler
        )

    def send_400_response(self, msg: str) -> None:
        """Answer what the parser does not take."""
        if self._is_too_large:
            self._refuse()
        else:
            super().send_400_response(msg)

    def _head_bytes(self) -> int:
        lines = (len(name) + len(value) + SEPARATORS for name, value in self.headers)
        return len(self.url) + sum(lines)

    def _got_on(self) -> None:
        self._held_bytes = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refuse(self) -> None:
        is_idle = not isinstance(self.cycle, RequestResponseCycle)
        if is_idle or self.cycle.response_complete:
            # In the middle of another answer it would be taken for a part of that.
            self.transport.write(REFUSED)
        self.transport.close()

    def _give_up(self) -> None:
        # As with clients that ask for nothing more: what came is heard first.
        self._timer = self.loop.call_later(LISTENING_S, self.transport.close)


class _Joining(asyncio.Transport):
    """What one answer is written to: its head is not sent alone, which would wake the client
    for nothing and take as long as sending all of it.

    It does not know the answer: the two would be garbage that only the collector can free.
    """

    __slots__ = ("_head", "_is_begun", "_loop", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._head = b""
        self._is_begun = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send, or keep what is the head."""
        if self._head:
            data, self._head = self._head + data, b""
        elif not self._is_begun and data != GO_ON:
            self._is_begun = True
            self._head = bytes(data)
            # What is made of a stream comes later, and some answers have no body.
            self._loop.call_soon(self._send_head)
            return
        self._transport.write(data)

    def _send_head(self) -> None:
        if self._head and not self.is_closing():
            self.write(b"")

    def close(self) -> None:
        """Send what is left, and end."""
        self._send_head()
        self._transport.close()

    def is_closing(self) -> bool:
        """Whether nothing can be sent any more."""
        return self._transport.is_closing()
