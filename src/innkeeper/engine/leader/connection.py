"""A follower's connection to one leader, and the requests that wait for its answers.

Always true: each request has one of three outcomes. It gets an answer. Or it raises
:class:`NotForwarded`, and was certainly not carried out. Or it raises :class:`Unanswered`, and may
have been carried out.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec
import structlog

from innkeeper.domain.errors import Unanswered
from innkeeper.engine.callers import ClientConnection
from innkeeper.engine.leader import certificates
from innkeeper.engine.leader.addresses import PeerAddress, this_machine
from innkeeper.engine.leader.frames import (
    FRAME_MAX,
    NONCE_BYTES,
    Ask,
    Cancel,
    Decline,
    Draw,
    Frames,
    Greeting,
    Ping,
    Reply,
    proof,
)

LOG = structlog.get_logger("innkeeper.leader")
WAITING_MAX = 10_000
PINGS_MAX = 5
"""After this many pings without an answer, the connection is given up. This check is needed because
a leader that this process cannot reach may still renew its term in the database. Pings are counted
instead of seconds, because this process itself may be suspended for a time."""
_RECEIVED = msgspec.msgpack.Decoder(Reply | Decline | Ping | Greeting)


class NotForwarded(Exception):
    """The request was not carried out, and the leader will not carry it out."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity of a process: its ``version``, and the ``secret`` that it proves to know."""

    version: str
    secret: bytes
    draw: Draw


@dataclass(frozen=True, slots=True)
class LinkLimits:
    """The limits of connections between processes, for both sides.

    A follower pings every ``ping_s`` seconds. Requests and answers have at most ``payload_max``
    bytes. A process that has not proved its identity after ``greet_within_s`` seconds is
    disconnected. At most ``strangers_max`` connections at once may be without such a proof. This
    number is smaller than the number of open files that the service keeps in reserve.
    """

    ping_s: float = 1.0
    payload_max: int = FRAME_MAX - 1024
    greet_within_s: float = 5.0
    strangers_max: int = 64


USUAL = LinkLimits()


class LeaderConnection:
    """A connection to the leader. It can be opened only once.

    ``on_lost`` is called when an opened connection ends.
    """

    def __init__(
        self,
        identity: Identity,
        on_lost: Callable[[LeaderConnection], None],
        limits: LinkLimits = USUAL,
    ) -> None:
        self._identity = identity
        self._limits = limits
        self._on_lost = on_lost
        self._frames = Frames(lambda _: None, self._received, self._lost)
        self._greeting: asyncio.Future[Greeting] | None = None
        self._watch: asyncio.Task[None] | None = None
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._number = 0
        self._is_retiring = False

    async def open(self, address: PeerAddress) -> None:
        """Connect, and let both sides prove their identity.

        Raises :class:`OSError` or :class:`ValueError` with the reason.
        """
        self._greeting = asyncio.get_running_loop().create_future()
        with ExitStack() as unless_proven:
            # This also runs if the caller's timeout ends the attempt.
            unless_proven.callback(self._frames.abort)
            try:
                await self._dial(address)
                await self._greet(address)
            finally:
                self._greeting = None
            unless_proven.pop_all()
        self._frames.bytes_max = FRAME_MAX
        self._watch = asyncio.get_running_loop().create_task(self._watched())

    async def ask(self, kind: str, payload: bytes, client: ClientConnection | None) -> bytes:
        """See :meth:`innkeeper.engine.leader.link.Link.ask`."""
        is_small = len(payload) <= self._limits.payload_max
        if self._watch is None or not is_small or len(self._waiting) >= WAITING_MAX:
            raise NotForwarded
        self._number += 1
        number = self._number
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        self._frames.send(Ask(number, kind, payload))
        if client is not None:
            client.on_close = partial(self._frames.send, Cancel(number))
            if client.is_closed:
                client.on_close()
        try:
            return await future
        finally:
            self._waiting.pop(number, None)
            if client is not None:
                client.on_close = None
            self._end_if_done()

    def retire(self) -> None:
        """End the connection as soon as no request waits for an answer."""
        self._is_retiring = True
        self._end_if_done()

    def abort(self) -> None:
        """End the connection at once."""
        self._frames.abort()

    def _end_if_done(self) -> None:
        if self._is_retiring and not self._waiting:
            self._frames.close()

    async def _watched(self) -> None:
        """Send pings, and end the connection if the leader stays silent."""
        heard, pings = 0, 0
        while pings < PINGS_MAX:
            self._frames.send(Ping())
            await asyncio.sleep(self._limits.ping_s)
            pings = pings + 1 if self._frames.heard == heard else 0
            heard = self._frames.heard
        LOG.warning("leader_silent", pings=pings, unanswered=len(self._waiting))
        self._frames.abort()

    async def _dial(self, address: PeerAddress) -> None:
        loop = asyncio.get_running_loop()
        if address.machine == this_machine() and address.path and _exists(address.path):
            await loop.create_unix_connection(lambda: self._frames, address.path)
        elif address.host:
            context = certificates.client_context()
            await loop.create_connection(
                lambda: self._frames, address.host, address.port, ssl=context, server_hostname=""
            )
        elif address.machine == this_machine():
            raise OSError("The leader has ended, or its socket belongs to another user.")
        else:
            raise OSError("The leader is on another machine, and listens only on its own machine.")

    async def _greet(self, address: PeerAddress) -> None:
        """Prove to the leader that this process knows the secret, and check the leader's proof."""
        identity, frames = self._identity, self._frames
        channel = frames.certificate_digest()
        if channel.hex() != (address.certificate if channel else ""):
            raise ValueError("The leader's certificate does not match the digest in its row.")
        greeting = await self._next_greeting()
        if greeting.version != identity.version:
            raise ValueError(f"The leader runs version {greeting.version}.")
        nonce = identity.draw(NONCE_BYTES)
        mine = proof(identity.secret, b"client", greeting.nonce, channel)
        frames.send(Greeting(identity.version, nonce, mine))
        shown = await self._next_greeting()
        wanted = proof(identity.secret, b"server", nonce, channel)
        if not hmac.compare_digest(shown.proof, wanted):
            raise ValueError("The leader did not prove that it knows the secret.")

    async def _next_greeting(self) -> Greeting:
        assert self._greeting is not None
        greeting = await self._greeting
        self._greeting = asyncio.get_running_loop().create_future()
        return greeting

    def _received(self, _: Frames, frame: bytes) -> None:
        message = _RECEIVED.decode(frame)
        if isinstance(message, Greeting):
            if self._greeting is not None and not self._greeting.done():
                self._greeting.set_result(message)
        elif not isinstance(message, Ping):
            future = self._waiting.get(message.number)
            if future is None or future.done():
                return
            if isinstance(message, Decline):
                future.set_exception(NotForwarded())
            elif message.payload is None:
                future.set_exception(Unanswered())
            else:
                future.set_result(message.payload)

    def _lost(self, _: Frames) -> None:
        if self._greeting is not None and not self._greeting.done():
            self._greeting.set_exception(OSError("The leader closed the connection."))
        if self._watch is None:
            return
        self._watch.cancel()
        self._watch = None
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(Unanswered())
        self._on_lost(self)


def _exists(path: str) -> bool:
    """Return whether this user can see a socket at this path."""
    try:
        return Path(path).exists()
    except OSError:
        return False
