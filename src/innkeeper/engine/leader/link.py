"""A follower's connection to the current leader.

Always true: a request that was certainly not carried out raises :class:`NotForwarded`, so this
process may carry it out itself. Any other request without an answer raises :class:`Unanswered`.

After a change of leader, the old leader gets no more requests. Earlier requests still wait for the
old leader's answers, as long as the old leader shows signs of life.
"""

from __future__ import annotations

import asyncio

import structlog

from innkeeper.engine import metrics
from innkeeper.engine.callers import ClientConnection
from innkeeper.engine.leader.addresses import PeerAddress, parsed
from innkeeper.engine.leader.connection import (
    USUAL,
    Identity,
    LeaderConnection,
    LinkLimits,
    NotForwarded,
)
from innkeeper.store.leadership import Leader

LOG = structlog.get_logger("innkeeper.leader")
CONNECT_S = 2.0
AGAIN_S, AGAIN_MAX_S = 0.5, 16.0
"""The first and the longest pause between two attempts to connect to the same leader."""


class Link:
    """The connection to the current leader. Use it in one event loop only."""

    def __init__(self, identity: Identity, limits: LinkLimits = USUAL) -> None:
        self._identity = identity
        self._limits = limits
        self._leader: Leader | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._current: LeaderConnection | None = None
        self._retired: set[LeaderConnection] = set()

    @property
    def is_open(self) -> bool:
        """Whether requests can be forwarded now."""
        return self._current is not None

    def follow(self, leader: Leader | None) -> None:
        """Forward requests to this leader from now on. With ``None``, forward no requests."""
        self._leader = leader
        if self._connecting is not None:
            self._connecting.cancel()
            self._connecting = None
        retired = self._current
        self._set_current(None)
        if retired is not None:
            self._retired.add(retired)
            retired.retire()
        self._connect()

    def close(self) -> None:
        """End all connections. Waiting requests raise :class:`Unanswered`."""
        self.follow(None)
        for each in list(self._retired):
            each.abort()

    async def ask(self, kind: str, payload: bytes, client: ClientConnection | None = None) -> bytes:
        """Have the leader carry out a request, and return its answer.

        If the ``client`` leaves, the leader drops the request, unless the request has already
        begun. Raises :class:`NotForwarded`, or :class:`Unanswered`.
        """
        if self._current is None:
            raise NotForwarded
        return await self._current.ask(kind, payload, client)

    def _connect(self) -> None:
        leader = self._leader
        if leader is None:
            return
        address = parsed(leader.address)
        if address is None:
            LOG.warning("leader_not_reached", term=leader.term, error="Its address is malformed.")
            return
        self._connecting = asyncio.get_running_loop().create_task(
            self._keep_trying(leader, address)
        )

    async def _keep_trying(self, leader: Leader, address: PeerAddress) -> None:
        """Connect, and try again after each failure. Log a failure only if its reason is new."""
        pause_s, last = AGAIN_S, ""
        while self._current is None:
            connection = LeaderConnection(self._identity, self._lost, self._limits)
            try:
                async with asyncio.timeout(CONNECT_S):
                    await connection.open(address)
            except (OSError, TimeoutError, ValueError) as error:
                reason = str(error) or type(error).__name__
                if reason != last:
                    LOG.info("leader_not_reached", term=leader.term, error=reason)
                last = reason
            else:
                LOG.info("leader_reached", term=leader.term)
                self._set_current(connection)
                return
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, AGAIN_MAX_S)

    def _lost(self, connection: LeaderConnection) -> None:
        if connection is self._current:
            self._set_current(None)
            self._connect()
        self._retired.discard(connection)

    def _set_current(self, connection: LeaderConnection | None) -> None:
        self._current = connection
        metrics.FORWARDING.set(0 if connection is None else 1)
