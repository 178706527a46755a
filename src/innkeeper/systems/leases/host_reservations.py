"""List the hosts of the freepool with their reservations, for administrators."""

from __future__ import annotations

from collections.abc import Sequence

from innkeeper.store.queries.leases import host_reservations
from innkeeper.store.queries.leases.host_reservations import HostReservation, HostReservationFilter
from innkeeper.store.transactions import Tx
from innkeeper.systems.leases import freepool

__all__ = ["HostReservation", "HostReservationFilter", "of_host", "page"]


def page(
    tx: Tx, wanted: HostReservationFilter, *, after: int = 0, limit: int
) -> dict[int, list[HostReservation]]:
    """Return a page of hosts with their reservations, in the order of the hosts' ids.

    With a filter, only hosts with a matching reservation are listed. Without a filter, all hosts
    are listed, and reservations of leases that are over are left out.
    """
    rows = host_reservations.host_ids(tx, wanted, after=after, limit=limit)
    found = host_reservations.of_hosts(tx, rows, wanted)
    return {row: found[row] for row in rows}


def of_host(tx: Tx, host_id: int, wanted: HostReservationFilter) -> Sequence[HostReservation]:
    """Return the reservations of one host. Raises :class:`NotFound`."""
    freepool.get(tx, host_id)
    return host_reservations.of_hosts(tx, [host_id], wanted)[host_id]
