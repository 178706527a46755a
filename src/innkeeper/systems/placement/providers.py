"""Find, create, rename, move and delete resource providers.

Always true: providers form trees without cycles, and each provider's row names its root. Renaming
or moving a provider does not advance its generation, because its capacity stays the same. The write
only adds a row to the change feed, the table that tells processes which providers have changed.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from innkeeper.domain.errors import (
    AlreadyExists,
    ConcurrentUpdate,
    InUse,
    Invalid,
    NotFound,
    Overtaken,
    ProviderChanged,
)
from innkeeper.domain.ids import Generation, ProviderId, ProviderUuid, canonical_uuid
from innkeeper.domain.placement import Provider, ProviderQuery
from innkeeper.store import changes, claims
from innkeeper.store.queries.placement import capacity, names, providers
from innkeeper.store.transactions import Tx


def get(tx: Tx, uuid: str) -> Provider:
    """Return the provider with this uuid. Raises :class:`NotFound`, also for an invalid uuid."""
    canonical = canonical_uuid(uuid)
    found = None if canonical is None else providers.by_uuid(tx, ProviderUuid(canonical))
    if found is None:
        raise NotFound(f"No resource provider with uuid {uuid} found")
    return found


def demand_generation(provider: Provider, seen: int, message: str | None = None) -> None:
    """Raise :class:`ConcurrentUpdate` if ``seen`` is not the provider's generation."""
    if provider.generation != seen:
        raise ConcurrentUpdate(
            message
            or f"resource provider generation conflict: {provider.uuid} is at "
            f"{provider.generation}, not at {seen}"
        )


def advance(tx: Tx, provider: Provider, now: datetime) -> Generation:
    """Advance a provider's generation, and return the new generation.

    The caller has read the provider in this transaction.

    Raises :class:`Overtaken` if another writer has advanced the generation since the caller's read.
    The caller must then roll back everything that this transaction wrote.
    """
    try:
        moved = claims.advance(tx, {provider.id: provider.generation}, now)
    except ProviderChanged as error:
        # The owner of a pcloud may read this message about its host, but must not see the uuid.
        raise Overtaken(
            "resource provider generation conflict: the provider was concurrently updated"
        ) from error
    return moved[provider.id]


def advance_all(tx: Tx, ids: Collection[ProviderId], now: datetime) -> None:
    """Advance the generations of these providers, whatever the present generations are.

    Raises :class:`Overtaken` if another writer advances one of the generations at the same time.
    """
    seen = {
        ProviderId(provider_id): Generation(generation)
        for provider_id, generation in capacity.generation_rows(tx, ids)
    }
    try:
        claims.advance(tx, seen, now)
    except ProviderChanged as error:
        raise Overtaken("Another writer changed one of the hosts at the same time.") from error


def listing(tx: Tx, query: ProviderQuery) -> list[Provider]:
    """Return all providers that match. Raises :class:`Invalid` for an unknown class or trait.

    An unknown aggregate or tree is allowed, and matches no provider.
    """
    class_ids = names.class_ids(tx, query.resources.keys())
    for name in query.resources:
        if name not in class_ids:
            raise Invalid(
                f"Invalid resource class in resources parameter: No such resource class {name}."
            )
    traits = query.forbidden.union(*query.required)
    trait_ids = names.trait_ids(tx, traits)
    missing = sorted(traits - trait_ids.keys())
    if missing:
        raise Invalid(
            f'Invalid trait(s) in "required" parameter: No such trait(s): {", ".join(missing)}.'
        )
    return providers.matching(tx, query, class_ids, trait_ids)


def create(
    tx: Tx, uuid: str, name: str, parent_uuid: str | None, *, can_host: bool = False, now: datetime
) -> Provider:
    """Create a provider without inventories. With ``can_host``, servers can run on the provider.

    Raises :class:`AlreadyExists` if the uuid or the name is in use. Raises :class:`Invalid` for an
    unknown parent.
    """
    canonical = ProviderUuid(canonical_uuid(uuid) or uuid)
    prefix = f'Unable to create resource provider "{name}", {canonical}'
    if not name:
        raise Invalid(f"{prefix}: Object action create failed because: name is required")
    parent = None
    if parent_uuid is not None:
        if canonical_uuid(parent_uuid) == canonical:
            raise Invalid(
                f"{prefix}: Object action create failed because: parent provider UUID cannot be "
                "same as UUID. Please set parent provider UUID to None if there is no parent."
            )
        parent = _parent(tx, parent_uuid, prefix)
    if providers.by_uuid(tx, canonical) is not None:
        raise AlreadyExists(f"Conflicting resource provider uuid: {canonical} already exists.")
    if providers.is_name_taken(tx, name):
        raise AlreadyExists(f"Conflicting resource provider name: {name} already exists.")
    family = (None, None) if parent is None else (parent.id, _root_id(tx, parent))
    provider_id = providers.insert(tx, canonical, name, family, can_host=can_host, now=now)
    changes.add_always_read(tx, [provider_id], now)
    return get(tx, canonical)


