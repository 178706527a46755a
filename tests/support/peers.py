"""Two ends of the connection between processes, in one event loop."""

from __future__ import annotations

import asyncio
import functools
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec

from innkeeper.engine.callers import ClientConnection
from innkeeper.engine.leader import certificates
from innkeeper.engine.leader.addresses import PeerAddress, this_machine
from innkeeper.engine.leader.connection import USUAL, Identity, LinkLimits
from innkeeper.engine.leader.link import Link
from innkeeper.engine.leader.listener import Handler, PeerListener
from innkeeper.store.leadership import Leader
from tests.support.clouds import NOW
from tests.support.servers.ports import take_port

P = ParamSpec("P")
SECRET = b"s" * 32
VERSION = "1/26"
WITHIN_S = 5.0
LOOPBACK = "127.0.0.1"


def in_a_loop(test: Callable[P, Awaitable[None]]) -> Callable[P, None]:
    """Run a test in an event loop of its own."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        async def whole() -> None:
            async with asyncio.timeout(10 * WITHIN_S):
                await test(*args, **kwargs)

        asyncio.run(whole())

    return run


async def echo(payload: bytes, client: ClientConnection) -> bytes:
    """Answer with the request."""
    del client
    return payload


@dataclass(slots=True)
class Pair:
    """A leader's listener and a follower's link."""

    listener: PeerListener
    link: Link
    address: PeerAddress

    async def open(self, address: PeerAddress | None = None) -> None:
        """Follow the leader at its address, or at another one, and wait for the connection."""
        self.link.follow(leader_at(address or self.address))
        async with asyncio.timeout(WITHIN_S):
            while not self.link.is_open:
                await asyncio.sleep(0.01)


def leader_at(address: PeerAddress) -> Leader:
    """The row of a leader with this address."""
    return Leader(1, 0, "leader", address.text())


@asynccontextmanager
async def pair(
    folder: Path,
    handlers: Mapping[str, Handler] | None = None,
    *,
    secret: bytes = SECRET,
    version: str = VERSION,
    has_tls: bool = False,
    limits: LinkLimits = USUAL,
) -> AsyncIterator[Pair]:
    """Listen on a socket or with TLS; ``secret`` and ``version`` are the follower's."""
    known = {"echo": echo} if handlers is None else handlers
    listener = PeerListener(Identity(VERSION, SECRET, secrets.token_bytes), known, limits)
    if has_tls:
        context, digest = certificates.server_context(NOW)
        port = take_port()
        await listener.listen_on_port(LOOPBACK, range(port, port + 1), context, digest)
        address = PeerAddress("elsewhere", "", LOOPBACK, port, digest.hex())
    else:
        path = folder / "leader.sock"
        await listener.listen_on_path(path)
        address = PeerAddress(this_machine(), str(path))
    link = Link(Identity(version, secret, secrets.token_bytes), limits)
    made = Pair(listener, link, address)
    try:
        yield made
    finally:
        link.close()
        await listener.close(WITHIN_S)
        await asyncio.sleep(0)
