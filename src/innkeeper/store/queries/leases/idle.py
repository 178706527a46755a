"""Queries for active leases that end early if they are unused."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

import sqlalchemy as sa

from innkeeper.domain.leases import LeaseEventKind, LeaseEventState, slot_class
from innkeeper.store import by_ids
from innkeeper.store.by_ids import IDS
from innkeeper.store.tables.compute import hosts
from innkeeper.store.tables.leases import holds, lease_events, leases, reservations
from innkeeper.store.tables.placement import allocations, resource_classes
from innkeeper.store.transactions import Tx

_HAS_BEGUN = sa.exists().where(
    lease_events.c.lease_id == leases.c.id,
    lease_events.c.kind == LeaseEventKind.START,
    lease_events.c.state == LeaseEventState.DONE,
)
# EXISTS, because with a join, databases would begin with the done start events of all past leases.
_CANDIDATES = (
    sa.select(leases.c.id)
    .where(_HAS_BEGUN)
    .where(leases.c.idle_grace_s.is_not(None), leases.c.ended_at.is_(None))
    .where(leases.c.id > sa.bindparam("after"))
    .order_by(leases.c.id)
    .limit(sa.bindparam("most"))
)
# SELECT lease_id FROM holds JOIN reservations JOIN hosts
#  WHERE anything is allocated on the host, and the reservation holds the whole host
_USED_HOSTS = (
    sa.select(reservations.c.lease_id)
    .select_from(holds)
    .join(reservations, reservations.c.id == holds.c.reservation_id)
    .join(hosts, hosts.c.id == holds.c.host_id)
    .where(reservations.c.unit_amounts.is_(None), holds.c.is_active.is_(sa.true()))
    .where(sa.exists().where(allocations.c.resource_provider_id == hosts.c.provider_id))
    .where(reservations.c.lease_id.in_(IDS))
    .distinct()
)
_USED_CLASSES = (
    sa.select(resource_classes.c.name)
    .where(sa.exists().where(allocations.c.resource_class_id == resource_classes.c.id))
    .where(resource_classes.c.name.in_(IDS))
)


def candidates(tx: Tx, *, after: int, most: int) -> list[int]:
    """Return active leases with a grace time, sorted by row id.

    Only leases with row ids above ``after`` are returned, and at most ``most``.
    """
    return list(tx.execute(_CANDIDATES, {"after": after, "most": most}).scalars())


def with_used_hosts(tx: Tx, rows: Collection[int]) -> set[int]:
    """Return the leases in ``rows`` that have a whole host with allocations on it."""
    return {lease for (lease,) in by_ids.rows(tx, _USED_HOSTS, rows)}


def with_used_slots(tx: Tx, reservations_of: Mapping[str, int]) -> set[int]:
    """Return the leases that have an allocated slot.

    ``reservations_of`` maps the uuid of a reservation to the row id of its lease.
    """
    by_class = {slot_class(uuid): lease for uuid, lease in reservations_of.items()}
    return {by_class[name] for (name,) in by_ids.rows(tx, _USED_CLASSES, by_class)}


def set_since(tx: Tx, rows: Collection[int], since: datetime | None) -> None:
    """Record since when these leases have been unused. ``None`` means that a lease is in use."""
    by_ids.run(tx, leases.update().where(leases.c.id.in_(IDS)).values(idle_since=since), rows)
