"""Database access for the hosts of the freepool, which leases may hold."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.ids import ProviderId, ProviderUuid
from innkeeper.domain.leases import CalendarHost, FreepoolHost
from innkeeper.store import by_ids, records
from innkeeper.store.by_ids import IDS
from innkeeper.store.tables.compute import agents, hosts
from innkeeper.store.tables.leases import freepool_hosts
from innkeeper.store.tables.placement import (
    inventories,
    resource_classes,
    resource_provider_traits,
    resource_providers,
    traits,
)
from innkeeper.store.transactions import Tx

FACTS = ("name", "hypervisor_type", "hypervisor_version", "availability_zone")
"""The columns of hosts that requirements of leases can compare."""
NAMES = {"name": "hypervisor_hostname"}
"""The names of columns in requirements, if they differ from the names in the table."""
AMOUNTS = {"vcpus": "VCPU", "memory_mb": "MEMORY_MB", "local_gb": "DISK_GB"}
"""The names of amounts in requirements, with the resource classes whose totals they mean."""
_HOSTS: sa.Select[*tuple[Any, ...]] = (
    sa.select(
        *records.columns(
            hosts,
            FreepoolHost,
            but=("amounts",),
            last_seen_at=agents.c.last_seen_at,
            **{
                name: freepool_hosts.c[name]
                for name in (
                    *("host_id", "capabilities", "slots_uuid", "leaves_at"),
                    *("created_at", "updated_at"),
                )
            },
        )
    )
    .join(hosts, hosts.c.id == freepool_hosts.c.host_id)
    .join(agents, agents.c.id == hosts.c.agent_id)
)
_CALENDAR = (
    sa.select(
        hosts.c.provider_id,
        freepool_hosts.c.host_id,
        resource_providers.c.uuid,
        freepool_hosts.c.leaves_at,
        freepool_hosts.c.capabilities,
        *(hosts.c[name] for name in FACTS),
    )
    .select_from(freepool_hosts)
    .join(hosts, hosts.c.id == freepool_hosts.c.host_id)
    .join(resource_providers, resource_providers.c.id == hosts.c.provider_id)
    .order_by(freepool_hosts.c.host_id)
)
_CALENDAR_OF = _CALENDAR.where(hosts.c.provider_id.in_(IDS))
_TRAITS = (
    sa.select(resource_provider_traits.c.resource_provider_id, traits.c.name)
    .join(traits, traits.c.id == resource_provider_traits.c.trait_id)
    .where(resource_provider_traits.c.resource_provider_id.in_(IDS))
    .order_by(traits.c.name)
)
_INVENTORIES = (
    sa.select(
        inventories.c.resource_provider_id,
        resource_classes.c.name,
        inventories.c.total,
        inventories.c.reserved,
        inventories.c.allocation_ratio,
    )
    .join(resource_classes, resource_classes.c.id == inventories.c.resource_class_id)
    .where(inventories.c.resource_provider_id.in_(IDS))
)
_TOTALS = (
    sa.select(inventories.c.resource_provider_id, resource_classes.c.name, inventories.c.total)
    .join(resource_classes, resource_classes.c.id == inventories.c.resource_class_id)
    .where(inventories.c.resource_provider_id.in_(IDS))
)


def add(
    tx: Tx, host_id: int, slots_uuid: str, capabilities: Mapping[str, Any], now: datetime
) -> None:
    """Add a host to the freepool."""
    values = {"host_id": host_id, "slots_uuid": slots_uuid, "capabilities": dict(capabilities)}
    tx.execute(freepool_hosts.insert(), {**values, "leaves_at": None, "created_at": now})


def remove(tx: Tx, host_id: int) -> None:
    """Remove a host from the freepool. The host must have no holds."""
    tx.execute(freepool_hosts.delete().where(freepool_hosts.c.host_id == host_id))


def by_host(tx: Tx, host_id: int) -> FreepoolHost | None:
    """Return the host with this row id, if it is in the freepool."""
    return records.first(tx, _HOSTS.where(freepool_hosts.c.host_id == host_id), FreepoolHost)


def page(tx: Tx, *, after: int, limit: int) -> list[FreepoolHost]:
    """Return the hosts in the freepool after the row ``after``, ordered by row id."""
    query = _HOSTS.where(freepool_hosts.c.host_id > after)
    query = query.order_by(freepool_hosts.c.host_id).limit(limit)
    return [FreepoolHost(*row) for row in tx.execute(query)]


def for_calendar(tx: Tx, providers: Collection[ProviderId] | None) -> list[CalendarHost]:
    """Return the hosts of the freepool on these providers, for the calendar.

    ``None`` selects all hosts of the freepool.
    """
    rows: list[Any] = (
        list(tx.execute(_CALENDAR).all())
        if providers is None
        else by_ids.rows(tx, _CALENDAR_OF, providers)
    )
    there = [ProviderId(row[0]) for row in rows]
    amounts, has = _amounts(tx, there), _traits(tx, there)
    return [
        CalendarHost(
            ProviderId(provider_id),
            host_id,
            ProviderUuid(uuid),
            leaves_at,
            {
                **capabilities,
                **_facts(facts, amounts[provider_id][0]),
                "traits": has.get(provider_id, []),
            },
            amounts[provider_id][1],
        )
        for provider_id, host_id, uuid, leaves_at, capabilities, *facts in rows
    ]


def _facts(own: Sequence[Any], totals: Mapping[str, int]) -> dict[str, Any]:
    """Return the facts about a host that requirements can compare, by Blazar's names."""
    return {
        **{NAMES.get(name, name): value for name, value in zip(FACTS, own, strict=True)},
        **{name: totals.get(class_name, 0) for name, class_name in AMOUNTS.items()},
    }


