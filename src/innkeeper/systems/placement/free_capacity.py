"""How much providers have, give out and have left."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from innkeeper.domain.ids import ClassId, ProviderId
from innkeeper.domain.placement import ProviderView
from innkeeper.store.queries.placement import allocations, capacity, names
from innkeeper.store.transactions import Tx


class Figures(NamedTuple):
    """What a provider has of a class and does not reserve, gives out, and has given out."""

    total: int
    capacity: int
    used: int

    @property
    def left(self) -> int:
        """What is left; less than nothing where more is given out than should be."""
        return self.capacity - self.used


def of_classes(
    tx: Tx, providers: Collection[ProviderId], class_names: Collection[str]
) -> dict[ProviderId, dict[str, Figures]]:
    """The figures of each of these providers for those of these classes that it has.

    As many queries for a hundred providers as for one.
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
    """Those of these providers that could not take one more of each server on any of them.

    Of some class, such a provider has less left than one server holds of one of ``providers``
    or ``neighbours``, or less than ``least`` says. A provider is asked only about classes of
    which it has inventory: what servers hold of pools does not count. A provider of which
    nobody holds anything has room, however large the servers are.

    As many queries for a hundred providers or servers as for one.
    """
    wanted = dict(allocations.largest_of_servers(tx, {*providers, *neighbours}))
    for name, class_id in names.class_ids(tx, least).items():
        wanted[class_id] = max(least[name], wanted.get(class_id, 0))
    views = capacity.views(tx, providers)
    return {provider_id for provider_id, view in views.items() if _is_tight(view, wanted)}


def _is_tight(view: ProviderView, wanted: Mapping[ClassId, int]) -> bool:
    is_held = any(view.used.values())
    return is_held and any(
        view.inventories[class_id].capacity_units - view.used.get(class_id, 0) < amount
        for class_id, amount in wanted.items()
        if class_id in view.inventories
    )
