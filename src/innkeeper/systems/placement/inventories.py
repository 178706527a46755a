"""Read and write the inventories of providers, by resource class.

Always true: every write advances the provider's generation, even a write that changes nothing. A
class with allocations is never removed, but the inventory may shrink below the usage. If a pcloud
has set an allocation ratio on a host, a write that would change the ratio raises :class:`Conflict`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from innkeeper.domain.amounts import Inventory
from innkeeper.domain.errors import ConcurrentUpdate, Conflict, InUse, Invalid, NotFound
from innkeeper.domain.ids import ClassId, Generation, ProviderUuid
from innkeeper.domain.placement import InventoryLine, Provider
from innkeeper.store.queries.placement import allocations, names, provider_details, registration
from innkeeper.store.queries.placement import providers as provider_rows
from innkeeper.store.transactions import Tx
from innkeeper.systems.placement import providers, ratios
from innkeeper.systems.placement.ratios import Edit

IN_USE = "inventory.inuse"
UPDATE_CONFLICT = "update conflict: "


class ProviderInventories(NamedTuple):
    """A provider's inventories at one generation."""

    generation: Generation
    lines: list[InventoryLine]


def listing(tx: Tx, uuid: str) -> ProviderInventories:
    """Return all inventories of a provider. Raises :class:`NotFound`."""
    provider = providers.get(tx, uuid)
    return ProviderInventories(
        provider.generation, provider_details.inventory_lines(tx, provider.id)
    )


def get(tx: Tx, uuid: str, class_name: str) -> ProviderInventories:
    """Return a provider's inventory of one class.

    Raises :class:`NotFound` if the provider or the inventory does not exist.
    """
    whole = listing(tx, uuid)
    for line in whole.lines:
        if line.class_name == class_name:
            return ProviderInventories(whole.generation, [line])
    raise NotFound(f"No inventory of class {class_name} for {uuid}")


def add(
    tx: Tx,
    uuid: str,
    class_name: str,
    inventory: Inventory,
    now: datetime,
    *,
    leaves_some: bool = False,
) -> ProviderInventories:
    """Add an inventory of a class that the provider lacks. The generation is not checked.

    With ``leaves_some``, an inventory with a capacity of less than one unit is rejected. Raises
    :class:`Conflict` if the provider has an inventory of the class.
    """
    provider = providers.get(tx, uuid)
    prefix = f"Unable to create inventory for resource provider {provider.uuid}"
    requested = {class_name: inventory}
    must_have_capacity(provider.uuid, requested, prefix, leaves_some=leaves_some)
    (class_id,) = _class_ids(tx, requested, prefix)
    if class_name in {line.class_name for line in _lines(tx, provider)}:
        raise Conflict(
            f"Update conflict: resource provider {provider.uuid} has an inventory of class "
            f"{class_name} already.",
            code=ConcurrentUpdate.code,
        )
    _keep_ratios(tx, provider, requested)
    generation = providers.advance(tx, provider, now)
    registration.add_inventories(tx, [(provider.id, class_id, inventory)], now)
    return ProviderInventories(generation, [InventoryLine(class_id, class_name, inventory, now)])


def change(
    tx: Tx,
    uuid: str,
    class_name: str,
    seen: int,
    inventory: Inventory,
    now: datetime,
    *,
    leaves_some: bool = False,
) -> ProviderInventories:
    """Replace a provider's inventory of a class.

    Raises :class:`ConcurrentUpdate` if ``seen`` is not the provider's generation. Raises
    :class:`Invalid` if the provider has no inventory of the class. Raises :class:`NotFound` for an
    unknown class.
    """
    provider = providers.get(tx, uuid)
    providers.demand_generation(provider, seen)
    must_have_capacity(provider.uuid, {class_name: inventory}, leaves_some=leaves_some)
    for line in _lines(tx, provider):
        if line.class_name == class_name:
            _keep_ratios(tx, provider, {class_name: inventory})
            generation = providers.advance(tx, provider, now)
            registration.change_inventories(tx, [(provider.id, line.class_id, inventory)], now)
            return ProviderInventories(
                generation, [InventoryLine(line.class_id, class_name, inventory, now)]
            )
    if not names.class_ids(tx, [class_name]):
        raise NotFound(f"No such resource class {class_name}.")
    raise Invalid(
        f"No inventory record with resource class for resource provider {provider.uuid}: "
        f"No inventory of class {class_name} found."
    )


