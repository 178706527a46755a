"""HTTP/1.1 over connections that stay open, to services that this service calls often.

Always true: an answer is read up to its maximum size and no further. Redirects are not followed. A
connection is used again only after an answer that arrived whole. The caller limits the time of a
request, and the number of requests at once.

This client is used often: once per child zone for each planned boot, and once for each user's
request that the door (the gateway to pods) forwards to a pod. So it must use little CPU time.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Protocol, cast
from urllib.parse import urlsplit

import httptools

from innkeeper.clients.certificates import trust_of

ANSWER_BYTES_MAX = 16 * 2**20
"""The maximum size of an answer. A page of a thousand servers has a few megabytes."""
HEAD_BYTES_MAX = 64 * 2**10
READ_BYTES = 128 * 2**10
"""The size of the read buffer of each connection."""
KEPT_OPEN_S = 4.0
"""The time for which an idle connection is kept. It is shorter than the time after which servers
close idle connections, which is often five seconds."""
LENGTHS = frozenset({"content-length", "transfer-encoding"})
"""The headers that say where the answer ends. Without them, the answer ends when the connection is
closed."""


@dataclass(frozen=True, slots=True)
class WireRequest:
    """A request to send: the whole URL, and all headers except the length of the body."""

    method: str
    url: str
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    answer_bytes_max: int = ANSWER_BYTES_MAX


@dataclass(frozen=True, slots=True)
class WireAnswer:
    """An answer with any status below 600. The names of its headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class NotSent(Exception):
    """The request certainly did not reach the service."""


class NoAnswer(Exception):
    """The service may have received the request, but no whole answer has arrived."""


class AnswerTooLarge(NoAnswer):
    """The answer has more bytes than the request allows."""


class ServiceWire(Protocol):
    """Carries requests to services. ``owner`` is the id of the service that is asked."""

    async def exchange(self, owner: str, wanted: WireRequest) -> WireAnswer:
        """Send a request, and return the whole answer.

        Raises :class:`NotSent`, :class:`NoAnswer`, and :class:`AnswerTooLarge`.
        """

    async def forget(self, owner: str) -> None:
        """Close the connections to one service."""

    async def close(self) -> None:
        """Close all connections."""


class KeptConnections:
    """Keeps connections open between requests; see :class:`ServiceWire`."""

    def __init__(self, trusted: ssl.SSLContext | None = None) -> None:
        # The CA bundle is read at the first use, because most of these objects never send anything.
        self._trusted = trusted
        self._idle: dict[str, list[_Connection]] = {}

    async def exchange(self, owner: str, wanted: WireRequest) -> WireAnswer:
        """Send a request, and return the whole answer.

        Raises :class:`NotSent`, :class:`NoAnswer`, and :class:`AnswerTooLarge`.
        """
        parts = urlsplit(wanted.url)
        head = _head(wanted, parts.path + (f"?{parts.query}" if parts.query else ""))
        origin = f"{parts.scheme}://{parts.netloc}"
        connection = self._kept(owner, origin) or await self._opened(origin)
        is_kept = False
        try:
            answer, is_kept = await connection.ask(wanted, head)
        except (OSError, EOFError, httptools.HttpParserError) as error:
            raise NoAnswer(_words(error)) from error
        finally:
            # The time may be over in the middle of an answer.
            if not is_kept:
                connection.close()
        connection.kept_until_s = asyncio.get_running_loop().time() + KEPT_OPEN_S
        self._idle.setdefault(owner, []).append(connection)
        return answer

    def _kept(self, owner: str, origin: str) -> _Connection | None:
        """Return a kept connection that is still usable, and close the unusable connections."""
        kept, now_s = self._idle.get(owner, []), asyncio.get_running_loop().time()
        while kept:
            found = kept.pop()
            if found.origin == origin and now_s < found.kept_until_s and not found.has_ended:
                return found
            found.close()
        return None

    async def _opened(self, origin: str) -> _Connection:
        parts = urlsplit(origin)
        is_secure = parts.scheme == "https"
        port = parts.port or (443 if is_secure else 80)
        trusted = self._trust() if is_secure else None
        made = _Connection(origin)
        try:
            await asyncio.get_running_loop().create_connection(
                lambda: made, parts.hostname or "", port, ssl=trusted
            )
        except (OSError, UnicodeError) as error:
            raise NotSent(_words(error)) from error
        return made

    def _trust(self) -> ssl.SSLContext:
        if self._trusted is None:
            self._trusted = trust_of(None, None, None)
        return self._trusted

    async def forget(self, owner: str) -> None:
        """Close the connections to one service."""
        for connection in self._idle.pop(owner, []):
            connection.close()

    async def close(self) -> None:
        """Close all connections."""
        for kept in self._idle.values():
            for connection in kept:
                connection.close()
        self._idle.clear()


