"""Client connections, which limit the HTTP parser's memory and the time that a client may take.

Always true: the parser buffers at most ``HEAD_BYTES_MAX`` plus one read. A client must complete the
head of a request (the first line and the headers) within the timeout. Other modules limit bodies.
The head of an answer is sent together with the first part of the body, if that part is ready.
"""

from __future__ import annotations

import asyncio
import resource
from typing import Any

import structlog
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from innkeeper.engine.callers import ClientConnection

LOG = structlog.get_logger("innkeeper.api")
HEAD_BYTES_MAX = 64 * 1024
"""The maximum size of the request line and the headers. OpenStack's clients send a few hundred
bytes."""
REFUSED_MAX = 64
"""Number of connections over the limit that get a 503. Further connections are closed without an
answer."""
FILES_KEPT = 128
"""File descriptors that are reserved for the database, logs and the like."""
TOO_MANY = b"Too many connections are open. Please try again later."
TOO_LARGE = b"The request line and the headers are too large."
REFUSED = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-type: text/plain; charset=utf-8\r\n"
    b"content-length: %d\r\n"
    b"connection: close\r\n\r\n%b" % (len(TOO_LARGE), TOO_LARGE)
)
GO_ON = b"HTTP/1.1 100 Continue\r\n\r\n"
"""The interim answer to a client that waits before it sends its body."""
ARRIVING = "innkeeper.arriving"
"""The key in the ASGI scope for the uvicorn object that receives the request and sends the answer.
While a part of the body is missing, the object's ``more_body`` is true."""
SEPARATORS = len(b": \r\n")
CLIENT = "innkeeper.client_connection"
"""The key in the ASGI scope for the client's connection."""
LISTENING_S = 0.05
"""When a client times out, the server still reads data that has already arrived, for this number of
seconds."""


class HeadTooLarge(Exception):
    """Raised to stop the parser if the head of a request is too large."""


class PatientConfig(uvicorn.Config):
    """The server's configuration with the limits on clients."""

    def __init__(
        self, app: Any, client_timeout_s: float, connections_max: int, **more: Any
    ) -> None:
        super().__init__(app, http=Connection, ws="none", **more)
        self.client_timeout_s = client_timeout_s
        self.connections_max = affordable(connections_max)


def affordable(connections_max: int) -> int:
    """Raise the soft limit on file descriptors, and return the number of connections to allow.

    The database, the logs and rejected connections need descriptors, too, so some are kept free for
    them.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = connections_max + REFUSED_MAX + FILES_KEPT
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return connections_max
    allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    remaining = max(1, allowed - REFUSED_MAX - FILES_KEPT)
    if remaining < connections_max / 2:
        LOG.warning("few_files", files=allowed, connections=remaining)
    return remaining


async def refuse_connection(_scope: Any, _receive: Any, send: Any) -> None:
    """Answer a request with a 503, because there are too many connections."""
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(TOO_MANY)).encode()),
        (b"retry-after", b"1"),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": TOO_MANY})


class Connection(HttpToolsProtocol):
    """A connection that counts the bytes that the parser has buffered, and limits the client.

    Each complete head or part of a body resets the count.
    """

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
        self._is_over_limit = False
        self._timer: asyncio.TimerHandle | None = None
        self._client = ClientConnection()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timeout for the first request."""
        super().connection_made(transport)
        if len(self.connections) > self._connections_max + REFUSED_MAX:
            # Close the connection at once. To send a 503, the server would have to wait for a
            # request. Until then, the connection would use a file descriptor.
            transport.abort()
            return
        self._is_over_limit = self._are_too_many()
        self._timer = self.loop.call_later(self._timeout_s, self._give_up)

    def _are_too_many(self) -> bool:
        return len(self.connections) > self._connections_max

    def connection_lost(self, exc: Exception | None) -> None:
        self._note_progress()
        self._client.close()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Feed the parser, and reject a head that is too large."""
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
        """Start to count the bytes of a request.

        Its first bytes may have arrived together with the end of the previous request.
        """
        self._held_bytes = self._held_bytes or 1
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Begin to answer, or reject a head that is too large. Bytes of the body do not count."""
        if self._held_bytes > HEAD_BYTES_MAX and self._head_bytes() > HEAD_BYTES_MAX:
            self._is_too_large = True
            raise HeadTooLarge
        self._note_progress()
        if self._is_over_limit and self._are_too_many():
            # Too many connections are open. Answer the newest of them with a 503, and close it.
            self.app = refuse_connection
        self.scope[CLIENT] = self._client  # type: ignore[literal-required]
        super().on_headers_complete()
        self.scope[ARRIVING] = self.cycle  # type: ignore[literal-required]
        self.cycle.transport = Joining(self.transport, self.loop)

    def on_body(self, body: bytes) -> None:
        self._note_progress()
        super().on_body(body)

    def on_chunk_header(self) -> None:
        """Reset the timeout and the count of buffered bytes."""
        self._note_progress()

    def on_message_complete(self) -> None:
        self._note_progress()
        super().on_message_complete()

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection, after one last read."""
        # When the process resumes after a pause, its timers run before its reads. Without this
        # delay, the connection would be closed before a request that arrived during the pause was
        # read.
        self.timeout_keep_alive_task = self.loop.call_later(
            LISTENING_S, super().timeout_keep_alive_handler
        )

    def send_400_response(self, msg: str) -> None:
        """Answer a request that the parser rejects."""
        if self._is_too_large:
            self._refuse()
        else:
            super().send_400_response(msg)

    def _head_bytes(self) -> int:
        lines = (len(name) + len(value) + SEPARATORS for name, value in self.headers)
        return len(self.url) + sum(lines)

    def _note_progress(self) -> None:
        self._held_bytes = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refuse(self) -> None:
        is_idle = not isinstance(self.cycle, RequestResponseCycle)
        if is_idle or self.cycle.response_complete:
            # If an answer is in progress, send no error, because the error would become a part of
            # that answer.
            self.transport.write(REFUSED)
        self.transport.close()

    def _give_up(self) -> None:
        # Close after one last read, as in timeout_keep_alive_handler.
        self._timer = self.loop.call_later(LISTENING_S, self.transport.close)


class Joining(asyncio.Transport):
    """A transport that sends the head of an answer together with the first part of the body.

    A separate packet for the head would double the cost. The transport has no reference to the
    answer, because only the garbage collector can free reference cycles.
    """

    __slots__ = ("_head", "_is_begun", "_loop", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._head = b""
        self._is_begun = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send data. The head of an answer is kept until the first part of the body follows."""
        if self._head:
            data, self._head = self._head + data, b""
        elif not self._is_begun and data != GO_ON:
            self._is_begun = True
            self._head = bytes(data)
            # If the body does not follow at once, send the head alone.
            self._loop.call_soon(self._send_head)
            return
        self._transport.write(data)

    def write_whole(self, data: bytes) -> None:
        """Send a whole answer, with its head and body."""
        self._is_begun = True
        self._transport.write(data)

    def _send_head(self) -> None:
        if self._head and not self.is_closing():
            self.write(b"")

    def close(self) -> None:
        self._send_head()
        self._transport.close()

    def is_closing(self) -> bool:
        return self._transport.is_closing()
