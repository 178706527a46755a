"""Messages between two processes of one database, as frames on a stream.

A frame is a length in four bytes, followed by that number of bytes of MessagePack. First, both
sides prove that they know the secret of the database's processes. Nothing else is read before that.
Frames that are sent in one turn of the event loop are written to the connection together.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import struct
from collections.abc import Callable
from typing import cast

import msgspec

FRAME_MAX = 64 * 1024 * 1024
"""The maximum size of a frame in bytes. A larger frame closes the connection."""
GREETING_MAX = 1024
"""The maximum size of a frame in bytes before both sides have proved that they know the secret."""
NONCE_BYTES = 32
_LENGTH = struct.Struct(">I")

Draw = Callable[[int], bytes]
"""A function that returns the requested number of unpredictable bytes."""


class Ask(msgspec.Struct, array_like=True, frozen=True, tag=1):
    """A numbered request."""

    number: int
    kind: str
    payload: bytes


class Cancel(msgspec.Struct, array_like=True, frozen=True, tag=2):
    """The client of a request has left."""

    number: int


class Reply(msgspec.Struct, array_like=True, frozen=True, tag=3):
    """The answer to one request. Without a ``payload``, the outcome of the request is unknown."""

    number: int
    payload: bytes | None


class Decline(msgspec.Struct, array_like=True, frozen=True, tag=4):
    """The leader has not carried out a request, and will not do so."""

    number: int


class Ping(msgspec.Struct, array_like=True, frozen=True, tag=5):
    """Asks the leader to send the same message back, as a sign of life."""


class Greeting(msgspec.Struct, array_like=True, frozen=True, tag=6):
    """The first frame of each side: the program's version and a random number.

    The client's greeting also has a proof that the client knows the secret. The server then sends a
    second greeting with a proof of its own.
    """

    version: str
    nonce: bytes
    proof: bytes = b""


Message = Ask | Cancel | Reply | Decline | Ping | Greeting


def proof(secret: bytes, side: bytes, nonce: bytes, channel: bytes) -> bytes:
    """Return a proof that ``side`` knows the secret. ``nonce`` is a random number that the other
    side has drawn.

    ``channel`` is the digest of the server's certificate, or empty on a Unix socket. So a proof for
    one connection is worthless on a connection to another server. Raises :class:`ValueError` if the
    nonce has a wrong length.
    """
    if len(nonce) != NONCE_BYTES:
        raise ValueError("the nonce has a wrong length")
    text = b"innkeeper leader 2\x00" + side + b"\x00" + nonce + channel
    return hmac.new(secret, text, hashlib.sha256).digest()


class Frames(asyncio.Protocol):
    """Reads and writes frames on one connection.

    ``on_open``, ``on_frame`` and ``on_close`` are called in the event loop. If ``on_frame`` raises
    an error, the connection is closed. Frames that arrive after that are ignored. ``heard``
    increases whenever the other side sends something.
    """

    def __init__(
        self,
        on_open: Callable[[Frames], None],
        on_frame: Callable[[Frames, bytes], None],
        on_close: Callable[[Frames], None],
    ) -> None:
        self._on_open = on_open
        self._on_frame = on_frame
        self._on_close = on_close
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._leaving: list[bytes] = []
        self._is_closing = False
        self.bytes_max = GREETING_MAX
        self.heard = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See :class:`asyncio.Protocol`."""
        # The transports of uvloop do not inherit from those of asyncio.
        self._transport = cast("asyncio.Transport", transport)
        self._on_open(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """See :class:`asyncio.Protocol`."""
        del exc
        self._is_closing = True
        self._transport = None
        self._on_close(self)

    def data_received(self, received: bytes) -> None:
        """See :class:`asyncio.Protocol`."""
        self.heard += 1
        buffer = self._buffer
        buffer += received
        start = 0
        while len(buffer) - start >= _LENGTH.size and not self._is_closing:
            (length,) = _LENGTH.unpack_from(buffer, start)
            end = start + _LENGTH.size + length
            if length > self.bytes_max:
                self.close()
                return
            if end > len(buffer):
                break
            try:
                self._on_frame(self, bytes(buffer[start + _LENGTH.size : end]))
            except (msgspec.MsgspecError, ValueError):
                self.close()
                return
            start = end
        del buffer[:start]

    def send(self, message: Message) -> None:
        """Send a message in the next turn of the event loop.

        A closed connection drops the message.
        """
        frame = msgspec.msgpack.encode(message)
        if not self._leaving:
            asyncio.get_running_loop().call_soon(self._flush)
        self._leaving += (_LENGTH.pack(len(frame)), frame)

    def _flush(self) -> None:
        leaving, self._leaving = self._leaving, []
        if self._transport is not None:
            self._transport.write(b"".join(leaving))

    def other_side(self) -> str:
        """Return the address of the other side, or an empty text on a Unix socket."""
        name = None if self._transport is None else self._transport.get_extra_info("peername")
        return f"{name[0]}:{name[1]}" if isinstance(name, tuple) else ""

    def certificate_digest(self) -> bytes:
        """Return the digest of the other side's certificate, or empty bytes without TLS."""
        tls = None if self._transport is None else self._transport.get_extra_info("ssl_object")
        certificate = None if tls is None else tls.getpeercert(binary_form=True)
        return b"" if certificate is None else hashlib.sha256(certificate).digest()

    def close(self) -> None:
        """Close the connection after all sent messages have left."""
        self._is_closing = True
        if self._transport is not None:
            self._flush()
            self._transport.close()

    def abort(self) -> None:
        """Close the connection at once."""
        self._is_closing = True
        if self._transport is not None:
            self._transport.abort()
