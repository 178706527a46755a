"""A follower's side: its one connection to the leader.

Always true: a request that was not sent raises :class:`NotForwarded`, so this process may carry it
out itself. A request that was sent and not answered raises :class:`Unanswered`, because the leader
may have carried it out.
"""

from __future__ import annotations

import asyncio
import hmac
from functools import partial
from pathlib import Path

import msgspec
import structlog

from innkeeper.domain.errors import Unanswered
from innkeeper.engine.callers import ClientConnection
from innkeeper.engine.leader import certificates
from innkeeper.engine.leader.addresses import PeerAddress, parsed, this_machine
from innkeeper.engine.leader.frames import (
    FRAME_MAX,
    NONCE_BYTES,
    Ask,
    Draw,
    Frames,
    Greeting,
    Reply,
    proof,
)
from innkeeper.store.leadership import Leader

LOG = structlog.get_logger("innkeeper.leader")
CONNECT_S = 2.0
AGAIN_S = 0.5
"""The pause between two attempts to connect to the same leader."""
WAITING_MAX = 10_000


class NotForwarded(Exception):
    """The request was not sent, so it was not carried out."""


class Link:
    """The connection to the current leader. Use it in one event loop only."""

    def __init__(self, version: str, secret: bytes, draw: Draw) -> None:
        self._version = version
        self._secret = secret
        self._draw = draw
        self._leader: Leader | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._frames: Frames | None = None
        self._opening: Frames | None = None
        self._greeted: asyncio.Future[Greeting] | None = None
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._number = 0

    @property
    def is_open(self) -> bool:
        """Whether requests can be forwarded now."""
        return self._frames is not None

    def follow(self, leader: Leader | None) -> None:
        """Forward to this leader from now on. Requests that wait for another one are given up."""
        self._leader = leader
        if self._connecting is not None:
            self._connecting.cancel()
            self._connecting = None
        self._drop()
        if leader is not None:
            self._connecting = asyncio.get_running_loop().create_task(self._connect(leader))

    def close(self) -> None:
        """End the connection."""
        self.follow(None)

    async def ask(self, kind: str, payload: bytes, client: ClientConnection | None = None) -> bytes:
        """Have the leader carry out a request, and return its answer.

        If the ``client`` leaves, the leader drops the request, unless it has already begun.
        Raises :class:`NotForwarded`, or :class:`Unanswered`.
        """
        frames = self._frames
        if frames is None or len(self._waiting) >= WAITING_MAX:
            raise NotForwarded
        self._number += 1
        number = self._number
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        frames.send(Ask(number, kind, payload))
        if client is not None:
            client.on_close = partial(frames.send, Ask(number))
        try:
            return await future
        finally:
            self._waiting.pop(number, None)
            if client is not None:
                client.on_close = None

    async def _connect(self, leader: Leader) -> None:
        address = parsed(leader.address)
        while address is not None:
            try:
                async with asyncio.timeout(CONNECT_S):
                    await self._open(address)
            except (OSError, TimeoutError, ValueError) as error:
                LOG.info("leader_not_reached", term=leader.term, error=str(error))
            else:
                return
            await asyncio.sleep(AGAIN_S)

    async def _open(self, address: PeerAddress) -> None:
        loop = asyncio.get_running_loop()
        self._greeted = loop.create_future()
        frames = self._opening = Frames(lambda _: None, self._received, self._lost)
        is_trusted = False
        try:
            await self._dial(frames, address)
            await self._greet(frames, address)
            is_trusted = True
        finally:
            self._opening, self._greeted = None, None
            if not is_trusted:
                frames.abort()
        frames.bytes_max = FRAME_MAX
        self._frames = frames

    async def _greet(self, frames: Frames, address: PeerAddress) -> None:
        """Prove to the leader who this process is, and let the leader prove the same."""
        channel = frames.certificate_digest()
        if channel.hex() != (address.certificate if channel else ""):
            raise ValueError("another certificate than the leader's")
        greeting = await self._next_greeting()
        if greeting.version != self._version:
            raise ValueError(f"the leader runs version {greeting.version}")
        nonce = self._draw(NONCE_BYTES)
        mine = proof(self._secret, b"client", greeting.nonce, channel)
        frames.send(Greeting(self._version, nonce, mine))
        shown = await self._next_greeting()
        wanted = proof(self._secret, b"server", nonce, channel)
        if not hmac.compare_digest(shown.proof, wanted):
            raise ValueError("it does not know the secret")

    async def _next_greeting(self) -> Greeting:
        assert self._greeted is not None
        greeting = await self._greeted
        self._greeted = asyncio.get_running_loop().create_future()
        return greeting

    async def _dial(self, frames: Frames, address: PeerAddress) -> None:
        loop = asyncio.get_running_loop()
        is_here = address.machine == this_machine() and bool(address.path)
        if is_here and Path(address.path).exists():
            await loop.create_unix_connection(lambda: frames, address.path)
        elif address.host:
            context = certificates.client_context()
            await loop.create_connection(
                lambda: frames, address.host, address.port, ssl=context, server_hostname=""
            )
        else:
            raise OSError("The leader has no address that this machine can reach.")

    def _received(self, frames: Frames, frame: bytes) -> None:
        if frames is not self._frames:
            if self._greeted is not None and not self._greeted.done():
                self._greeted.set_result(msgspec.msgpack.decode(frame, type=Greeting))
            return
        reply = msgspec.msgpack.decode(frame, type=Reply)
        future = self._waiting.get(reply.number)
        if future is None or future.done():
            return
        if reply.payload is None:
            future.set_exception(Unanswered())
        else:
            future.set_result(reply.payload)

    def _lost(self, frames: Frames) -> None:
        if frames is self._opening and self._greeted is not None and not self._greeted.done():
            self._greeted.set_exception(OSError("The leader closed the connection."))
        if frames is not self._frames:
            return
        self._drop()
        if self._leader is not None:
            self._connecting = asyncio.get_running_loop().create_task(self._connect(self._leader))

    def _drop(self) -> None:
        """Forget the connection, and give up the requests that wait for its answers."""
        frames, self._frames = self._frames, None
        if frames is not None:
            frames.abort()
        waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            if not future.done():
                future.set_exception(Unanswered())
