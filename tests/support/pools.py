"""Pools for tests: created through the systems, and read from the store."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import sqlalchemy as sa

from innkeeper.domain.amounts import Inventory
from innkeeper.domain.placement import SHARES, ProviderQuery
from innkeeper.store.queries.placement import names, usages
from innkeeper.store.tables.placement import allocations
from innkeeper.store.transactions import Tx
from innkeeper.systems.placement import aggregates, inventories, providers, traits
from tests.support.clouds import NOW

RACK = "60000000-0000-4000-8000-00000000000a"
"""An aggregate."""
ROW = "60000000-0000-4000-8000-00000000000b"


def pool_uuid(number: int = 0) -> str:
    """Return the uuid of the pool with this number."""
    return f"50000000-0000-4000-8000-{number:012}"


def add_pool(
    tx: Tx,
    number: int = 0,
    has: Mapping[str, Inventory] | None = None,
    members: Collection[str] = (RACK,),
) -> str:
    """Make a pool of 100 GB, or of other inventories; returns its uuid."""
    uuid = pool_uuid(number)
    providers.create(tx, uuid, f"pool-{number}", None, now=NOW)
    inventories.replace(tx, uuid, 0, has or {"DISK_GB": Inventory(100)}, NOW)
    traits.replace(tx, uuid, None, {SHARES}, NOW)
    join(tx, uuid, *members)
    return uuid


def join(tx: Tx, uuid: str, *members: str) -> None:
    """Replace a provider's aggregates."""
    aggregates.replace(tx, uuid, providers.get(tx, uuid).generation, members, NOW)


def resize(tx: Tx, uuid: str, **has: Inventory) -> None:
    """Replace a provider's inventories."""
    seen = inventories.listing(tx, uuid).generation
    inventories.replace(tx, uuid, seen, has, NOW)


def used(tx: Tx, uuid: str) -> dict[str, int]:
    """Return the usage of a provider."""
    return usages.of_provider(tx, providers.get(tx, uuid).id)


def holdings(tx: Tx, consumer: str) -> dict[str, dict[str, int]]:
    """Return a consumer's allocations: amounts by class and provider."""
    class_names = {class_id: name for name, class_id in names.class_ids(tx).items()}
    rows = tx.execute(
        sa.select(
            allocations.c.resource_provider_id, allocations.c.resource_class_id, allocations.c.used
        ).where(allocations.c.consumer_id == consumer)
    )
    found: dict[str, dict[str, int]] = {}
    uuids = {each.id: each.uuid for each in providers.listing(tx, ProviderQuery())}
    for provider_id, class_id, amount in rows:
        found.setdefault(uuids[provider_id], {})[class_names[class_id]] = amount
    return found
