"""HTTP exchanges with services that may be slow, broken or hostile.

Always true: an exchange ends even if the server does not respond or sends data forever. One timeout
covers everything from the first byte of the request to the last byte of the response, however often
single bytes arrive. Responses of more than :data:`BODY_BYTES_MAX` bytes are refused. Compressed
responses are refused too, because a short one can decompress to any length.
"""

from __future__ import annotations

import math
import ssl
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import httpcore
import httpx

BODY_BYTES_MAX = 256 * 2**20
"""The maximum size of a response. It is enough for several hundred thousand providers, the longest
list that is read."""
WRITE_BYTES = 65536
"""A request is sent in pieces of this size, and the timeout is checked after each piece."""
KEPT_OPEN_S = 5.0
"""How long an idle connection is kept."""
PLAIN = "identity"
CONTENT_ENCODING = b"content-encoding"
REFUSED = 300
"""From this status on, the body of a response only explains a failure. So it is no error if this
body is unreadable."""


class Broken(Exception):
    """There was no response, or the response was incomplete. A retry may succeed."""


class Unfit(Exception):
    """The address cannot be called, or the response cannot be used. A retry would not help."""


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A complete response."""

    status: int
    reason: str
    body: bytearray


class Wire:
    """Connections to one service, for any number of threads.

    ``clock`` returns monotonic seconds.
    """

    def __init__(
        self,
        *,
        timeout_s: float,
        connections_max: int,
        trusted: ssl.SSLContext,
        clock: Callable[[], float],
    ) -> None:
        self._timeout_s = timeout_s
        self._limit = _Limit(clock)
        self._connections = httpcore.ConnectionPool(
            ssl_context=trusted,
            max_connections=connections_max,
            max_keepalive_connections=connections_max,
            keepalive_expiry=KEPT_OPEN_S,
            network_backend=_Network(self._limit),
        )

    def exchange(
        self, method: str, address: str, headers: Mapping[str, str], body: bytes | None
    ) -> HttpResponse:
        """Send a request and read the whole response.

        Raises :class:`Broken` if a retry may help, and :class:`Unfit` otherwise.
        """
        url = _parsed(address)
        sent = {
            **headers,
            "host": url.netloc.decode("ascii"),
            "accept-encoding": PLAIN,
            "user-agent": "innkeeper",
        }
        self._limit.begin(self._timeout_s)
        try:
            with self._connections.stream(
                method,
                httpcore.URL(
                    scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
                ),
                headers=list(sent.items()),
                content=body,
                extensions={"timeout": {"pool": self._timeout_s}},
            ) as answer:
                return self._read(answer)
        except httpcore.ProtocolError as error:
            # The error's own message quotes the request.
            raise Broken("the connection was closed early, or the response is not HTTP") from error
        except (httpcore.TimeoutException, httpcore.NetworkError, OSError) as error:
            raise Broken(str(error) or type(error).__name__) from error
        except httpcore.UnsupportedProtocol as error:
            raise Unfit(f"{address} is not an http or https URL") from error

    def close(self) -> None:
        """Close the connections."""
        self._connections.close()

    def _read(self, answer: httpcore.Response) -> HttpResponse:
        if answer.status < REFUSED and _is_packed(answer):
            raise Unfit("the response is compressed, although the request did not allow that")
        body = bytearray()
        try:
            for piece in answer.iter_stream():
                if len(body) + len(piece) > BODY_BYTES_MAX:
                    raise Unfit(f"the response has more than {BODY_BYTES_MAX} bytes")
                body += piece
        except httpcore.TimeoutException as error:
            # A retry would be just as slow, so it is not tried.
            raise Unfit(
                f"the response was not complete after {self._timeout_s:g} seconds"
            ) from error
        reason = answer.extensions.get("reason_phrase", b"").decode("ascii", errors="replace")
        return HttpResponse(answer.status, reason, body)


def _parsed(address: str) -> httpx.URL:
    try:
        return httpx.URL(address)
    except httpx.InvalidURL as error:
        raise Unfit(f"{address} is not a valid URL: {error}") from error


def _is_packed(answer: httpcore.Response) -> bool:
    packings = [value for name, value in answer.headers if name.lower() == CONTENT_ENCODING]
    return any(value.strip().lower() != PLAIN.encode() for value in packings)


class _Limit(threading.local):
    """The deadline of the calling thread's current exchange."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._at = math.inf

    def begin(self, timeout_s: float) -> None:
        self._at = self._clock() + timeout_s

    def left_s(self) -> float:
        left_s = self._at - self._clock()
        if left_s <= 0:
            raise httpcore.ReadTimeout("timed out")
        return left_s


class _Network(httpcore.NetworkBackend):
    """Connections that give each step only the time that remains for the exchange."""

    def __init__(self, limit: _Limit) -> None:
        self._limit = limit
        self._sockets = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        stream = self._sockets.connect_tcp(
            host, port, self._limit.left_s(), local_address, socket_options
        )
        return _Stream(stream, self._limit)


class _Stream(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream, limit: _Limit) -> None:
        self._stream = stream
        self._limit = limit

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._limit.left_s())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), WRITE_BYTES):
            self._stream.write(buffer[start : start + WRITE_BYTES], self._limit.left_s())

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        stream = self._stream.start_tls(ssl_context, server_hostname, self._limit.left_s())
        return _Stream(stream, self._limit)

    def _fact(self, name: str) -> object:
        return self._stream.get_extra_info(name)

    # httpcore calls this, for example to ask whether the server has closed the connection.
    get_extra_info: Callable[..., object] = _fact
