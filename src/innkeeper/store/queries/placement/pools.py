"""Queries for pools: providers that share their inventories with hosts, through aggregates.

:mod:`innkeeper.domain.placement` defines pools and the hosts that they serve.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.ids import ClassId, ProviderId, ProviderUuid
from innkeeper.domain.placement import SHARES
from innkeeper.store import by_ids
from innkeeper.store.by_ids import IDS
from innkeeper.store.prepared import PreparedForIds
from innkeeper.store.tables.compute import hosts
from innkeeper.store.tables.placement import (
    inventories,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
    traits,
)
from innkeeper.store.transactions import Tx

_ROOT = sa.func.coalesce(resource_providers.c.root_provider_id, resource_providers.c.id)
# Begin with the trait, because few providers have it. An aggregate can have thousands of members.
_POOLS = (
    sa.select(resource_providers.c.id, resource_providers.c.uuid)
    .join(
        resource_provider_traits,
        resource_provider_traits.c.resource_provider_id == resource_providers.c.id,
    )
    .join(traits, traits.c.id == resource_provider_traits.c.trait_id)
    .where(traits.c.name == sa.literal(SHARES, literal_execute=True))
    .where(resource_providers.c.can_host == sa.literal(0, literal_execute=True))
)
_POOLS_AMONG = PreparedForIds(_POOLS.where(resource_providers.c.id.in_(IDS)))
_ROOTS = sa.select(resource_providers.c.id, _ROOT)
_ROOTS_OF = PreparedForIds(_ROOTS.where(resource_providers.c.id.in_(IDS)))
_TREE_LINKS = sa.select(_ROOT, resource_provider_aggregates.c.aggregate_uuid).join(
    resource_provider_aggregates,
    resource_provider_aggregates.c.resource_provider_id == resource_providers.c.id,
)
# The root's id is null in the root itself. Two queries, so that each can use an index.
_TREE_LINKS_OF = (
    PreparedForIds(_TREE_LINKS.where(resource_providers.c.id.in_(IDS))),
    PreparedForIds(_TREE_LINKS.where(resource_providers.c.root_provider_id.in_(IDS))),
)


def uuids(tx: Tx, among: Collection[ProviderId] | None = None) -> dict[ProviderId, ProviderUuid]:
    """Return the uuids of all pools, or of the pools in ``among``."""
    rows: list[Any] = list(tx.execute(_POOLS)) if among is None else _POOLS_AMONG.rows(tx, among)
    return {ProviderId(provider_id): ProviderUuid(uuid) for provider_id, uuid in rows}


def roots(tx: Tx, providers: Collection[ProviderId] | None) -> dict[ProviderId, ProviderId]:
    """Return the roots of these providers, or of all hosts. A root is its own root."""
    of_hosts = _ROOTS.join(hosts, hosts.c.provider_id == resource_providers.c.id)
    rows: list[Any] = (
        list(tx.execute(of_hosts)) if providers is None else _ROOTS_OF.rows(tx, providers)
    )
    return {ProviderId(provider_id): ProviderId(root) for provider_id, root in rows}


def tree_aggregates(tx: Tx, roots: Collection[ProviderId] | None) -> dict[ProviderId, set[str]]:
    """Return the aggregates of these trees, by root. ``None`` means all trees."""
    links: list[Any] = (
        list(tx.execute(_TREE_LINKS))
        if roots is None
        else [row for each in _TREE_LINKS_OF for row in each.rows(tx, roots)]
    )
    found: dict[ProviderId, set[str]] = {}
    for root, aggregate in links:
        found.setdefault(ProviderId(root), set()).add(aggregate)
    return found


def hosts_served(tx: Tx, pool: ProviderId, limit: int) -> list[ProviderId]:
    """Return at most ``limit`` hosts whose tree has a member in an aggregate of the pool."""
    links, others = resource_provider_aggregates, resource_provider_aggregates.alias("others")
    mine = sa.select(links.c.aggregate_uuid).where(links.c.resource_provider_id == pool)
    trees = (
        sa.select(_ROOT)
        .join(others, others.c.resource_provider_id == resource_providers.c.id)
        .where(others.c.aggregate_uuid.in_(mine))
        .where(resource_providers.c.id != pool)
    )
    host = resource_providers.alias("host")
    query = (
        sa.select(host.c.id)
        .join(hosts, hosts.c.provider_id == host.c.id)
        .where(sa.func.coalesce(host.c.root_provider_id, host.c.id).in_(trees))
        .limit(limit)
    )
    return [ProviderId(each) for each in tx.execute(query).scalars()]


def depended_on(tx: Tx, class_id: ClassId) -> set[ProviderId]:
    """Return the pools of this class that serve at least one host without its own capacity."""
    theirs = resource_provider_aggregates
    lending = (
        sa.select(theirs.c.resource_provider_id, theirs.c.aggregate_uuid)
        .join(inventories, inventories.c.resource_provider_id == theirs.c.resource_provider_id)
        .where(inventories.c.resource_class_id == class_id)
        .where(theirs.c.resource_provider_id.in_(IDS))
    )
    members: dict[str, set[ProviderId]] = {}
    for pool, aggregate in by_ids.rows(tx, lending, sorted(uuids(tx))):
        members.setdefault(aggregate, set()).add(ProviderId(pool))
    # Query each aggregate once. A query for each pool would read the same aggregates again and
    # again.
    lacking = by_ids.rows(tx, _aggregates_lacking(class_id), sorted(members))
    return set[ProviderId]().union(*(members[aggregate] for (aggregate,) in lacking))


def _aggregates_lacking(class_id: ClassId) -> sa.Select[tuple[str]]:
    """Return the query for the aggregates that have a host without its own capacity of a class."""
    # SELECT aggregate FROM <these aggregates>
    #  WHERE EXISTS (SELECT 1 FROM <its links> JOIN <member> JOIN <host in the member's tree>
    #    WHERE NOT EXISTS (SELECT 1 FROM <the host's inventories of the class with capacity>))
    table = resource_provider_aggregates
    given = (
        sa.select(table.c.aggregate_uuid)
        .where(table.c.aggregate_uuid.in_(IDS))
        .distinct()
        .subquery("given")
    )
    links = table.alias("links")
    member = resource_providers.alias("member")
    host = resource_providers.alias("host")
    has = inventories.alias("has")
    root = sa.func.coalesce(member.c.root_provider_id, member.c.id)
    has_own = sa.exists(
        sa.select(sa.literal(1))
        .select_from(has)
        .where(has.c.resource_provider_id == host.c.id)
        .where(has.c.resource_class_id == class_id)
        .where((has.c.total - has.c.reserved) * has.c.allocation_ratio >= 1)
        .correlate(host)
    )
    serves = sa.exists(
        sa.select(sa.literal(1))
        .select_from(links)
        .join(member, member.c.id == links.c.resource_provider_id)
        .join(host, (host.c.id == root) | (host.c.root_provider_id == root))
        .join(hosts, hosts.c.provider_id == host.c.id)
        .where(links.c.aggregate_uuid == given.c.aggregate_uuid)
        .where(~has_own)
        .correlate(given)
    )
    return sa.select(given.c.aggregate_uuid).where(serves)
