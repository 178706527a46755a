"""Queries for the inventories and usage of hosts and pools, as the APIs show them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.ids import ProviderId
from innkeeper.store import by_ids
from innkeeper.store.by_ids import IDS
from innkeeper.store.tables.compute import hosts
from innkeeper.store.tables.placement import allocations, inventories, resource_classes
from innkeeper.store.transactions import Tx

CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB")
"""The resource classes that every host reports."""


def class_ids(tx: Tx) -> dict[int, str]:
    """Return the names of :data:`CLASSES` by their row ids."""
    query = sa.select(resource_classes.c.id, resource_classes.c.name)
    rows = tx.execute(query.where(resource_classes.c.name.in_(CLASSES)))
    return {class_id: name for class_id, name in rows}


def inventory_rows(tx: Tx, ids: Collection[ProviderId]) -> list[Any]:
    """Return rows of (provider, class, total, reserved, allocation ratio)."""
    query = sa.select(
        inventories.c.resource_provider_id,
        inventories.c.resource_class_id,
        inventories.c.total,
        inventories.c.reserved,
        inventories.c.allocation_ratio,
    )
    return by_ids.rows(tx, query.where(inventories.c.resource_provider_id.in_(IDS)), ids)


def used_rows(tx: Tx, ids: Collection[ProviderId]) -> list[Any]:
    """Return rows of (provider, class, sum of the allocations)."""
    query = sa.select(
        allocations.c.resource_provider_id,
        allocations.c.resource_class_id,
        sa.func.sum(allocations.c.used),
    )
    query = query.where(allocations.c.resource_provider_id.in_(IDS))
    grouped = query.group_by(allocations.c.resource_provider_id, allocations.c.resource_class_id)
    return by_ids.rows(tx, grouped, ids)


def host_count(tx: Tx) -> int:
    """Return the number of hosts."""
    return int(tx.execute(sa.select(sa.func.count()).select_from(hosts)).scalar_one())


def totals(tx: Tx, class_id: int) -> tuple[int, int, int]:
    """Return the total, reserved and allocated amounts of one class, summed over all hosts."""
    of_hosts = sa.select(
        sa.func.sum(inventories.c.total), sa.func.sum(inventories.c.reserved)
    ).join(hosts, hosts.c.provider_id == inventories.c.resource_provider_id)
    total, reserved = tx.execute(of_hosts.where(inventories.c.resource_class_id == class_id)).one()
    held = sa.select(sa.func.sum(allocations.c.used)).join(
        hosts, hosts.c.provider_id == allocations.c.resource_provider_id
    )
    used = tx.execute(held.where(allocations.c.resource_class_id == class_id)).scalar()
    return int(total or 0), int(reserved or 0), int(used or 0)
