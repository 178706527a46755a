"""The second guard of capacity: the database sums the allocations again after the claims.

The first guard is the generation at which the claimant checked capacity. The second guard sums all
allocations of the claimed providers after the writes, in the same transaction. The duration of this
query depends only on the number of these providers.

Always true: only inventories that a batch adds to are checked. If an operator shrank an inventory
below its usage, its allocations can still be moved between consumers and released.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import sqlalchemy as sa

from innkeeper.domain.ids import ClassId, ProviderId
from innkeeper.store.by_ids import IDS
from innkeeper.store.prepared import PreparedForIds
from innkeeper.store.tables.placement import allocations, inventories
from innkeeper.store.transactions import Tx

Gains = Mapping[tuple[ProviderId, ClassId], int]
"""The net amounts that a batch adds, by provider and class."""

# Summed before the join: the sums come from the index, and each inventory is read once.
_SUMS = (
    sa.select(
        allocations.c.resource_provider_id,
        allocations.c.resource_class_id,
        sa.func.sum(allocations.c.used).label("used"),
    )
    .where(allocations.c.resource_provider_id.in_(IDS))
    .group_by(allocations.c.resource_provider_id, allocations.c.resource_class_id)
    .subquery()
)
_CAPACITY = (inventories.c.total - inventories.c.reserved) * inventories.c.allocation_ratio
_OVERFULL = PreparedForIds(
    sa.select(_SUMS.c.resource_provider_id, _SUMS.c.resource_class_id)
    .select_from(
        _SUMS.outerjoin(
            inventories,
            sa.and_(
                inventories.c.resource_provider_id == _SUMS.c.resource_provider_id,
                inventories.c.resource_class_id == _SUMS.c.resource_class_id,
            ),
        )
    )
    .where(sa.or_(inventories.c.id.is_(None), _SUMS.c.used > _CAPACITY))
)


def exceeded(tx: Tx, gains: Gains) -> list[tuple[ProviderId, ClassId]]:
    """Return the inventories with a positive gain whose usage now exceeds their capacity."""
    gained = {key for key, amount in gains.items() if amount > 0}
    found = _OVERFULL.rows(tx, sorted({provider_id for provider_id, _ in gained}))
    return sorted({(provider_id, class_id) for provider_id, class_id in found} & gained)


def net_gains(
    added: Iterable[tuple[ProviderId, ClassId, int]],
    released: Iterable[tuple[ProviderId, ClassId, int]],
) -> Gains:
    """Return the added amounts minus the released amounts, as sums by provider and class."""
    sums: dict[tuple[ProviderId, ClassId], int] = {}
    for provider_id, class_id, used in added:
        key = (provider_id, class_id)
        sums[key] = sums.get(key, 0) + used
    return subtract(sums, released)


def subtract(gains: Gains, released: Iterable[tuple[ProviderId, ClassId, int]]) -> Gains:
    """Return the gains minus the released amounts."""
    sums = dict(gains)
    for provider_id, class_id, used in released:
        key = (provider_id, class_id)
        sums[key] = sums.get(key, 0) - used
    return sums
