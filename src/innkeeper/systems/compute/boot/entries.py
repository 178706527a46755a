"""Sealed entries of build plans, which clients send back to boot servers.

Always true: an entry boots one server at most. The plan fixed the server's id, so a second use
finds the server's row, even after the server was deleted. A boot with an entry repeats all
checks of the plan, but only for the entry's host.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from innkeeper.domain.compute import BootRequest
from innkeeper.domain.errors import AlreadyExists, Conflict, Invalid
from innkeeper.domain.zones import EntryScope, digest
from innkeeper.systems.zones.sealing import NotOurs, Sealer


class EntryUsed(AlreadyExists):
    """The server of an entry already exists, or has been deleted."""

    def __init__(self, server_id: str) -> None:
        super().__init__(
            f"This entry of a build plan has already been used; its server is {server_id}."
        )


class EntryExpired(Conflict):
    """An entry is genuine, but has expired."""

    def __init__(self, expired_at: datetime) -> None:
        moment = expired_at.replace(microsecond=0).isoformat()
        super().__init__(
            f"This entry of a build plan has expired at {moment}Z; ask for another plan."
        )


class EntryStale(Conflict):
    """The host of an entry no longer takes the server. ``why`` is for operators.

    The client is not told which filter refused the host. Otherwise a client with enough entries
    could monitor the state of each host.
    """

    def __init__(self, why: str) -> None:
        super().__init__(
            "The host of this entry of a build plan is no longer available; ask for another plan."
        )
        self.why = why


def scope_of(request: BootRequest) -> EntryScope:
    """Return what a request's entries are bound to.

    An entry is bound to the project and to all parameters that affect the choice of a host. The
    name, the metadata and the like are left out, since the servers of a plan may differ in them.
    """
    requested = {
        "flavor": request.flavor_id,
        "image": request.image_id,
        "availability_zone": request.availability_zone,
        "host": request.forced_host,
        "hints": request.hints,
    }
    return EntryScope(request.project_id, digest(requested))


def opened(request: BootRequest, sealer: Sealer | None, text: str) -> BootRequest:
    """Return the request, restricted to the server and the host of a sealed entry.

    Raises :class:`Invalid` for a request for several servers, and the errors of
    :meth:`Sealer.open`. The expiry is checked later: a client that lost the response may repeat
    the request after it, and is then told the id of its server.
    """
    if request.count_max > 1:
        raise Invalid("An entry of a build plan is for one server: max_count is 1 with it.")
    if sealer is None:
        raise NotOurs
    found = sealer.open(text, scope_of(request))
    return replace(
        request,
        server_ids=(found.destination.server_id,),
        destination=found.destination,
        expires_at=found.expires_at,
    )
