"""Set and protect the allocation ratios that a pcloud sets on its hosts.

Always true: a write that changes something advances the provider's generation. Clients of the
Placement API cannot change a ratio that a pcloud has set on a host.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from innkeeper.domain.amounts import Inventory
from innkeeper.domain.errors import Conflict
from innkeeper.domain.hosts import KeptRatio
from innkeeper.domain.ids import ConsumerUuid, ProviderId, ProviderUuid
from innkeeper.store.queries.placement import allocations, provider_details, registration
from innkeeper.store.transactions import Tx
from innkeeper.systems.placement import providers


class Ratio(NamedTuple):
    """The allocation ratio and the ``max_unit`` of one resource class."""

    ratio: float
    max_unit: int


def advance(tx: Tx, uuid: str, now: datetime) -> None:
    """Advance a provider's generation. Claims that were checked before are then refused."""
    providers.advance(tx, providers.get(tx, uuid), now)


def inventories(tx: Tx, provider_id: ProviderId) -> dict[str, Inventory]:
    """Return the inventories of a provider by class name."""
    lines = provider_details.inventory_lines(tx, provider_id)
    return {line.class_name: line.inventory for line in lines}


def write(tx: Tx, uuid: str, requested: Mapping[str, Ratio], now: datetime) -> None:
    """Set allocation ratios and ``max_unit`` by class. Classes without an inventory are skipped."""
    provider = providers.get(tx, uuid)
    changed = []
    for line in provider_details.inventory_lines(tx, provider.id):
        if line.class_name in requested:
            ratio, max_unit = requested[line.class_name]
            after = replace(line.inventory, allocation_ratio=ratio, max_unit=max_unit)
            if after != line.inventory:
                changed.append((provider.id, line.class_id, after))
    if changed:
        providers.advance(tx, provider, now)
        registration.change_inventories(tx, changed, now)


Edit = Mapping[str, Inventory | None]
"""A client's change to a provider's inventories, by class. ``None`` removes the inventory."""


def demand_kept(uuid: ProviderUuid, kept_by_class: Mapping[str, KeptRatio], edit: Edit) -> None:
    """Raise :class:`Conflict` if a client's edit breaks a ratio that a pcloud has set.

    An edit must not change the ratio, set ``max_unit`` above the total, or remove the inventory.
    ``kept_by_class`` has the ratios that the pcloud has set.
    """
    for name in sorted(kept_by_class.keys() & edit.keys()):
        reason = _broken(kept_by_class[name].in_force, edit[name])
        if reason is not None:
            raise Conflict(
                f"Cannot change the inventory of {name} of resource provider {uuid}: "
                f"{reason}, since a pcloud sets the allocation ratio of {name} on this host."
            )


def _broken(ratio: float, after: Inventory | None) -> str | None:
    if after is None:
        return "the inventory cannot be removed"
    if after.allocation_ratio != ratio:
        return f"allocation_ratio must stay {ratio}"
    most = max(1, after.total)
    return None if after.max_unit <= most else f"max_unit must be at most {most}"


def held_among(tx: Tx, ids: Collection[ProviderId]) -> set[ProviderId]:
    """Return the providers whose trees have allocations."""
    return allocations.held_trees(tx, ids)


def is_held(tx: Tx, provider_id: ProviderId, but_by: Collection[ConsumerUuid] = ()) -> bool:
    """Return whether a provider's tree has allocations of consumers other than ``but_by``."""
    return allocations.is_tree_held(tx, provider_id, but_by)
