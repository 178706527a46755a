"""Sealed entries of build plans, brought back by a client to be booted.

Always true: an entry boots one server at most. The plan fixed the server's id, so a second use
finds the server's row, even after the server was deleted. Everything that the plan checked is
checked again, for the entry's host alone.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from innkeeper.domain.compute import BootRequest
from innkeeper.domain.errors import AlreadyExists, Conflict, Invalid
from innkeeper.domain.zones import EntryScope, digest
from innkeeper.systems.zones.sealing import NotOurs, Sealer


class EntryUsed(AlreadyExists):
    """The server of an entry exists already, or existed once."""

    def __init__(self, server_id: str) -> None:
        super().__init__(
            f"This entry of a build plan was carried out already: its server is {server_id}."
        )


class EntryExpired(Conflict):
    """An entry is genuine and came too late."""

    def __init__(self, expired_at: datetime) -> None:
        moment = expired_at.replace(microsecond=0).isoformat()
        super().__init__(
            f"This entry of a build plan has expired at {moment}Z; ask for another plan."
        )


class EntryStale(Conflict):
    """The host of an entry no longer takes the server. ``why`` is for operators.

    The client does not learn which filter refused the host: with enough entries, a client could
    watch each host from outside.
    """

    def __init__(self, why: str) -> None:
        super().__init__(
            "The host of this entry of a build plan is no longer available; ask for another plan."
        )
        self.why = why


def scope_of(request: BootRequest) -> EntryScope:
    """What a request's entries are bound to: its project, and all that decides on hosts.

    The name, the metadata and other facts of the server alone are left out, since the servers
    of one plan may differ in them.
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
    """The request for exactly the server and the host of a sealed entry.

    Raises :class:`Invalid` for a request for several servers, and what :meth:`Sealer.open`
    raises. The expiry is checked later: a client that lost the answer may repeat the request
    after it, and then learns which server it has.
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
