"""Compute the capacity, the usage and the free capacity of providers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from innkeeper.domain.ids import ClassId, ProviderId
from innkeeper.domain.placement import ProviderView
from innkeeper.store.queries.placement import allocations, capacity, names
from innkeeper.store.transactions import Tx


class Figures(NamedTuple):
    """The amounts of one class on a provider.

    ``total`` excludes the reserved amount. ``capacity`` is ``total`` times the allocation ratio,
    rounded down.
    """

    total: int
    capacity: int
    used: int

    @property
    def left(self) -> int:
        """The free capacity, which is negative while the provider is over capacity."""
        return self.capacity - self.used


def of_classes(
    tx: Tx, providers: Collection[ProviderId], class_names: Collection[str]
) -> dict[ProviderId, dict[str, Figures]]:
    """Return the figures of each provider by class name. Classes that a provider lacks are omitted.

    The number of queries does not depend on the number of providers.
    """
    ids = names.class_ids(tx, class_names)
    views = capacity.views(tx, providers)
    return {provider_id: _figures(view, ids) for provider_id, view in views.items()}


def _figures(view: ProviderView, ids: Mapping[str, ClassId]) -> dict[str, Figures]:
    found: dict[str, Figures] = {}
    for name, class_id in ids.items():
        has = view.inventories.get(class_id)
        if has is not None:
            used = view.used.get(class_id, 0)
            found[name] = Figures(has.total - has.reserved, has.capacity_units, used)
    return found


def without_room(
    tx: Tx,
    providers: Collection[ProviderId],
    least: Mapping[str, int],
    neighbours: Collection[ProviderId] = (),
) -> set[ProviderId]:
    """Return the ``providers`` that have no room for another server.

    For each class, the next server is assumed to need the larger of two amounts: the amount in
    ``least``, and the largest amount that a server on ``providers`` or ``neighbours`` uses. A
    provider has no room if its free capacity of a class is smaller than this need. Only classes in
    the provider's own inventory count. A provider without allocations always has room.

    The number of queries does not depend on the number of providers or servers.
    """
    needed = dict(allocations.largest_of_servers(tx, {*providers, *neighbours}))
    for name, class_id in names.class_ids(tx, least).items():
        needed[class_id] = max(least[name], needed.get(class_id, 0))
    views = capacity.views(tx, providers)
    return {provider_id for provider_id, view in views.items() if _is_tight(view, needed)}


def _is_tight(view: ProviderView, needed: Mapping[ClassId, int]) -> bool:
    is_held = any(view.used.values())
    return is_held and any(
        view.inventories[class_id].capacity_units - view.used.get(class_id, 0) < amount
        for class_id, amount in needed.items()
        if class_id in view.inventories
    )
