"""What a process of several needs to lead, or to forward its writes to the leader.

Always true: forwarding changes who writes, and never what is safe. A process that cannot reach the
leader writes by itself.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

import structlog

from innkeeper.domain.ids import Clock
from innkeeper.engine.callers import ClientConnection
from innkeeper.engine.leader import certificates, listener
from innkeeper.engine.leader.addresses import PeerAddress, socket_path, this_machine
from innkeeper.engine.leader.election import Election
from innkeeper.engine.leader.frames import Draw
from innkeeper.engine.leader.link import Link
from innkeeper.engine.leader.listener import Handler, PeerListener
from innkeeper.engine.writer import Writer
from innkeeper.store.leadership import Leader
from innkeeper.store.transactions import Store

LOG = structlog.get_logger("innkeeper.leader")


@dataclass(frozen=True, slots=True)
class Peer:
    """One process among those of a database.

    ``holder`` is its random id, and ``secret`` is known to all of them. Sockets are in ``folder``.
    Without a ``host``, processes on other machines cannot forward to this one. It listens there on
    the first free one of ``ports``.
    """

    version: str
    secret: bytes
    holder: str
    folder: Path
    host: str | None
    ports: range
    draw: Draw
    clock: Clock


class Leadership:
    """One process's part in the election, and its connections. Start it in the event loop."""

    def __init__(self, store: Store, writer: Writer, peer: Peer) -> None:
        self.handlers: dict[str, Handler] = {}
        self._store = store
        self._writer = writer
        self._peer = peer
        self._election: Election | None = None
        self._listener = PeerListener(peer.version, peer.secret, peer.draw, self.handlers)
        self._link = Link(peer.version, peer.secret, peer.draw)

    @property
    def is_leading(self) -> bool:
        """Whether this process is the leader, as far as it knows."""
        return self._election is not None and self._election.is_leading

    @property
    def is_following(self) -> bool:
        """Whether another process is the leader, as far as this one knows."""
        return self._election is not None and self._election.is_following

    @property
    def is_forwarding(self) -> bool:
        """Whether requests can be forwarded to the leader now."""
        return self._link.is_open

    async def ask(self, kind: str, payload: bytes, client: ClientConnection | None = None) -> bytes:
        """Have the leader carry out a request; see :meth:`Link.ask`."""
        return await self._link.ask(kind, payload, client)

    async def start(self) -> None:
        """Listen, and take part in the election. A failure to listen is logged."""
        loop = asyncio.get_running_loop()
        address = await self._listen()
        if address is None:
            return

        def changed(leader: Leader | None) -> None:
            loop.call_soon_threadsafe(self._link.follow, leader)

        self._election = Election(
            self._store, self._writer, self._peer.holder, self.advertised(address).text(), changed
        )

    def advertised(self, address: PeerAddress) -> PeerAddress:
        """Return the address for the leader's row. It is where this process listens."""
        return address

    async def stop(self) -> None:
        """Resign, and finish the forwarded requests in progress."""
        if self._election is not None:
            await asyncio.to_thread(self._election.resign)
        self._link.close()
        await self._listener.close()

    def step(self) -> int:
        """Take part in the election once, from any thread. Returns 0, as nothing is counted."""
        if self._election is not None:
            self._election.step()
        return 0

    async def _listen(self) -> PeerAddress | None:
        peer = self._peer
        path = socket_path(peer.folder, peer.holder)
        if path is None and peer.host is None:
            LOG.error("peers_not_heard", error=f"The path {peer.folder} is too long for a socket.")
            return None
        port, digest = 0, b""
        try:
            if path is not None:
                await self._listener.listen_on_path(path)
                listener.remove_old_sockets(peer.folder)
            if peer.host is not None:
                context, digest = certificates.server_context(peer.clock())
                port = await self._listener.listen_on_port(peer.host, peer.ports, context, digest)
        except OSError as error:
            LOG.error("peers_not_heard", error=str(error))
            return None
        return PeerAddress(
            machine=this_machine(),
            path="" if path is None else str(path),
            host=peer.host or "",
            port=port,
            certificate=digest.hex(),
        )
