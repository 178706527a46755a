"""Pools: providers that share what they have with hosts, through aggregates.

A pool has the trait :data:`SHARES` and cannot hold servers. It serves a host if any provider
of the host's tree is in one of the pool's aggregates.

May be false: that a pool lends a class to a host that it serves. What a host has itself it
does not borrow.
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
# Begins at the trait, of which there are few owners; an aggregate can have thousands.
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
_TREE_LINKS = sa.select(_ROOT, resource_provider_aggregates.c.aggregate_uuid).join(
    resource_provider_aggregates,
    resource_provider_aggregates.c.resource_provider_id == resource_providers.c.id,
)
_ROOTS = sa.select(resource_providers.c.id, _ROOT)
_MEMBERS = sa.select(resource_providers.c.id)


def _in_trees(roots: sa.BindParameter[object]) -> sa.ColumnElement[bool]:
    # A root does not name itself. Two indexes, one for each half.
    return resource_providers.c.id.in_(roots) | resource_providers.c.root_provider_id.in_(roots)


def uuids(
    tx: Tx, among: Collection[ProviderId] | None = None
) -> dict[ProviderId, ProviderUuid]:
    """The pools, all or those among these providers."""
    rows: list[Any] = (
        list(tx.execute(_POOLS)) if among is None else _POOLS_AMONG.rows(tx, among)
    )
    return {ProviderId(provider_id): ProviderUuid(uuid) for provider_id, uuid in rows}


def tree_aggregates(
    tx: Tx, providers: Collection[ProviderId] | None
) -> dict[ProviderId, set[str]]:
    """The aggregates of these providers' whole trees, or of all hosts'; none without any."""
    if providers is None:
        rooted = list(
            tx.execute(_ROOTS.join(hosts, hosts.c.provider_id == resource_providers.c.id))
        )
        links = list(tx.execute(_TREE_LINKS))
    else:
        rooted = by_ids.rows(
            tx, _ROOTS.where(resource_providers.c.id.in_(IDS)), sorted(providers)
        )
        roots = sorted({root for _, root in rooted})
        links = by_ids.rows(tx, _TREE_LINKS.where(_in_trees(IDS)), roots)
    by_root: dict[int, set[str]] = {}
    for root, aggregate in links:
        by_root.setdefault(root, set()).add(aggregate)
    return {ProviderId(each): by_root[root] for each, root in rooted if root in by_root}


def hosts_in_trees(tx: Tx, providers: Collection[ProviderId]) -> set[ProviderId]:
    """The hosts' providers in the trees that these providers are in."""
    # In steps: with a join, a database may begin with all hosts.
    query = _ROOTS.where(resource_providers.c.id.in_(IDS))
    roots = {root for _, root in by_ids.rows(tx, query, sorted(providers))}
    members = [row[0] for row in by_ids.rows(tx, _MEMBERS.where(_in_trees(IDS)), sorted(roots))]
    bound = sa.select(hosts.c.provider_id).where(hosts.c.provider_id.in_(IDS))
    return {ProviderId(row[0]) for row in by_ids.rows(tx, bound, members)}


def depended_on(tx: Tx, class_id: ClassId) -> set[ProviderId]:
    """The pools that serve some host which has nothing of this class itself."""
    # SELECT DISTINCT pool FROM <pools' links> JOIN <their inventories of the class>
    #  WHERE EXISTS (SELECT 1 FROM <links of the same aggregate> JOIN <member> JOIN <host>
    #    ON <host is in the member's tree>
    #    WHERE NOT EXISTS (SELECT 1 FROM <the host's inventories of the class with capacity>))
    theirs = resource_provider_aggregates.alias("theirs")
    links = resource_provider_aggregates.alias("links")
    member = resource_providers.alias("member")
    host = resource_providers.alias("host")
    root = sa.func.coalesce(member.c.root_provider_id, member.c.id)
    has = inventories.alias("has")
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
        .where(links.c.aggregate_uuid == theirs.c.aggregate_uuid)
        .where(~has_own)
        .correlate(theirs)
    )
    query = (
        sa.select(theirs.c.resource_provider_id)
        .distinct()
        .join(inventories, inventories.c.resource_provider_id == theirs.c.resource_provider_id)
        .where(inventories.c.resource_class_id == class_id)
        .where(theirs.c.resource_provider_id.in_(IDS))
        .where(serves)
    )
    return {ProviderId(row[0]) for row in by_ids.rows(tx, query, sorted(uuids(tx)))}
