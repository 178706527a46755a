"""Allocations of the freepool's hosts to reservations, for administrators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from innkeeper.engine.retry import WHOLE_HOSTS
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.leases.hosts import host_row, marker_of
from innkeeper.entrypoints.api.leases.leases import lease_context
from innkeeper.entrypoints.api.paging import limit_of
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.leases import freepool, healing, host_reservations, leases
from innkeeper.systems.leases.host_reservations import HostReservation, HostReservationFilter
from innkeeper.systems.leases.rendering import microsecond


async def index(call: Call) -> Answer:
    """List the hosts of the freepool with their reservations.

    The query can limit the list to the hosts of one lease or reservation.
    """
    limit, after, wanted = limit_of(call), marker_of(call), _filter(call)
    found = await call.read(lambda tx: host_reservations.page(tx, wanted, after=after, limit=limit))
    return Answer(200, {"allocations": [_shown(row, each) for row, each in found.items()]})


async def show(call: Call) -> Answer:
    """Show the reservations of a host."""
    row, wanted = host_row(call.params["host_id"]), _filter(call)
    found = await call.read(lambda tx: host_reservations.of_host(tx, row, wanted))
    return Answer(200, {"allocation": _shown(row, found)})


async def swap(call: Call) -> Answer:
    """Replace a host in a lease with another host, and show the replaced host's reservations."""
    row, uuid, context = (
        host_row(call.params["host_id"]),
        call.body["lease_id"],
        lease_context(call),
    )

    def act(tx: Tx, decision: DecisionContext) -> Sequence[HostReservation]:
        freepool.get(tx, row)
        healing.swap(tx, decision, leases.get(tx, uuid).uuid, row, context)
        return host_reservations.of_host(tx, row, HostReservationFilter())

    return Answer(200, {"allocation": _shown(row, await call.decide(act, WHOLE_HOSTS))})


def _filter(call: Call) -> HostReservationFilter:
    return HostReservationFilter(call.last("lease_id") or None, call.last("reservation_id") or None)


def _shown(row: int, found: Sequence[HostReservation]) -> dict[str, Any]:
    return {
        "resource_id": str(row),
        "reservations": [
            {
                "id": each.reservation_uuid,
                "lease_id": each.lease_uuid,
                "start_date": microsecond(each.start_at),
                "end_date": microsecond(each.end_at),
            }
            for each in found
        ],
    }