def _traits(tx: Tx, providers: Collection[ProviderId]) -> dict[ProviderId, list[str]]:
    found: dict[ProviderId, list[str]] = {}
    for provider_id, name in by_ids.rows(tx, _TRAITS, providers):
        found.setdefault(ProviderId(provider_id), []).append(name)
    return found


def _amounts(
    tx: Tx, providers: Collection[ProviderId]
) -> dict[ProviderId, tuple[dict[str, int], dict[str, int]]]:
    """Return the totals and the capacities of these providers by class.

    A capacity is the total without the reserved amount. An allocation ratio above 1 does not
    increase it.
    """
    found: dict[ProviderId, tuple[dict[str, int], dict[str, int]]] = {
        each: ({}, {}) for each in providers
    }
    for provider_id, name, total, reserved, ratio in by_ids.rows(tx, _INVENTORIES, providers):
        totals, capacities = found[ProviderId(provider_id)]
        totals[name] = total
        capacities[name] = int((total - reserved) * min(1.0, ratio))
    return found


def capacities(tx: Tx, providers: Collection[ProviderId]) -> dict[ProviderId, dict[str, int]]:
    """Return the capacities of these providers by class, without overcommitment."""
    return {each: amounts[1] for each, amounts in _amounts(tx, providers).items()}


def change(tx: Tx, host_id: int, **values: Any) -> None:
    """Update columns of a host of the freepool."""
    query = freepool_hosts.update().where(freepool_hosts.c.host_id == host_id)
    tx.execute(query.values(**values))


def leaving(tx: Tx, now: datetime) -> list[int]:
    """Return the row ids of the hosts that are due to leave the freepool, sorted."""
    query = sa.select(freepool_hosts.c.host_id).where(freepool_hosts.c.leaves_at <= now)
    # Sort in Python, because SQLite would scan all hosts for an ORDER BY.
    return sorted(tx.execute(query).scalars())


def totals(tx: Tx, providers: Collection[ProviderId]) -> Mapping[ProviderId, dict[str, int]]:
    """Return the totals of these providers' inventories, by provider and class."""
    found: dict[ProviderId, dict[str, int]] = {}
    for provider_id, name, total in by_ids.rows(tx, _TOTALS, providers):
        found.setdefault(ProviderId(provider_id), {})[name] = total
    return found
