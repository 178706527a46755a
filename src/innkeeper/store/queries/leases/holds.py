"""Database access for holds. A hold gives units of a host in the freepool to a reservation."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.ids import ProviderId
from innkeeper.domain.leases import HeldWindow, Hold, ReservationState
from innkeeper.store import by_ids, records
from innkeeper.store.by_ids import IDS
from innkeeper.store.tables.compute import hosts
from innkeeper.store.tables.leases import holds, leases, reservations
from innkeeper.store.transactions import Tx

IS_PRESENT = leases.c.ended_at.is_(None) & reservations.c.state.in_(ReservationState.PRESENT)
"""The condition that a reservation was not removed, and that its lease is not over. Other holds do
not count, even if their hosts are not empty yet."""
_HOLDS = sa.select(*records.columns(holds, Hold)).order_by(holds.c.host_id)
_OF_RESERVATIONS = _HOLDS.where(holds.c.reservation_id.in_(IDS))
_WINDOWS = (
    sa.select(
        hosts.c.provider_id,
        holds.c.reservation_id,
        leases.c.start_at,
        leases.c.end_at,
        holds.c.units,
        reservations.c.unit_amounts,
        holds.c.is_active,
    )
    .select_from(holds)
    .join(hosts, hosts.c.id == holds.c.host_id)
    .join(reservations, reservations.c.id == holds.c.reservation_id)
    .join(leases, leases.c.id == reservations.c.lease_id)
    .where(IS_PRESENT)
    .order_by(holds.c.host_id, leases.c.start_at, holds.c.reservation_id)
)
_WINDOWS_OF = _WINDOWS.where(hosts.c.provider_id.in_(IDS))


def add(tx: Tx, reservation: int, units: Mapping[int, int]) -> None:
    """Add holds of a reservation.

    ``units`` maps each host to the number of held units.

    The reservation must not have holds on these hosts yet.
    """
    rows = [
        {"reservation_id": reservation, "host_id": host, "units": count, "is_active": False}
        for host, count in sorted(units.items())
    ]
    if rows:
        tx.execute(holds.insert(), rows)


def set_units(tx: Tx, reservation: int, host: int, units: int) -> None:
    """Change the number of units of one hold."""
    own = holds.update().where(holds.c.reservation_id == reservation, holds.c.host_id == host)
    tx.execute(own.values(units=units))


def activate(tx: Tx, reservation: int, host_ids: Collection[int]) -> None:
    """Record that the held units on these hosts were handed over to the reservation."""
    those = holds.update().where(holds.c.reservation_id == reservation, holds.c.host_id.in_(IDS))
    by_ids.run(tx, those.values(is_active=True), host_ids)


def windows(tx: Tx, providers: Collection[ProviderId] | None) -> list[HeldWindow]:
    """Return the holds of leases that are not over, on these providers or on all providers.

    The holds are ordered by host and start.
    """
    rows: list[Any] = (
        list(tx.execute(_WINDOWS).all())
        if providers is None
        else by_ids.rows(tx, _WINDOWS_OF, providers)
    )
    return [HeldWindow(*row) for row in rows]


def is_held(tx: Tx, host_id: int) -> bool:
    """Return whether a lease that is not over holds a host."""
    query = (
        sa.select(holds.c.host_id)
        .join(reservations, reservations.c.id == holds.c.reservation_id)
        .join(leases, leases.c.id == reservations.c.lease_id)
        .where(holds.c.host_id == host_id, IS_PRESENT)
        .limit(1)
    )
    return tx.execute(query).first() is not None


def providers_of(tx: Tx, rows: Collection[int]) -> list[ProviderId]:
    """Return the providers of the hosts that these reservations hold."""
    query = (
        sa.select(hosts.c.provider_id)
        .join(holds, holds.c.host_id == hosts.c.id)
        .where(holds.c.reservation_id.in_(IDS))
        .distinct()
    )
    return sorted({ProviderId(found) for (found,) in by_ids.rows(tx, query, rows)})


def reservations_on(tx: Tx, host_id: int) -> list[str]:
    """Return the uuids of the reservations that hold a host, even if their leases are over."""
    query = (
        sa.select(reservations.c.uuid)
        .join(holds, holds.c.reservation_id == reservations.c.id)
        .where(holds.c.host_id == host_id)
    )
    return list(tx.execute(query).scalars())


def remove_all(tx: Tx, host_id: int) -> None:
    """Delete all holds on a host."""
    tx.execute(holds.delete().where(holds.c.host_id == host_id))


def of_reservations(tx: Tx, rows: Collection[int]) -> dict[int, list[Hold]]:
    """Return the holds of these reservations, by the reservation's row id."""
    found: dict[int, list[Hold]] = {row: [] for row in rows}
    for each in by_ids.rows(tx, _OF_RESERVATIONS, rows):
        hold = Hold(*each)
        found[hold.reservation_id].append(hold)
    return found


def of_reservation(
    tx: Tx, row: int, *, is_active: bool | None = None, most: int | None = None
) -> list[Hold]:
    """Return the holds of a reservation, ordered by host.

    If ``is_active`` is True, return only holds that were handed over. If it is False, return only
    holds that were not handed over. Returns at most ``most`` holds.
    """
    query = _HOLDS.where(holds.c.reservation_id == row)
    if is_active is not None:
        query = query.where(holds.c.is_active.is_(is_active))
    return [Hold(*each) for each in tx.execute(query.limit(most))]


def remove(tx: Tx, reservation: int, host_ids: Collection[int]) -> None:
    """Delete the holds of a reservation on these hosts."""
    those = holds.delete().where(holds.c.reservation_id == reservation, holds.c.host_id.in_(IDS))
    by_ids.run(tx, those, host_ids)


def others_active(
    tx: Tx, reservation: int, host_ids: Collection[int]
) -> list[tuple[int, int, Any]]:
    """Return the units on these hosts that were handed over to reservations other than this one.

    Units of a lease that is over are included until they are returned. The rows are (host, units,
    amounts of one unit). The amounts are ``None`` for a whole host.
    """
    query = (
        sa.select(holds.c.host_id, holds.c.units, reservations.c.unit_amounts)
        .join(reservations, reservations.c.id == holds.c.reservation_id)
        .where(holds.c.host_id.in_(IDS), holds.c.is_active.is_(sa.true()))
        .where(holds.c.reservation_id != reservation)
    )
    return [tuple(row) for row in by_ids.rows(tx, query, host_ids)]
