"""Database access for resource providers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.hosts import KeptRatio
from innkeeper.domain.ids import ClassId, Generation, ProviderId, ProviderUuid, TraitId
from innkeeper.domain.placement import Provider, ProviderQuery
from innkeeper.store import by_ids, records
from innkeeper.store.by_ids import IDS
from innkeeper.store.prepared import Prepared, PreparedForIds
from innkeeper.store.tables.compute import hosts, servers
from innkeeper.store.tables.placement import (
    allocations,
    inventories,
    resource_provider_aggregates,
    resource_provider_traits,
    resource_providers,
)
from innkeeper.store.transactions import Tx

_PARENTS = resource_providers.alias("parents")
_ROOTS = resource_providers.alias("roots")
_PROVIDERS = (
    sa.select(
        *records.columns(
            resource_providers,
            Provider,
            parent_uuid=_PARENTS.c.uuid,
            root_uuid=sa.func.coalesce(_ROOTS.c.uuid, resource_providers.c.uuid),
        )
    )
    .outerjoin(_PARENTS, _PARENTS.c.id == resource_providers.c.parent_provider_id)
    .outerjoin(_ROOTS, _ROOTS.c.id == resource_providers.c.root_provider_id)
)
_BY_UUID = Prepared(_PROVIDERS.where(resource_providers.c.uuid == sa.bindparam("uuid")))
_IDS = PreparedForIds(
    sa.select(resource_providers.c.uuid, resource_providers.c.id).where(
        resource_providers.c.uuid.in_(IDS)
    )
)


@dataclass(frozen=True, slots=True)
class Family:
    """The place of a provider in its tree, by row ids. A root is its own root."""

    id: ProviderId
    uuid: ProviderUuid
    parent_id: ProviderId | None
    root_id: ProviderId


_FAMILIES = sa.select(
    resource_providers.c.id,
    resource_providers.c.uuid,
    resource_providers.c.parent_provider_id,
    sa.func.coalesce(resource_providers.c.root_provider_id, resource_providers.c.id),
)


def families(tx: Tx, ids: Collection[ProviderId] | None) -> list[Family]:
    """Return the places of these providers, or of all providers, in their trees.

    Unknown ids are ignored.
    """
    only = None if ids is None else sorted(ids)
    rows = by_ids.narrowed(tx, _FAMILIES, resource_providers.c.id, only)
    return [Family(*row) for row in rows]


def by_uuid(tx: Tx, uuid: ProviderUuid) -> Provider | None:
    """Return the provider with this uuid."""
    return next((_provider(row) for row in _BY_UUID.rows(tx, {"uuid": uuid})), None)


def _provider(row: Sequence[Any]) -> Provider:
    row_id, uuid, name, generation, can_host, *rest = row
    return Provider(row_id, uuid, name, generation, bool(can_host), *rest)


def ids_by_uuid(tx: Tx, uuids: Iterable[ProviderUuid]) -> dict[ProviderUuid, ProviderId]:
    """Return the row ids of the providers with these uuids. Unknown uuids are ignored."""
    return {ProviderUuid(uuid): ProviderId(row_id) for uuid, row_id in _IDS.rows(tx, uuids)}


def is_name_taken(tx: Tx, name: str, but_by: ProviderId | None = None) -> bool:
    """Return whether a provider has this name. The provider ``but_by`` does not count."""
    query = sa.select(resource_providers.c.id).where(resource_providers.c.name == name)
    if but_by is not None:
        query = query.where(resource_providers.c.id != but_by)
    return tx.execute(query.limit(1)).first() is not None


def matching(
    tx: Tx, query: ProviderQuery, class_ids: Mapping[str, ClassId], trait_ids: Mapping[str, TraitId]
) -> list[Provider]:
    """Return the providers that match a query, oldest first.

    ``class_ids`` and ``trait_ids`` must contain all names of the query.
    """
    found = _PROVIDERS.order_by(resource_providers.c.id)
    if query.name is not None:
        found = found.where(resource_providers.c.name == query.name)
    if query.uuid is not None:
        found = found.where(resource_providers.c.uuid == query.uuid)
    if query.in_tree is not None:
        found = found.where(_is_in_tree(query.in_tree))
    for aggregates in query.member_of:
        found = found.where(_is_member(aggregates))
    if query.not_member_of:
        found = found.where(sa.not_(_is_member(query.not_member_of)))
    for names in query.required:
        found = found.where(_has_trait({trait_ids[name] for name in names}))
    if query.forbidden:
        found = found.where(sa.not_(_has_trait({trait_ids[name] for name in query.forbidden})))
    for name, amount in query.resources.items():
        found = found.where(_has_room(class_ids[name], amount))
    return [_provider(row) for row in tx.execute(found)]


def _is_in_tree(uuid: ProviderUuid) -> sa.ColumnElement[bool]:
    named = resource_providers.alias("named")
    root = (
        sa.select(sa.func.coalesce(named.c.root_provider_id, named.c.id))
        .where(named.c.uuid == uuid)
        .scalar_subquery()
    )
    table = resource_providers
    return sa.or_(table.c.id == root, table.c.root_provider_id == root)


def _is_member(aggregates: Collection[str]) -> sa.ColumnElement[bool]:
    links = resource_provider_aggregates
    return resource_providers.c.id.in_(
        sa.select(links.c.resource_provider_id).where(
            links.c.aggregate_uuid.in_(sorted(aggregates))
        )
    )


def _has_trait(traits: Collection[TraitId]) -> sa.ColumnElement[bool]:
    links = resource_provider_traits
    return resource_providers.c.id.in_(
        sa.select(links.c.resource_provider_id).where(links.c.trait_id.in_(sorted(traits)))
    )


def _has_room(class_id: ClassId, amount: int) -> sa.ColumnElement[bool]:
    # EXISTS (SELECT 1 FROM inventories WHERE <this provider and class>
    #   AND (total - reserved) * allocation_ratio >= <sum of the allocations> + :amount
    #   AND :amount BETWEEN min_unit AND max_unit
    #   AND (:amount = min_unit OR :amount % step_size = 0))
    has = inventories.c
    # Clients may request any number, but some databases compare only values that fit the columns.
    requested = sa.literal(amount, sa.BigInteger)
    held = (
        sa.select(sa.func.coalesce(sa.func.sum(allocations.c.used), 0))
        .where(allocations.c.resource_provider_id == resource_providers.c.id)
        .where(allocations.c.resource_class_id == class_id)
        .correlate(resource_providers)
        .scalar_subquery()
    )
    return sa.exists(
        sa.select(sa.literal(1))
        .select_from(inventories)
        .where(has.resource_provider_id == resource_providers.c.id)
        .where(has.resource_class_id == class_id)
        .where((has.total - has.reserved) * has.allocation_ratio >= held + requested)
        .where(has.min_unit <= requested)
        .where(has.max_unit >= requested)
        .where(sa.or_(has.min_unit == requested, requested % has.step_size == 0))
        .correlate(resource_providers)
    )


def insert(
    tx: Tx,
    uuid: ProviderUuid,
    name: str,
    family: tuple[ProviderId | None, ProviderId | None],
    *,
    can_host: bool,
    now: datetime,
) -> ProviderId:
    """Insert a provider. ``family`` is the pair (parent's row id, root's row id)."""
    result = tx.execute(
        resource_providers.insert().values(
            uuid=uuid,
            name=name,
            generation=0,
            can_host=int(can_host),
            parent_provider_id=family[0],
            root_provider_id=family[1],
            created_at=now,
            updated_at=now,
        )
    )
    assert result.inserted_primary_key is not None
    return ProviderId(result.inserted_primary_key[0])


def rename(tx: Tx, provider_id: ProviderId, name: str, now: datetime) -> None:
    """Rename a provider."""
    tx.execute(
        resource_providers.update()
        .where(resource_providers.c.id == provider_id)
        .values(name=name, updated_at=now)
    )


def move(
    tx: Tx,
    subtree: Sequence[ProviderId],
    parent_id: ProviderId | None,
    root_id: ProviderId | None,
    now: datetime,
) -> None:
    """Move a subtree to another parent. If ``parent_id`` is ``None``, make it a separate tree.

    The first provider in ``subtree`` must be the subtree's root.
    """
    top, *others = subtree
    table = resource_providers
    tx.execute(
        table.update()
        .where(table.c.id == top)
        .values(parent_provider_id=parent_id, root_provider_id=root_id, updated_at=now)
    )
    if others:
        tx.execute(
            table.update()
            .where(table.c.id.in_(others))
            .values(root_provider_id=top if root_id is None else root_id, updated_at=now)
        )


def family_of(tx: Tx, root_id: ProviderId) -> dict[ProviderId, ProviderId | None]:
    """Return all providers of a tree, each with its parent."""
    table = resource_providers
    rows = tx.execute(
        sa.select(table.c.id, table.c.parent_provider_id).where(
            sa.or_(table.c.id == root_id, table.c.root_provider_id == root_id)
        )
    )
    return {row_id: parent for row_id, parent in rows}


def parents_of(tx: Tx, ids: Collection[ProviderId]) -> dict[ProviderId, ProviderId | None]:
    """Return the parents of these providers. The parent of a root is ``None``."""
    query = sa.select(resource_providers.c.id, resource_providers.c.parent_provider_id)
    rows = by_ids.rows(tx, query.where(resource_providers.c.id.in_(IDS)), ids)
    return {row_id: parent for row_id, parent in rows}


def write_root(tx: Tx, provider_id: ProviderId, root_id: ProviderId | None, now: datetime) -> None:
    """Set the root of a provider, or ``None`` if the provider is a root."""
    tx.execute(
        resource_providers.update()
        .where(resource_providers.c.id == provider_id)
        .values(root_provider_id=root_id, updated_at=now)
    )


def has_children(tx: Tx, provider_id: ProviderId) -> bool:
    """Return whether a provider has children."""
    return _is_there(tx, resource_providers.c.parent_provider_id, provider_id)


def is_held(tx: Tx, provider_id: ProviderId) -> bool:
    """Return whether a provider has allocations."""
    return _is_there(tx, allocations.c.resource_provider_id, provider_id)


def is_a_hosts(tx: Tx, provider_id: ProviderId) -> bool:
    """Return whether a host or a server refers to a provider."""
    return _is_there(tx, hosts.c.provider_id, provider_id) or _is_there(
        tx, servers.c.provider_id, provider_id
    )


_KEPT_RATIOS = (
    sa.select(hosts.c.provider_id, hosts.c.kept_ratios)
    .where(hosts.c.kept_ratios.is_not(None))
    .where(hosts.c.provider_id.in_(IDS))
)


def kept_ratios(tx: Tx, ids: Collection[ProviderId]) -> dict[ProviderId, dict[str, KeptRatio]]:
    """Return the ratios that dedications set on these providers' hosts, by provider and class."""
    return {
        ProviderId(provider_id): {name: KeptRatio(*each) for name, each in kept.items()}
        for provider_id, kept in by_ids.rows(tx, _KEPT_RATIOS, sorted(ids))
        # A JSON column can contain the JSON value null.
        if kept
    }


def _is_there(tx: Tx, column: sa.Column[Any], provider_id: ProviderId) -> bool:
    query = sa.select(sa.literal(1)).select_from(column.table).where(column == provider_id)
    return tx.execute(query.limit(1)).first() is not None


def delete(tx: Tx, provider_id: ProviderId, seen: Generation) -> bool:
    """Delete a provider with its inventories, traits and aggregates.

    Returns False if the provider's generation is no longer ``seen``.
    """
    for table in (inventories, resource_provider_traits, resource_provider_aggregates):
        tx.execute(table.delete().where(table.c.resource_provider_id == provider_id))
    result = tx.execute(
        resource_providers.delete()
        .where(resource_providers.c.id == provider_id)
        .where(resource_providers.c.generation == seen)
    )
    return result.rowcount == 1
