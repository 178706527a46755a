"""The leader's side of the connections. It answers requests that other processes forward.

Always true: a request is carried out only if its sender runs the same version of the program, and
has proved that it knows the secret of the database's processes. If a connection ends, the clients
of its requests count as gone, so requests that have not begun are dropped. Every process listens
from its start, because it may become the leader.
"""

from __future__ import annotations

import asyncio
import errno
import hmac
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec
import structlog

from innkeeper.engine.callers import ClientConnection
from innkeeper.engine.leader.addresses import SUFFIX, listens
from innkeeper.engine.leader.connection import USUAL, Identity, LinkLimits
from innkeeper.engine.leader.frames import (
    FRAME_MAX,
    NONCE_BYTES,
    Ask,
    Cancel,
    Decline,
    Frames,
    Greeting,
    Ping,
    Reply,
    proof,
)

LOG = structlog.get_logger("innkeeper.leader")
PRIVATE, PRIVATE_FOLDER = 0o600, 0o700
OLD_AFTER_S = 60.0
"""A socket file that is younger than this is not removed. A process that is starting may have bound
the socket, but not yet listen on it."""
PROBES = {socket.TCP_KEEPIDLE: 30, socket.TCP_KEEPINTVL: 10, socket.TCP_KEEPCNT: 3}
"""TCP keep-alive options. A connection is probed after 30 s of silence, and then every 10 s. After
three probes without an answer, the kernel ends the connection. A connection to a suspended process
is kept, because the machine's kernel answers the probes."""
_RECEIVED = msgspec.msgpack.Decoder(Ask | Cancel | Ping | Greeting)

Handler = Callable[[bytes, ClientConnection], Awaitable[bytes]]
"""A function that carries out one kind of request. The second argument is the connection of the
request's client. Raises :class:`NotServed` if the request was not carried out."""


class NotServed(Exception):
    """The leader does not serve this kind of request. The follower may serve it itself."""


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
    """Listens on a Unix socket. If other machines take part, it also listens with TLS."""

    def __init__(
        self, identity: Identity, handlers: Mapping[str, Handler], limits: LinkLimits = USUAL
    ) -> None:
        """``handlers`` must be complete before the first request comes."""
        self._identity = identity
        self._limits = limits
        self._handlers = handlers
        self._servers: list[asyncio.Server] = []
        self._path: Path | None = None
        self._peers: dict[Frames, _Peer] = {}
        self._strangers = 0
        self._is_closing = False

    async def listen_on_path(self, path: Path) -> None:
        """Listen on a Unix socket that only this user can open."""
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
                server = await loop.create_server(
                    self._frames(digest),
                    host,
                    port,
                    ssl=context,
                    ssl_handshake_timeout=self._limits.greet_within_s,
                )
            except OSError as error:
                if error.errno != errno.EADDRINUSE or port == ports[-1]:
                    raise
                continue
            self._servers.append(server)
            _probe_connections(server)
            return int(server.sockets[0].getsockname()[1])
        raise AssertionError("the caller passes at least one port")

    async def close(self, grace_s: float) -> None:
        """Accept no more requests, wait up to ``grace_s`` for requests in progress, and close."""
        self._is_closing = True
        for server in self._servers:
            server.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)
        running = [each.task for peer in self._peers.values() for each in peer.running.values()]
        if running:
            await asyncio.wait(running, timeout=grace_s)
        for frames in list(self._peers):
            frames.close()

    def _frames(self, channel: bytes) -> Callable[[], Frames]:
        def opened(frames: Frames) -> None:
            peer = self._peers[frames] = _Peer(frames, channel, self._identity.draw(NONCE_BYTES))
            self._strangers += 1
            if self._strangers > self._limits.strangers_max:
                frames.abort()
                return
            frames.send(Greeting(self._identity.version, peer.nonce))
            asyncio.get_running_loop().call_later(
                self._limits.greet_within_s, _close_stranger, peer
            )

        return lambda: Frames(opened, self._received, self._closed)

    def _closed(self, frames: Frames) -> None:
        peer = self._peers.pop(frames, None)
        if peer is not None:
            self._strangers -= not peer.is_trusted
            for each in peer.running.values():
                each.client.close()

    def _received(self, frames: Frames, frame: bytes) -> None:
        peer = self._peers[frames]
        message = _RECEIVED.decode(frame)
        if isinstance(message, Greeting):
            self._greeted(peer, message)
        elif not peer.is_trusted:
            frames.abort()
        elif isinstance(message, Ping):
            frames.send(message)
        elif isinstance(message, Cancel):
            if message.number in peer.running:
                peer.running[message.number].client.close()
        elif self._is_closing:
            frames.send(Decline(message.number))
        else:
            client = ClientConnection()
            task = asyncio.get_running_loop().create_task(self._carry_out(peer, message, client))
            task.add_done_callback(_log_accident)
            peer.running[message.number] = _Running(client, task)

    def _greeted(self, peer: _Peer, greeting: Greeting) -> None:
        identity, frames = self._identity, peer.frames
        wanted = proof(identity.secret, b"client", peer.nonce, peer.channel)
        is_same = greeting.version == identity.version
        if peer.is_trusted or not is_same or not hmac.compare_digest(greeting.proof, wanted):
            reason = "a wrong proof" if is_same else f"version {greeting.version[:40]}"
            LOG.warning("peer_refused", reason=reason, client=frames.other_side())
            frames.close()
            return
        shown = proof(identity.secret, b"server", greeting.nonce, peer.channel)
        peer.is_trusted = True
        self._strangers -= 1
        frames.bytes_max = FRAME_MAX
        frames.send(Greeting(identity.version, peer.nonce, shown))

    async def _carry_out(self, peer: _Peer, ask: Ask, client: ClientConnection) -> None:
        outcome: Reply | Decline = Reply(ask.number, None)
        try:
            handler = self._handlers.get(ask.kind)
            if handler is None:
                raise NotServed
            payload = await handler(ask.payload, client)
            if len(payload) <= self._limits.payload_max:
                outcome = Reply(ask.number, payload)
            else:
                LOG.error("answer_too_large", bytes=len(payload))
        except NotServed:
            outcome = Decline(ask.number)
        finally:
            # The outcome is also sent after an error. Otherwise, the follower would wait for ever.
            peer.running.pop(ask.number, None)
            peer.frames.send(outcome)


def _probe_connections(server: asyncio.Server) -> None:
    """Let the system end connections to machines that are gone.

    Accepted connections inherit the options of the listening sockets. The leader itself never
    notices that a machine is gone, because it only answers requests.
    """
    for each in server.sockets:
        each.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in PROBES.items():
            each.setsockopt(socket.IPPROTO_TCP, option, value)


def _log_accident(task: asyncio.Task[None]) -> None:
    error = None if task.cancelled() else task.exception()
    if error is not None:
        LOG.error("accident", exc_info=error)


def _close_stranger(peer: _Peer) -> None:
    if not peer.is_trusted:
        peer.frames.abort()


def remove_old_sockets(own: Path) -> None:
    """Remove the sockets of killed processes from the folder of this process's new socket."""
    now_s = own.stat().st_mtime
    for path in own.parent.glob("*" + SUFFIX):
        with suppress(OSError):
            if now_s - path.stat().st_mtime >= OLD_AFTER_S and not listens(str(path)):
                path.unlink()
