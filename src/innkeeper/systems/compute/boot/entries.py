"""Entries of build plans that are brought back, to be carried out.

Always true: an entry is carried out once. Its server's id was made with the plan, so a second
use finds the server, however it came to be there, whatever became of it since and however late
that is. What was true when the plan was made is asked again, all of it, for that one host.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from innkeeper.domain.compute import Booted, BootRequest
from innkeeper.domain.errors import AlreadyExists, Conflict, Invalid, Refusal
from innkeeper.domain.ids import ServerId
from innkeeper.domain.zones import EntryScope, digest
from innkeeper.store.queries.compute import hosts, servers
from innkeeper.store.transactions import Tx
from innkeeper.systems.zones.sealing import NotOurs, Sealer

Boot = Callable[[Sequence[BootRequest]], Sequence[Booted | Refusal]]


class Used(AlreadyExists):
    """The server of an entry is there already, or was."""

    def __init__(self, server_id: str) -> None:
        super().__init__(
            f"This entry of a build plan was carried out already: its server is {server_id}."
        )


class Expired(Conflict):
    """An entry is what it claims to be, and came too late."""

    def __init__(self, expired_at: datetime) -> None:
        moment = expired_at.replace(microsecond=0).isoformat()
        super().__init__(
            f"This entry of a build plan has expired at {moment}Z; ask for another plan."
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


def scope_of(request: BootRequest) -> EntryScope:
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
    return EntryScope(request.project_id, digest(asked))


def opened(request: BootRequest, sealer: Sealer | None, text: str) -> BootRequest:
    """The request for exactly the server and the host of a sealed entry.

    Raises :class:`Invalid` for a request that asks for several, and what
    :meth:`Sealer.open` does. Whether the entry came in time is not asked here: a client that
    lost the answer may ask again after the expiry, and is told of the server that it has
    already.
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


def demand_usable(tx: Tx, request: BootRequest) -> None:
    """Refuse a request whose entry is no good any more.

    Raises :class:`Used`, :class:`Expired` or :class:`Stale`, the first that is so.
    """
    destination = request.destination
    if destination is None:
        return
    # Ahead of the time: "ask for another plan" would have somebody make a second server.
    if servers.ever_known(tx, [destination.server_id]):
        raise Used(destination.server_id)
    if request.expires_at is not None and request.now >= request.expires_at:
        raise Expired(request.expires_at)
    host = hosts.by_names(tx, [destination.host]).get(destination.host)
    if host is None or host.provider_uuid != destination.provider_uuid:
        raise Stale(f"The host {destination.host} is gone.")


def each_once(requests: Sequence[BootRequest], boot: Boot) -> list[Booted | Refusal]:
    """Boot all requests, and of those that bring the same entry the first that is in order.

    The others are told what became of it: they waited for the same commit, so none of them
    would find its server. One that is :class:`Invalid` says nothing of the entry, for a key
    pair, say, is not a part of what that is bound to: then it is the next one's turn.
    """
    if all(each.destination is None for each in requests):
        return list(boot(requests))
    outcomes: dict[int, Booted | Refusal] = {}
    places: Sequence[int] = range(len(requests))
    while places:
        asked = _first_of_each(requests, places)
        answers = boot([requests[place] for place in asked])
        outcomes |= zip(asked, answers, strict=True)
        known = {
            requests[place].server_ids: answer
            for place, answer in zip(asked, answers, strict=True)
            if not isinstance(answer, Invalid)
        }
        left = [place for place in places if place not in outcomes]
        told = [place for place in left if requests[place].server_ids in known]
        outcomes |= {place: _told(known[requests[place].server_ids]) for place in told}
        places = [place for place in left if place not in outcomes]
    return [outcomes[place] for place in range(len(requests))]


def _first_of_each(requests: Sequence[BootRequest], places: Sequence[int]) -> list[int]:
    """Of the requests at these places those that nobody before them has the entry of."""
    # Without an entry the ids are fresh, and nobody else's.
    firsts: dict[tuple[ServerId, ...], int] = {}
    for place in places:
        firsts.setdefault(requests[place].server_ids, place)
    return list(firsts.values())


def _told(outcome: Booted | Refusal) -> Refusal:
    return outcome if isinstance(outcome, Refusal) else Used(outcome.server_ids[0])
