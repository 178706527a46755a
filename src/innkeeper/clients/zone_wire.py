"""The wire to child zones: signed requests to a child zone, and its answers.

Always true: an answer is read up to its maximum size and no further. The caller limits the time of
a request.
"""

from __future__ import annotations

import ssl
from typing import Protocol

from innkeeper.clients.kept_connections import (
    ANSWER_BYTES_MAX,
    AnswerTooLarge,
    KeptConnections,
    NoAnswer,
    NotSent,
    WireAnswer,
    WireRequest,
)
from innkeeper.domain.zone_tree import ChildZone

__all__ = (
    "ANSWER_BYTES_MAX",
    "HttpWire",
    "NoAnswer",
    "NotSent",
    "SignedRequest",
    "ZoneAnswer",
    "ZoneSilent",
    "ZoneWire",
)

SignedRequest = WireRequest
"""A signed request to a child zone: the whole URL, and the headers. One header has the hop
token."""
ZoneAnswer = WireAnswer
"""The answer of a child."""


class ZoneSilent(Exception):
    """A child zone gave no usable answer.

    ``may_have_arrived`` says that the child may have received the request.

    If ``is_late``, the whole time for the answer has passed. If ``is_too_large``, the answer had
    more bytes than the request allows. The message is for this zone's administrators.
    """

    def __init__(
        self, why: str, *, may_have_arrived: bool, is_late: bool = False, is_too_large: bool = False
    ) -> None:
        super().__init__(why)
        self.may_have_arrived = may_have_arrived
        self.is_late = is_late
        self.is_too_large = is_too_large

    @classmethod
    def of_status(cls, status: int) -> ZoneSilent:
        """Return the error for an answer with an unexpected status."""
        return cls(f"the child answered {status}", may_have_arrived=True)


class ZoneWire(Protocol):
    """Carries requests to child zones."""

    async def exchange(self, child: ChildZone, signed: SignedRequest) -> ZoneAnswer:
        """Send a request, and return the whole answer.

        Raises :class:`NotSent` or :class:`NoAnswer`. If the answer is too large, raises
        :class:`ZoneSilent`.
        """

    async def forget(self, child: ChildZone) -> None:
        """Close the connections to one child."""

    async def close(self) -> None:
        """Close all connections."""


class HttpWire:
    """Carries requests over HTTP. The caller limits the number of requests at once."""

    def __init__(self, trusted: ssl.SSLContext | None = None) -> None:
        self._connections = KeptConnections(trusted)

    async def exchange(self, child: ChildZone, signed: SignedRequest) -> ZoneAnswer:
        try:
            return await self._connections.exchange(child.uuid, signed)
        except AnswerTooLarge as error:
            raise ZoneSilent(str(error), may_have_arrived=True, is_too_large=True) from error

    async def forget(self, child: ChildZone) -> None:
        await self._connections.forget(child.uuid)

    async def close(self) -> None:
        await self._connections.close()
