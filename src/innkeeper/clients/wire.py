"""Sends requests over HTTP to services that may be slow, broken or hostile.

Always true: an exchange ends, whatever the other side does. From the first byte of a request to
the last of its answer there is one time limit, in which single bytes now and then count as
little as silence; and no more than :data:`BODY_BYTES_MAX` of an answer are kept. Answers are
asked for as they are and refused if they are packed, so none grows when it is unpacked.
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
"""Room for the rows of some hundred thousand providers, which is the longest list asked for."""
WRITE_BYTES = 65536
"""After each piece of a request of this size the time is looked at."""
KEPT_OPEN_S = 5.0
"""How long a connection is kept for the next request."""
PLAIN = "identity"
CONTENT_ENCODING = b"content-encoding"
REFUSED = 300
"""From this status on a body only explains, and what cannot be read is not missed."""


class Broken(Exception):
    """There was no answer, or it broke off. It may be there the next time."""


class Unfit(Exception):
    """There is nothing to be asked there, or the answer is one that nobody can take."""


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """One whole answer."""

    status: int
    reason: str
    body: bytearray


class Wire:
    """Connections to one service. Any number of threads may use them at once.

    ``clock`` gives seconds that only ever grow.
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
        """Send a request and take its whole answer.

        Raises :class:`Broken` where trying again may help, and :class:`Unfit` elsewhere.
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
                return self._taken(answer)
        except httpcore.ProtocolError as error:
            # In its own words it quotes what it was sent.
            raise Broken("the connection broke off, or it is not HTTP that answers") from error
        except (httpcore.TimeoutException, httpcore.NetworkError, OSError) as error:
            raise Broken(str(error) or type(error).__name__) from error
        except httpcore.UnsupportedProtocol as error:
            raise Unfit(f"{address} is no http or https address") from error

    def close(self) -> None:
        """Let go of the connections."""
        self._connections.close()

    def _taken(self, answer: httpcore.Response) -> HttpResponse:
        if answer.status < REFUSED and _is_packed(answer):
            raise Unfit("the answer is packed, though it was asked for as it is")
        body = bytearray()
        try:
            for piece in answer.iter_stream():
                if len(body) + len(piece) > BODY_BYTES_MAX:
                    raise Unfit(f"the answer has more than {BODY_BYTES_MAX} bytes")
                body += piece
        except httpcore.TimeoutException as error:
            # What was so slow once will be so again.
            raise Unfit(
                f"the answer was not there as a whole after {self._timeout_s:g} seconds"
            ) from error
        reason = answer.extensions.get("reason_phrase", b"").decode("ascii", errors="replace")
        return HttpResponse(answer.status, reason, body)


def _parsed(address: str) -> httpx.URL:
    try:
        return httpx.URL(address)
    except httpx.InvalidURL as error:
        raise Unfit(f"{address} is no address: {error}") from error


def _is_packed(answer: httpcore.Response) -> bool:
    packings = [value for name, value in answer.headers if name.lower() == CONTENT_ENCODING]
    return any(value.strip().lower() != PLAIN.encode() for value in packings)


class _Limit(threading.local):
    """Until when the exchange may last that the calling thread is at."""

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
    """Connections on which each step may take what is left of the time for the whole."""

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

    # What a connection asks its stream by this name, such as whether the other side is gone.
    get_extra_info: Callable[..., object] = _fact
