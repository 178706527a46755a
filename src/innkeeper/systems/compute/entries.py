"""Entries of build plans that are brought back, to be carried out.

Always true: an entry is carried out once. Its server's id was made with the plan, so a second
use finds the server, however it came to be there and whatever became of it since. What was true
when the plan was made is asked again, all of it, for that one host.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from innkeeper.domain.compute import Booted, BootRequest
from innkeeper.domain.errors import AlreadyExists, Conflict, Invalid, Refusal
from innkeeper.domain.zones import Terms, digest
from innkeeper.store.queries import hosts, servers
from innkeeper.store.transactions import Tx
from innkeeper.systems.zones.sealing import NotOurs, Sealer

Boot = Callable[[Sequence[BootRequest]], Sequence[Booted | Refusal]]


class Used(AlreadyExists):
    """The server of an entry is there already, or was."""

    def __init__(self, server_id: str) -> None:
        super().__init__(
            f"This entry of a build plan was carried out already: its server is {server_id}."
        )


class Stale(Conflict):
    """The host of an entry is not to be had any more. ``why`` is for operators.

    Which filter refuses it is not told to who asks: with enough entries at hand, one could
    watch from outside what becomes of each host.
    """

    def __init__(self, why: str) -> None:
        super().__init__(
            "The place of this entry of a build plan is not to be had any more; ask for "
            "another plan."
        )
        self.why = why


def terms_of(request: BootRequest) -> Terms:
    """What a request's entries are bound to: its project, and what decides on places.

    Not the name, the metadata and what else is for the server alone: the servers of one plan
    may differ in these.
    """
    asked = {
        "flavor": request.flavor_id,
        "image": request.image_id,
        "availability_zone": request.availability_zone,
        "host": request.forced_host,
        "hints": request.hints,
    }
    return Terms(request.project_id, digest(asked))


def opened(request: BootRequest, sealer: Sealer | None, text: str) -> BootRequest:
    """The request for exactly the server and the host of a sealed entry.

    Raises :class:`Invalid` for a request that asks for several, and what
    :meth:`Sealer.open` does.
    """
    if request.count_max > 1:
        raise Invalid("An entry of a build plan is for one server: max_count is 1 with it.")
    if sealer is None:
        raise NotOurs
    destination = sealer.open(text, terms_of(request), request.now)
    return replace(request, server_ids=(destination.server_id,), destination=destination)


def demand_usable(tx: Tx, request: BootRequest) -> None:
    """Raise :class:`Used` or :class:`Stale` for a request whose entry is no good any more."""
    destination = request.destination
    if destination is None:
        return
    if servers.ever_known(tx, [destination.server_id]):
        raise Used(destination.server_id)
    host = hosts.by_names(tx, [destination.host]).get(destination.host)
    if host is None or host.provider_uuid != destination.provider_uuid:
        raise Stale(f"The host {destination.host} is gone.")


def each_once(requests: Sequence[BootRequest], boot: Boot) -> list[Booted | Refusal]:
    """Boot all requests, and of those that bring the same entry the first.

    The others are told what became of it: they waited for the same commit, so none of them
    would find its server.
    """
    firsts: dict[str, int] = {}
    deciding = [
        place
        if each.destination is None
        else firsts.setdefault(each.destination.server_id, place)
        for place, each in enumerate(requests)
    ]
    asked = [place for place, first in enumerate(deciding) if first == place]
    outcomes = dict(zip(asked, boot([requests[place] for place in asked]), strict=True))
    return [
        outcomes[first] if first == place else _told(outcomes[first])
        for place, first in enumerate(deciding)
    ]


def _told(outcome: Booted | Refusal) -> Refusal:
    return outcome if isinstance(outcome, Refusal) else Used(outcome.server_ids[0])
