"""Add and remove inventories of one class on many providers, with few statements.

Always true: a write advances the generations of the providers that it changes. The providers are
not hosts, so no pcloud sets ratios on them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from innkeeper.domain.amounts import Inventory
from innkeeper.domain.ids import ProviderId, ProviderUuid
from innkeeper.store.queries.placement import class_holders, names, registration
from innkeeper.store.queries.placement import providers as provider_rows
from innkeeper.store.transactions import Tx
from innkeeper.systems.placement import providers


def known(tx: Tx, uuids: Collection[str]) -> set[str]:
    """Return the uuids that belong to existing providers."""
    return set(_ids(tx, uuids))


def add(tx: Tx, class_name: str, wanted: Mapping[str, Inventory], now: datetime) -> None:
    """Add or replace inventories of a class. ``wanted`` has the inventories by provider uuid.

    The providers and the class must exist.
    """
    if not wanted:
        return
    ids = _ids(tx, wanted)
    class_id = names.class_ids(tx, [class_name])[class_name]
    present = class_holders.with_inventory(tx, class_id, ids.values())
    rows = [(ids[ProviderUuid(uuid)], class_id, inventory) for uuid, inventory in wanted.items()]
    providers.advance_all(tx, list(ids.values()), now)
    registration.add_inventories(tx, [each for each in rows if each[0] not in present], now)
    registration.change_inventories(tx, [each for each in rows if each[0] in present], now)


def remove_unused(
    tx: Tx, class_name: str, uuids: Collection[str], now: datetime, most: int
) -> set[str]:
    """Remove the inventories of a class from providers without allocations of this class.

    At most ``most`` inventories are removed. Return the uuids of the providers that still have an
    inventory of the class. Unknown uuids are skipped.
    """
    ids = _ids(tx, uuids)
    class_id = names.class_ids(tx, [class_name]).get(class_name)
    if class_id is None:
        return set()
    present = class_holders.with_inventory(tx, class_id, ids.values())
    used = class_holders.with_allocations(tx, class_id, ids.values())
    free = sorted(present - used)[:most]
    providers.advance_all(tx, free, now)
    registration.remove_inventories(tx, [(each, class_id) for each in free])
    left = present - set(free)
    return {str(uuid) for uuid, provider_id in ids.items() if provider_id in left}


def _ids(tx: Tx, uuids: Collection[str]) -> dict[ProviderUuid, ProviderId]:
    return provider_rows.ids_by_uuid(tx, map(ProviderUuid, uuids))