def replace(
    tx: Tx,
    uuid: str,
    seen: int,
    requested: Mapping[str, Inventory],
    now: datetime,
    *,
    leaves_some: bool = False,
) -> ProviderInventories:
    """Replace all inventories of a provider with ``requested``.

    Raises :class:`ConcurrentUpdate` if ``seen`` is not the provider's generation. Raises
    :class:`Invalid` for an unknown class or a negative capacity. Raises :class:`InUse` if a class
    with allocations would be removed.
    """
    provider = providers.get(tx, uuid)
    providers.demand_generation(provider, seen)
    must_have_capacity(provider.uuid, requested, leaves_some=leaves_some)
    prefix = f"Unknown resource class in inventory for resource provider {provider.uuid}"
    class_ids = _class_ids(tx, requested, prefix)
    present = {line.class_id: line for line in _lines(tx, provider)}
    gone = present.keys() - set(class_ids)
    leaving = [line for line in present.values() if line.class_id in gone]
    _must_be_free(tx, provider, leaving, IN_USE, UPDATE_CONFLICT)
    _keep_ratios(tx, provider, {**requested, **_without(leaving)})
    generation = providers.advance(tx, provider, now)
    rows = [
        (provider.id, class_id, each)
        for class_id, each in zip(class_ids, requested.values(), strict=True)
    ]
    registration.remove_inventories(tx, [(provider.id, class_id) for class_id in sorted(gone)])
    registration.add_inventories(tx, [each for each in rows if each[1] not in present], now)
    registration.change_inventories(tx, [each for each in rows if each[1] in present], now)
    lines = [
        InventoryLine(class_id, name, inventory, now)
        for (_, class_id, inventory), name in zip(rows, requested, strict=True)
    ]
    return ProviderInventories(generation, lines)


def remove(tx: Tx, uuid: str, class_name: str, now: datetime) -> None:
    """Remove a provider's inventory of a class.

    Raises :class:`NotFound` if there is no such inventory. Raises :class:`InUse` while allocations
    use the inventory.
    """
    provider = providers.get(tx, uuid)
    found = [line for line in _lines(tx, provider) if line.class_name == class_name]
    if not found:
        raise NotFound(f"No inventory of class {class_name} found for delete")
    prefix = f"Unable to delete inventory of class {class_name}: "
    _remove(tx, provider, found, now, ConcurrentUpdate.code, prefix)


def remove_all(tx: Tx, uuid: str, now: datetime) -> None:
    """Remove all inventories of a provider.

    Raises :class:`InUse` while the provider has allocations.
    """
    provider = providers.get(tx, uuid)
    _remove(tx, provider, _lines(tx, provider), now, IN_USE, "")


def _remove(
    tx: Tx, provider: Provider, lines: list[InventoryLine], now: datetime, code: str, prefix: str
) -> None:
    _must_be_free(tx, provider, lines, code, prefix)
    _keep_ratios(tx, provider, _without(lines))
    providers.advance(tx, provider, now)
    registration.remove_inventories(tx, [(provider.id, line.class_id) for line in lines])


def _lines(tx: Tx, provider: Provider) -> list[InventoryLine]:
    return provider_details.inventory_lines(tx, provider.id)


def _without(lines: Iterable[InventoryLine]) -> Edit:
    return {line.class_name: None for line in lines}


def _keep_ratios(tx: Tx, provider: Provider, edit: Edit) -> None:
    # The ratios are read after the generation. If a pcloud sets a ratio between the two reads,
    # the generation advances and this write fails.
    if provider.can_host:
        kept = provider_rows.kept_ratios(tx, [provider.id]).get(provider.id, {})
        ratios.demand_kept(provider.uuid, kept, edit)


def _class_ids(tx: Tx, requested: Collection[str], prefix: str) -> list[ClassId]:
    found = names.class_ids(tx, requested)
    unknown = [name for name in requested if name not in found]
    if unknown:
        raise Invalid(f"{prefix}: No such resource class {', '.join(unknown)}.")
    return [found[name] for name in requested]


def must_have_capacity(
    uuid: ProviderUuid,
    requested: Mapping[str, Inventory],
    prefix: str | None = None,
    *,
    leaves_some: bool = False,
) -> None:
    """Raise :class:`Invalid` for an inventory with a negative capacity.

    With ``leaves_some``, a capacity of less than one unit also raises :class:`Invalid`. The message
    begins with ``prefix``.
    """
    least = 1 if leaves_some else 0
    than = "than or equal to" if leaves_some else "than"
    for name, inventory in requested.items():
        if math.trunc(inventory.capacity) < least:
            raise Invalid(
                f"{prefix or f'Unable to update inventory for resource provider {uuid}'}: "
                f"Invalid inventory for '{name}' on resource provider '{uuid}'. "
                f"The reserved value is greater {than} total."
            )


def _must_be_free(
    tx: Tx, provider: Provider, lines: Collection[InventoryLine], code: str, prefix: str
) -> None:
    taken = allocations.held_classes(tx, provider.id) if lines else set()
    busy = [line.class_name for line in lines if line.class_id in taken]
    if busy:
        raise held(provider.uuid, busy, code, prefix)


def held(
    uuid: ProviderUuid,
    class_names: Iterable[str],
    code: str = IN_USE,
    prefix: str = UPDATE_CONFLICT,
) -> InUse:
    """Return the error for removing inventories of classes that have allocations."""
    return InUse(
        f"{prefix}Inventory for '{', '.join(class_names)}' on resource provider '{uuid}' in use.",
        code=code,
    )
