"""Check and open the sealed entries of build plans, which clients send to boot servers.

An entry is one item of a build plan: a server id and a host, encrypted so that clients cannot read
or change them.

Always true: an entry boots one server at most. A second use is detected by the row of the server,
which exists even after the server was deleted. A boot with an entry repeats all checks of the plan,
but only for the entry's host.
"""

from __future__ import annotations

from datetime import datetime
from uuid import NAMESPACE_OID, uuid5

from msgspec.structs import replace

from innkeeper.domain.compute import BootRequest
from innkeeper.domain.errors import AlreadyExists, Conflict, Invalid
from innkeeper.domain.ids import ServerId
from innkeeper.domain.zones import Destination, EntryScope, Opened, digest
from innkeeper.systems.zones.sealing import NotOurs, Sealer


class EntryUsed(AlreadyExists):
    """The server of a build plan's entry already exists, or has been deleted."""

    def __init__(self, server_id: str) -> None:
        super().__init__(
            f"This entry of a build plan has already been used; its server is {server_id}."
        )
        self.server_id = server_id


class EntryExpired(Conflict):
    """A build plan entry of this zone has expired."""

    def __init__(self, expired_at: datetime) -> None:
        moment = expired_at.replace(microsecond=0).isoformat()
        super().__init__(
            f"This entry of a build plan has expired at {moment}Z; ask for another plan."
        )


class EntryStale(Conflict):
    """The host of a build plan's entry no longer takes the server.

    ``why`` is shown only to operators.

    The client does not learn which filter refused the host. Otherwise, a client with enough entries
    could monitor the state of each host.
    """

    def __init__(self, why: str) -> None:
        super().__init__(
            "The host of this entry of a build plan is no longer available; ask for another plan."
        )
        self.why = why


def scope_of(request: BootRequest) -> EntryScope:
    """Return the scope of a request.

    An entry of a build plan is valid only for requests of the same scope.

    The scope depends on the project and on all parameters that affect the choice of a host. Other
    parameters, such as name and metadata, may differ between the servers of a plan.
    """
    requested = {
        "flavor": request.flavor_id,
        "image": request.image_id,
        "availability_zone": request.availability_zone,
        "host": request.forced_host,
        "hints": request.hints,
    }
    return EntryScope(request.project_id, digest(requested))


def found(request: BootRequest, sealer: Sealer | None, text: str) -> Opened:
    """Return the content of a sealed entry that a client presents.

    Raises :class:`Invalid` if the request is for several servers. Also raises the errors of
    :meth:`Sealer.open`.
    """
    if request.count_max > 1:
        raise Invalid("An entry of a build plan boots only one server: max_count must be 1.")
    if sealer is None:
        raise NotOurs
    return sealer.open(text, scope_of(request))


def with_entry(request: BootRequest, entry: Opened) -> BootRequest:
    """Return the request, restricted to the server and the host of an opened entry.

    The expiry of the entry is checked later. If a client lost the response and repeats the request
    after the expiry, it must still learn the id of its server.
    """
    assert isinstance(entry.place, Destination), "the host is in this zone"
    return replace(
        request,
        server_ids=(entry.place.server_id,),
        destination=entry.place,
        expires_at=entry.expires_at,
    )


def server_id_of(text: str) -> ServerId:
    """Compute a server's id from a child zone's entry. The same entry always gives the same id."""
    return ServerId(str(uuid5(NAMESPACE_OID, text)))
