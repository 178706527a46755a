"""How much providers have, give out and have left."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from innkeeper.domain.ids import ClassId, ProviderId
from innkeeper.domain.placement import ProviderView
from innkeeper.store.queries import capacity, names
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


def of_class(
    tx: Tx, providers: Collection[ProviderId], class_name: str
) -> dict[ProviderId, int]:
    """What each of these providers has left of a class; those that have none are left out."""
    found = of_classes(tx, providers, [class_name])
    return {each: of[class_name].left for each, of in found.items() if class_name in of}
