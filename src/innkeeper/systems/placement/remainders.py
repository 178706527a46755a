"""How much providers have left."""

from __future__ import annotations

from collections.abc import Collection

from innkeeper.domain.ids import ProviderId
from innkeeper.store.queries import capacity, names
from innkeeper.store.transactions import Tx


def of_class(
    tx: Tx, providers: Collection[ProviderId], class_name: str
) -> dict[ProviderId, int]:
    """What each of these providers has left of a class; those that have none are left out."""
    class_id = names.class_ids(tx, [class_name]).get(class_name)
    views = capacity.views(tx, providers)
    return {
        provider_id: view.inventories[class_id].capacity_units - view.used.get(class_id, 0)
        for provider_id, view in views.items()
        if class_id is not None and class_id in view.inventories
    }
