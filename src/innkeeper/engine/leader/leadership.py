"""The role of one process among several: it is the leader, or forwards writes to the leader.

Always true: forwarding only changes which process writes. Safety does not depend on forwarding, so
a process that cannot reach the leader writes by itself.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

import structlog

from innkeeper.domain.ids import Clock
from innkeeper.engine.callers import ClientConnection
from innkeeper.engine.database import Database
from innkeeper.engine.leader import certificates, listener
from innkeeper.engine.leader.addresses import (
    SOCKET_PATH_MAX,
    PeerAddress,
    listens,
    parsed,
    socket_path,
    this_machine,
)
from innkeeper.engine.leader.connection import Identity
from innkeeper.engine.leader.election import Election
from innkeeper.engine.leader.link import Link
from innkeeper.engine.leader.listener import Handler, PeerListener
from innkeeper.engine.writer import Writer
from innkeeper.store import leadership
from innkeeper.store.leadership import Leader
from innkeeper.store.transactions import Store

LOG = structlog.get_logger("innkeeper.leader")


@dataclass(frozen=True, slots=True)
class Peer:
    """One of the processes that serve a database.

    ``holder`` is the process's random id. Sockets are in ``folder``. With a ``host``, the process
    also listens there, on the first free port of ``ports``. Without a ``host``, processes on other
    machines cannot forward writes to it. When the process stops, it waits up to ``grace_s`` seconds
    for forwarded requests in progress.
    """

    identity: Identity
    holder: str
    folder: Path
    host: str | None
    ports: range
    clock: Clock
    grace_s: float


def another_leads(database: Database) -> bool:
    """Return whether another process of this machine is the leader of a database, and is alive."""
    found = database.read(leadership.current)
    address = None if found is None else parsed(found.address)
    if address is None or address.machine != this_machine() or not address.path:
        return False
    return listens(address.path)


class Leadership:
    """One process's part in the election, and its connections. Start it in the event loop."""

    def __init__(self, store: Store, writer: Writer, peer: Peer) -> None:
        self.handlers: dict[str, Handler] = {}
        self._store = store
        self._writer = writer
        self._peer = peer
        self._election: Election | None = None
        self._listener = PeerListener(peer.identity, self.handlers)
        self._link = Link(peer.identity)

    @property
    def is_leading(self) -> bool:
        """Whether this process is the leader, as far as it knows."""
        return self._election is not None and self._election.is_leading

    @property
    def is_following(self) -> bool:
        """Whether another process is the leader, as far as this process knows."""
        return self._election is not None and self._election.is_following

    @property
    def is_forwarding(self) -> bool:
        """Whether requests can be forwarded to the leader now."""
        return self._link.is_open

    async def ask(self, kind: str, payload: bytes, client: ClientConnection | None = None) -> bytes:
        """Have the leader carry out a request; see :meth:`Link.ask`."""
        return await self._link.ask(kind, payload, client)

    async def start(self) -> None:
        """Listen, and join the election. A process that cannot listen never becomes the leader."""
        loop = asyncio.get_running_loop()
        address = await self._listen()
        if address is None:
            LOG.error("peers_not_heard", folder=str(self._peer.folder), peer_host=self._peer.host)

        def changed(leader: Leader | None) -> None:
            loop.call_soon_threadsafe(self._link.follow, leader)

        text = None if address is None else self.advertised(address).text()
        self._election = Election(self._store, self._writer, self._peer.holder, text, changed)

    def advertised(self, address: PeerAddress) -> PeerAddress:
        """Return the address for the leader's row.

        Usually, it is the address where this process listens.
        """
        return address

    async def stop(self) -> None:
        """Resign, and finish the forwarded requests in progress."""
        if self._election is not None:
            await asyncio.to_thread(self._election.resign)
        await self._listener.close(self._peer.grace_s)
        self._link.close()

    def step(self) -> int:
        """Make one step of the election. Any thread may call this.

        Returns 0, as nothing is counted.
        """
        if self._election is not None:
            self._election.step()
        return 0

    async def _listen(self) -> PeerAddress | None:
        """Try to listen on a Unix socket, and with TLS.

        Return the address, or ``None`` if both fail.
        """
        path, (port, digest) = await self._on_path(), await self._on_port()
        if path is None and not port:
            return None
        return PeerAddress(
            machine=this_machine(),
            path="" if path is None else str(path),
            host=(self._peer.host or "") if port else "",
            port=port,
            certificate=digest.hex(),
        )

    async def _on_path(self) -> Path | None:
        path = socket_path(self._peer.folder, self._peer.holder)
        if path is None:
            what = f"The path of a socket in {self._peer.folder} would be too long"
            LOG.warning("peer_socket_failed", error=f"{what} (more than {SOCKET_PATH_MAX} bytes).")
            return None
        try:
            await self._listener.listen_on_path(path)
            await asyncio.to_thread(listener.remove_old_sockets, path)
        except OSError as error:
            LOG.warning("peer_socket_failed", path=str(path), error=str(error))
            return None
        return path

    async def _on_port(self) -> tuple[int, bytes]:
        host, ports = self._peer.host, self._peer.ports
        if host is None:
            return 0, b""
        context, digest = certificates.server_context(self._peer.clock())
        try:
            return await self._listener.listen_on_port(host, ports, context, digest), digest
        except (OSError, UnicodeError) as error:
            LOG.error("peer_port_failed", peer_host=host, peer_port=ports[0], error=str(error))
            return 0, b""
