"""Queries for the audit of active reservations: their aggregates, flavors, groups and slots."""

from __future__ import annotations

from typing import NamedTuple

import sqlalchemy as sa

from innkeeper.domain.leases import (
    SLOT_CLASS_PREFIX,
    LeaseEventKind,
    LeaseEventState,
    ReservationState,
)
from innkeeper.store.tables.compute import (
    aggregate_hosts,
    aggregates,
    flavors,
    hosts,
    server_groups,
)
from innkeeper.store.tables.leases import freepool_hosts, holds, lease_events, leases, reservations
from innkeeper.store.tables.placement import inventories, resource_classes, resource_providers
from innkeeper.store.transactions import Tx

_IS_SLOT_CLASS = resource_classes.c.name.startswith(SLOT_CLASS_PREFIX, autoescape=True)


class AuditedReservation(NamedTuple):
    """A reservation, with the objects that belong to it.

    ``aggregate`` is ``None`` if the aggregate does not exist. ``has_flavor`` and ``has_group`` tell
    whether the flavor and the server group exist. A reservation without affinity needs no group, so
    its ``has_group`` is True.
    """

    uuid: str
    state: str
    is_whole: bool
    aggregate_id: int | None
    aggregate: str | None
    has_flavor: bool
    has_group: bool
    lease: str


class ActiveHold(NamedTuple):
    """Units (whole hosts or slots) of a host that were handed over to a reservation."""

    reservation: str
    host_id: int
    units: int
    is_whole: bool


class SlotInventory(NamedTuple):
    """An inventory of slots in Placement.

    ``host_id`` is ``None`` if the provider belongs to no host of the freepool.
    """

    provider: str
    host_id: int | None
    class_name: str
    total: int


def all_reservations(tx: Tx) -> list[AuditedReservation]:
    """Return all reservations."""
    query = (
        sa.select(
            reservations.c.uuid,
            reservations.c.state,
            reservations.c.unit_amounts.is_(None),
            reservations.c.aggregate_id,
            aggregates.c.uuid,
            flavors.c.id.is_not(None),
            sa.or_(reservations.c.group_uuid.is_(None), server_groups.c.id.is_not(None)),
            leases.c.uuid,
        )
        .join(leases, leases.c.id == reservations.c.lease_id)
        .outerjoin(aggregates, aggregates.c.id == reservations.c.aggregate_id)
        .outerjoin(flavors, flavors.c.flavor_id == reservations.c.uuid)
        .outerjoin(server_groups, server_groups.c.uuid == reservations.c.group_uuid)
        .order_by(reservations.c.id)
    )
    return [AuditedReservation(*row) for row in tx.execute(query)]


def active_holds(tx: Tx) -> list[ActiveHold]:
    """Return all holds that were handed over, ordered by reservation and host."""
    query = (
        sa.select(
            reservations.c.uuid,
            holds.c.host_id,
            holds.c.units,
            reservations.c.unit_amounts.is_(None),
        )
        .join(reservations, reservations.c.id == holds.c.reservation_id)
        .where(holds.c.is_active.is_(sa.true()))
        .order_by(holds.c.reservation_id, holds.c.host_id)
    )
    return [ActiveHold(*row) for row in tx.execute(query)]


def members(tx: Tx, kind: str) -> dict[str, set[int]]:
    """Return the hosts in the aggregates of one kind, by the uuid of the aggregate."""
    query = (
        sa.select(aggregates.c.uuid, aggregate_hosts.c.host_id)
        .outerjoin(aggregate_hosts, aggregate_hosts.c.aggregate_id == aggregates.c.id)
        .where(aggregates.c.kind == kind)
        .order_by(aggregates.c.id)
    )
    found: dict[str, set[int]] = {}
    for uuid, host_id in tx.execute(query):
        found.setdefault(uuid, set()).update(() if host_id is None else (host_id,))
    return found


def slot_inventories(tx: Tx) -> list[SlotInventory]:
    """Return all inventories of slots."""
    query = (
        sa.select(
            resource_providers.c.uuid,
            freepool_hosts.c.host_id,
            resource_classes.c.name,
            inventories.c.total,
        )
        .select_from(inventories)
        .join(resource_classes, resource_classes.c.id == inventories.c.resource_class_id)
        .join(resource_providers, resource_providers.c.id == inventories.c.resource_provider_id)
        .outerjoin(freepool_hosts, freepool_hosts.c.slots_uuid == resource_providers.c.uuid)
        .where(_IS_SLOT_CLASS)
        .order_by(resource_providers.c.id, resource_classes.c.id)
    )
    return [SlotInventory(*row) for row in tx.execute(query)]


def unfinished(tx: Tx) -> list[tuple[str, str]]:
    """Return events that are marked as done but have work left, as (lease, kind of event)."""
    is_waiting = sa.exists().where(
        holds.c.reservation_id == reservations.c.id, holds.c.is_active.is_(sa.false())
    )
    is_held = sa.exists().where(holds.c.reservation_id == reservations.c.id)
    is_unbegun = leases.c.ended_at.is_(None) & (
        reservations.c.state.in_((ReservationState.PENDING, ReservationState.ENDING))
        | ((reservations.c.state == ReservationState.ACTIVE) & is_waiting)
    )
    is_unended = (reservations.c.state != ReservationState.DELETED) | is_held
    kind = lease_events.c.kind
    query = (
        sa.select(leases.c.uuid, kind)
        .join(lease_events, lease_events.c.lease_id == leases.c.id)
        .join(reservations, reservations.c.lease_id == leases.c.id)
        .where(lease_events.c.state == LeaseEventState.DONE)
        .where(
            ((kind == LeaseEventKind.START) & is_unbegun)
            | ((kind == LeaseEventKind.END) & is_unended)
        )
        .distinct()
        .order_by(leases.c.uuid, kind)
    )
    return [tuple(row) for row in tx.execute(query)]


def misplaced_children(tx: Tx) -> list[tuple[int, str]]:
    """Return hosts of the freepool whose child provider for slots is below another provider.

    The rows are (host, provider).
    """
    query = (
        sa.select(freepool_hosts.c.host_id, resource_providers.c.uuid)
        .join(resource_providers, resource_providers.c.uuid == freepool_hosts.c.slots_uuid)
        .join(hosts, hosts.c.id == freepool_hosts.c.host_id)
        .where(resource_providers.c.parent_provider_id.is_distinct_from(hosts.c.provider_id))
        .order_by(freepool_hosts.c.host_id)
    )
    return [tuple(row) for row in tx.execute(query)]
