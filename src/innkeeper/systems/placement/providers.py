"""Resource providers: found, made, renamed, hung below others, removed.

Always true: providers form trees without loops, and each knows its root. A name or a parent is
no capacity, so changing them moves no generation; whoever follows the store is told all the
same.
"""

from __future__ import annotations

from datetime import datetime

from innkeeper.domain.errors import AlreadyExists, ConcurrentUpdate, InUse, Invalid, NotFound
from innkeeper.domain.ids import ProviderId, ProviderUuid, canonical_uuid
from innkeeper.domain.placement import Provider, ProviderQuery
from innkeeper.store import changes
from innkeeper.store.queries.placement import names, providers
from innkeeper.store.transactions import Tx


def get(tx: Tx, uuid: str) -> Provider:
    """The provider with this uuid. Raises :class:`NotFound`, for text that is no uuid too."""
    canonical = canonical_uuid(uuid)
    found = None if canonical is None else providers.by_uuid(tx, ProviderUuid(canonical))
    if found is None:
        raise NotFound(f"No resource provider with uuid {uuid} found")
    return found


def listing(tx: Tx, query: ProviderQuery) -> list[Provider]:
    """All providers that fit. Raises :class:`Invalid` for a class or trait that is not there.

    An aggregate or a tree that is not there is no mistake: nothing is in it.
    """
    class_ids = names.class_ids(tx, query.resources.keys())
    for name in query.resources:
        if name not in class_ids:
            raise Invalid(
                f"Invalid resource class in resources parameter: No such resource class {name}."
            )
    wanted = query.forbidden.union(*query.required)
    trait_ids = names.trait_ids(tx, wanted)
    missing = sorted(wanted - trait_ids.keys())
    if missing:
        raise Invalid(
            f'Invalid trait(s) in "required" parameter: No such trait(s): {", ".join(missing)}.'
        )
    return providers.matching(tx, query, class_ids, trait_ids)


def create(
    tx: Tx, uuid: str, name: str, parent_uuid: str | None, *, can_host: bool = False, now: datetime
) -> Provider:
    """Make a provider without any inventory; servers land on it only if it ``can_host``.

    Raises :class:`AlreadyExists` for a uuid or a name in use, and :class:`Invalid` for a parent
    that is not there.
    """
    canonical = ProviderUuid(canonical_uuid(uuid) or uuid)
    deed = f'Unable to create resource provider "{name}", {canonical}'
    if not name:
        raise Invalid(f"{deed}: Object action create failed because: name is required")
    parent = None
    if parent_uuid is not None:
        if canonical_uuid(parent_uuid) == canonical:
            raise Invalid(
                f"{deed}: Object action create failed because: parent provider UUID cannot be "
                "same as UUID. Please set parent provider UUID to None if there is no parent."
            )
        parent = _parent(tx, parent_uuid, deed)
    if providers.by_uuid(tx, canonical) is not None:
        raise AlreadyExists(f"Conflicting resource provider uuid: {canonical} already exists.")
    if providers.is_name_taken(tx, name):
        raise AlreadyExists(f"Conflicting resource provider name: {name} already exists.")
    family = (None, None) if parent is None else (parent.id, _root_id(tx, parent))
    provider_id = providers.insert(tx, canonical, name, family, can_host=can_host, now=now)
    changes.add_always_read(tx, [provider_id], now)
    return get(tx, canonical)


def _parent(tx: Tx, uuid: str, deed: str) -> Provider:
    try:
        return get(tx, uuid)
    except NotFound:
        # "create" for a change as well: so clients know it.
        raise Invalid(
            f"{deed}: Object action create failed because: parent provider UUID does not exist."
        ) from None


def _root_id(tx: Tx, provider: Provider) -> ProviderId:
    if provider.root_uuid == provider.uuid:
        return provider.id
    return providers.ids_by_uuid(tx, [provider.root_uuid])[provider.root_uuid]


def rename(tx: Tx, uuid: str, name: str, now: datetime) -> Provider:
    """Give a provider another name. Raises :class:`AlreadyExists` if it is in use."""
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
    """Hang a provider, with all below it, under another parent; or make it a root.

    ``only_roots`` refuses to move a provider that has a parent already. Raises
    :class:`Invalid` for that, for a parent that is not there, and for one below the provider.
    """
    provider = get(tx, uuid)
    deed = f"Unable to save resource provider {provider.uuid}"
    cannot = f"{deed}: Object action update failed because"
    parent = None if parent_uuid is None else _parent(tx, parent_uuid, deed)
    if (None if parent is None else parent.uuid) == provider.parent_uuid:
        return provider
    if only_roots and provider.parent_uuid is not None:
        verb = "un-parenting" if parent is None else "re-parenting"
        raise Invalid(f"{cannot}: {verb} a provider is not currently allowed.")
    family = providers.family_of(tx, _root_id(tx, provider))
    subtree = _below(provider.id, family)
    if parent is not None and parent.id in subtree:
        raise Invalid(f"{cannot}: creating loop in the provider tree is not allowed.")
    parent_id = None if parent is None else parent.id
    root_id = None if parent is None else _root_id(tx, parent)
    # Who is left behind is told as well: the aggregates of a tree are those of all in it.
    told = {*subtree, _root_id(tx, provider)}
    providers.move(tx, subtree, parent_id, root_id, now)
    changes.add_always_read(tx, sorted(told), now)
    return get(tx, uuid)


def _below(top: ProviderId, family: dict[ProviderId, ProviderId | None]) -> list[ProviderId]:
    children: dict[ProviderId | None, list[ProviderId]] = {}
    for provider_id, parent_id in family.items():
        children.setdefault(parent_id, []).append(provider_id)
    found = [top]
    for each in found:
        # The list grows while it is gone through; without loops it comes to an end.
        found += children.get(each, [])
    return found


def delete(tx: Tx, uuid: str, now: datetime) -> None:
    """Remove a provider with its inventories, traits and links to aggregates.

    Raises :class:`InUse` while it has children, or anybody holds something of it, or a host
    or a server is bound to it.
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
    if providers.is_held(tx, provider.id):
        raise InUse(
            f"Unable to delete resource provider {provider.uuid}: "
            "Resource provider has allocations.",
            code="resource_provider.inuse",
        )
    if providers.is_a_hosts(tx, provider.id):
        raise InUse(
            f"Unable to delete resource provider {provider.uuid}: a host or a server is bound "
            "to it.",
            code="resource_provider.inuse",
        )
    root_id = _root_id(tx, provider)
    if not providers.delete(tx, provider.id, provider.generation):
        raise ConcurrentUpdate(
            f"Unable to delete resource provider {provider.uuid}: it was concurrently updated."
        )
    changes.add_always_read(tx, sorted({provider.id, root_id}), now)