def _parent(tx: Tx, uuid: str, prefix: str) -> Provider:
    try:
        return get(tx, uuid)
    except NotFound:
        # OpenStack's Placement says "create" for an update as well, and clients match on it.
        raise Invalid(
            f"{prefix}: Object action create failed because: parent provider UUID does not exist."
        ) from None


def _root_id(tx: Tx, provider: Provider) -> ProviderId:
    if provider.root_uuid == provider.uuid:
        return provider.id
    return providers.ids_by_uuid(tx, [provider.root_uuid])[provider.root_uuid]


def rename(tx: Tx, uuid: str, name: str, now: datetime) -> Provider:
    """Rename a provider. Raises :class:`AlreadyExists` if the name is in use."""
    provider = get(tx, uuid)
    if not name:
        raise Invalid(
            f"Unable to save resource provider {provider.uuid}: "
            "Object action update failed because: name is required"
        )
    if providers.is_name_taken(tx, name, but_by=provider.id):
        raise AlreadyExists(f"Conflicting resource provider {name} already exists.")
    providers.rename(tx, provider.id, name, now)
    changes.add_always_read(tx, [provider.id], now)
    return get(tx, uuid)


def hang(
    tx: Tx, uuid: str, parent_uuid: str | None, now: datetime, *, only_roots: bool = False
) -> Provider:
    """Move a provider and its subtree below another parent.

    If ``parent_uuid`` is ``None``, the provider becomes a root. Raises :class:`Invalid` if the
    parent is unknown or in the subtree. With ``only_roots``, also raises :class:`Invalid` if the
    provider already has a parent.
    """
    provider = get(tx, uuid)
    prefix = f"Unable to save resource provider {provider.uuid}"
    refusal = f"{prefix}: Object action update failed because"
    parent = None if parent_uuid is None else _parent(tx, parent_uuid, prefix)
    if (None if parent is None else parent.uuid) == provider.parent_uuid:
        return provider
    if only_roots and provider.parent_uuid is not None:
        verb = "un-parenting" if parent is None else "re-parenting"
        raise Invalid(f"{refusal}: {verb} a provider is not currently allowed.")
    family = providers.family_of(tx, _root_id(tx, provider))
    subtree = _below(provider.id, family)
    if parent is not None and parent.id in subtree:
        raise Invalid(f"{refusal}: creating loop in the provider tree is not allowed.")
    parent_id, root_id = (None, None) if parent is None else (parent.id, _root_id(tx, parent))
    # The tree that the provider leaves changes too, because the providers of a tree share
    # aggregates.
    changed = {*subtree, _root_id(tx, provider)}
    providers.move(tx, subtree, parent_id, root_id, now)
    changes.add_always_read(tx, sorted(changed), now)
    return get(tx, uuid)


def _below(top: ProviderId, family: dict[ProviderId, ProviderId | None]) -> list[ProviderId]:
    children: dict[ProviderId | None, list[ProviderId]] = {}
    for provider_id, parent_id in family.items():
        children.setdefault(parent_id, []).append(provider_id)
    found = [top]
    for each in found:
        # The list grows while this loop reads it. A tree has no cycles, so the loop ends.
        found += children.get(each, [])
    return found


def delete(tx: Tx, uuid: str, now: datetime) -> None:
    """Delete a provider with its inventories, its traits and its memberships in aggregates.

    Raises :class:`InUse` while the provider has children or allocations, or while a host or a
    server is bound to the provider.
    """
    canonical = canonical_uuid(uuid)
    provider = None if canonical is None else providers.by_uuid(tx, ProviderUuid(canonical))
    if provider is None:
        raise NotFound(f"No resource provider with uuid {uuid} found for delete")
    if providers.has_children(tx, provider.id):
        raise InUse(
            f"Unable to delete parent resource provider {provider.uuid}: "
            "It has child resource providers.",
            code="resource_provider.cannot_delete_parent",
        )
    reason = None
    if providers.is_held(tx, provider.id):
        reason = "Resource provider has allocations."
    elif providers.is_a_hosts(tx, provider.id):
        reason = "a host or a server is bound to it."
    if reason is not None:
        raise InUse(
            f"Unable to delete resource provider {provider.uuid}: {reason}",
            code="resource_provider.inuse",
        )
    root_id = _root_id(tx, provider)
    if not providers.delete(tx, provider.id, provider.generation):
        raise ConcurrentUpdate(
            f"Unable to delete resource provider {provider.uuid}: it was concurrently updated."
        )
    changes.add_always_read(tx, sorted({provider.id, root_id}), now)
