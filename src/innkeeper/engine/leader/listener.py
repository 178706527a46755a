"""The leader's side: it answers the requests that other processes forward.

Always true: a request is carried out only for a process that has proved that it knows the secret of
the database's processes, and runs the same version of the program. If a connection ends, the
clients of its requests count as gone: what has not begun is not carried out.

Every process listens from its start, since each may become the leader.
"""

from __future__ import annotations

import asyncio
import hmac
import os
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
import structlog

from innkeeper.engine.callers import ClientConnection
from innkeeper.engine.leader.frames import (
    FRAME_MAX,
    NONCE_BYTES,
    PING,
    Ask,
    Draw,
    Frames,
    Greeting,
    Reply,
    proof,
)

LOG = structlog.get_logger("innkeeper.leader")
PRIVATE, PRIVATE_FOLDER = 0o600, 0o700
DRAIN_S = 30.0
"""How long a stopping process waits for the forwarded requests in progress."""

GREET_WITHIN_S = 5.0
"""A process that has not proved itself by then is cut off."""

Handler = Callable[[bytes, ClientConnection], Awaitable[bytes]]
"""Carries out one kind of request. It must not raise. The connection is the client's."""


@dataclass(frozen=True, slots=True)
class _Running:
    """One request in progress."""

    client: ClientConnection
    task: asyncio.Task[None]


class _Peer:
    """One connection, and the requests in progress on it."""

    def __init__(self, frames: Frames, channel: bytes, nonce: bytes) -> None:
        self.frames = frames
        self.channel = channel
        self.nonce = nonce
        self.is_trusted = False
        self.running: dict[int, _Running] = {}


class PeerListener:
    """Listens on a Unix socket, and with TLS on an address if other machines take part."""

    def __init__(
        self, version: str, secret: bytes, draw: Draw, handlers: Mapping[str, Handler]
    ) -> None:
        """``handlers`` may be filled until the first request comes."""
        self._version = version
        self._secret = secret
        self._draw = draw
        self._handlers = handlers
        self._servers: list[asyncio.Server] = []
        self._path: Path | None = None
        self._peers: dict[Frames, _Peer] = {}

    async def listen_on_path(self, path: Path) -> None:
        """Listen on a Unix socket, which only this user can open."""
        path.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        loop = asyncio.get_running_loop()
        self._servers.append(await loop.create_unix_server(self._frames(b""), str(path)))
        path.chmod(PRIVATE)
        self._path = path

    async def listen_on_port(
        self, host: str, ports: range, context: ssl.SSLContext, digest: bytes
    ) -> int:
        """Listen with TLS on the first free port, and return it. Raises :class:`OSError`."""
        loop = asyncio.get_running_loop()
        for port in ports:
            try:
                server = await loop.create_server(self._frames(digest), host, port, ssl=context)
            except OSError:
                if port == ports[-1]:
                    raise
                continue
            self._servers.append(server)
            return int(server.sockets[0].getsockname()[1])
        raise AssertionError("there is at least one port")

    async def close(self) -> None:
        """Accept no more connections, finish the requests in progress, and end."""
        for server in self._servers:
            server.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)
        running = [each.task for peer in self._peers.values() for each in peer.running.values()]
        if running:
            await asyncio.wait(running, timeout=DRAIN_S)
        for frames in list(self._peers):
            frames.close()

    def _frames(self, channel: bytes) -> Callable[[], Frames]:
        def opened(frames: Frames) -> None:
            peer = self._peers[frames] = _Peer(frames, channel, self._draw(NONCE_BYTES))
            frames.send(Greeting(self._version, peer.nonce))
            asyncio.get_running_loop().call_later(GREET_WITHIN_S, _close_stranger, peer)

        return lambda: Frames(opened, self._received, self._closed)

    def _closed(self, frames: Frames) -> None:
        peer = self._peers.pop(frames, None)
        if peer is not None:
            for each in peer.running.values():
                each.client.close()

    def _received(self, frames: Frames, frame: bytes) -> None:
        peer = self._peers[frames]
        if not peer.is_trusted:
            self._greeted(peer, msgspec.msgpack.decode(frame, type=Greeting))
            return
        ask = msgspec.msgpack.decode(frame, type=Ask)
        if not ask.kind:
            abandoned = peer.running.get(ask.number)
            if abandoned is not None:
                abandoned.client.close()
            return
        if ask.kind == PING:
            frames.send(Reply(ask.number, b""))
            return
        client = ClientConnection()
        task = asyncio.get_running_loop().create_task(self._carry_out(peer, ask, client))
        peer.running[ask.number] = _Running(client, task)

    def _greeted(self, peer: _Peer, greeting: Greeting) -> None:
        wanted = proof(self._secret, b"client", peer.nonce, peer.channel)
        if greeting.version != self._version or not hmac.compare_digest(greeting.proof, wanted):
            LOG.warning("peer_refused", version=greeting.version)
            peer.frames.close()
            return
        peer.is_trusted = True
        peer.frames.bytes_max = FRAME_MAX
        shown = proof(self._secret, b"server", greeting.nonce, peer.channel)
        peer.frames.send(Greeting(self._version, peer.nonce, shown))

    async def _carry_out(self, peer: _Peer, ask: Ask, client: ClientConnection) -> None:
        payload: bytes | None = None
        try:
            handler = self._handlers.get(ask.kind)
            if handler is not None:
                payload = await handler(ask.payload, client)
        finally:
            # Also after an error, or the client would wait for ever.
            peer.running.pop(ask.number, None)
            peer.frames.send(Reply(ask.number, payload))


def _close_stranger(peer: _Peer) -> None:
    if not peer.is_trusted:
        peer.frames.abort()


def remove_old_sockets(folder: Path) -> None:
    """Remove the sockets of processes that were killed: nobody answers there any more."""
    for path in folder.glob("*.sock"):
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(os.fspath(path))
            except ConnectionRefusedError:
                path.unlink(missing_ok=True)
            except OSError:
                continue