class _Connection(asyncio.BufferedProtocol):
    """A connection that carries one request at a time, and parses received bytes at once."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.kept_until_s = 0.0
        self.has_ended = False
        self._transport: asyncio.Transport | None = None
        self._coming: _Coming | None = None
        self._buffer = memoryview(bytearray(READ_BYTES))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Transports of other event loops need not be of asyncio's class.
        self._transport = cast("asyncio.Transport", transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        if self._coming is None:
            # These bytes answer no request. They could be mistaken for the next answer.
            self.close()
        else:
            self._coming.feed(self._buffer[:nbytes])

    def connection_lost(self, exc: Exception | None) -> None:
        self.has_ended = True
        if self._coming is not None:
            self._coming.end(exc)

    def close(self) -> None:
        self.has_ended = True
        if self._transport is not None:
            self._transport.close()

    async def ask(self, wanted: WireRequest, head: bytes) -> tuple[WireAnswer, bool]:
        """Send a request; returns the answer, and whether the connection may be used again."""
        if self.has_ended or self._transport is None:
            raise EOFError("the connection was closed")
        whole = asyncio.get_running_loop().create_future()
        coming = _Coming(wanted.method != "HEAD", wanted.answer_bytes_max, whole)
        self._coming = coming
        self._transport.write(head + wanted.body)
        try:
            await whole
        finally:
            self._coming = None
        return coming.answer(), coming.is_kept and not self.has_ended


@dataclass(slots=True)
class _Coming:
    """An answer that is being received."""

    has_body: bool
    bytes_max: int
    whole: asyncio.Future[None]
    """Ends when the answer is whole, or when it is certain that no whole answer will arrive."""
    parser: Any = field(init=False)
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    pieces: list[bytes] = field(default_factory=list)
    body_bytes: int = 0
    head_bytes: int = 0
    has_head: bool = False
    is_whole: bool = False
    is_kept: bool = False

    def __post_init__(self) -> None:
        self.parser = httptools.HttpResponseParser(self)

    def feed(self, piece: memoryview) -> None:
        """Parse received bytes. The parser copies them."""
        try:
            self.parser.feed_data(piece)
            if self.body_bytes > self.bytes_max:
                raise AnswerTooLarge(f"the answer has more than {self.bytes_max} bytes")
        except (httptools.HttpParserError, AnswerTooLarge) as error:
            self._fail(error)
        else:
            if self.is_whole and not self.whole.done():
                self.whole.set_result(None)

    def end(self, error: Exception | None) -> None:
        """Note that the connection ended. This also ends an answer without a length."""
        is_cut = not self.has_head or not LENGTHS.isdisjoint(self.headers)
        if error is not None or is_cut:
            self._fail(error or EOFError("the answer is incomplete"))
        elif not self.whole.done():
            self.is_whole = True
            self.whole.set_result(None)

    def _fail(self, error: Exception) -> None:
        if not self.whole.done():
            self.whole.set_exception(error)

    def on_message_begin(self) -> None:
        if self.is_whole:
            raise httptools.HttpParserError("the service sent an answer without a request")

    def on_header(self, name: bytes, value: bytes) -> None:
        self.head_bytes += len(name) + len(value)
        if self.head_bytes > HEAD_BYTES_MAX:
            raise httptools.HttpParserError("the headers are too large")
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self.status = self.parser.get_status_code()
        self.has_head = True
        if not self.has_body:
            self.is_whole = True

    def on_body(self, piece: bytes) -> None:
        if not self.is_whole:
            self.pieces.append(piece)
            self.body_bytes += len(piece)

    def on_message_complete(self) -> None:
        if self.status < HTTPStatus.OK:
            # The real answer follows.
            self.headers, self.has_head = {}, False
            return
        self.is_whole = True
        self.is_kept = self.has_body and self.parser.should_keep_alive()

    def answer(self) -> WireAnswer:
        # The parser and this object refer to each other, and must not keep a large body alive.
        self.parser, pieces = None, self.pieces
        self.pieces = []
        return WireAnswer(self.status, self.headers, b"".join(pieces))


def _head(wanted: WireRequest, target: str) -> bytes:
    """Return the head of a request. Raises :class:`NotSent` if it would be invalid."""
    try:
        lines = [f"{wanted.method} {target} HTTP/1.1".encode("ascii")]
    except UnicodeError as error:
        raise NotSent("the target is not ASCII") from error
    lines += [name + b": " + text for name, text in wanted.headers]
    lines.append(b"content-length: %d" % len(wanted.body))
    # A line end inside a header would add another header.
    whole = b"\n".join(lines)
    if " " in target or whole.count(b"\n") >= len(lines) or b"\r" in whole or b"\0" in whole:
        raise NotSent("the request has characters that cannot be sent")
    return b"\r\n".join(lines) + b"\r\n\r\n"


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__
