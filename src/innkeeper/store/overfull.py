"""The second guard of capacity: what was just claimed is counted once more, by the database.

The first guard is the generation, at which the claimant checked what is left. This one trusts
nobody: it adds up what is held after all was written, in the same transaction. How long that
takes goes by the providers that were touched, not by how many there are.

Always true: only what a batch of claims adds to is looked at. A provider that is over its
capacity because its operator shrank it goes on passing on what it holds, and losing it.
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
"""By how much more is held of a provider's class; what is let go counts against it."""

# Added up before the join: the sums come out of the index, each inventory is looked up once.
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


def by_gains(tx: Tx, gains: Gains) -> list[tuple[ProviderId, ClassId]]:
    """What is gained of, and is held by now beyond its capacity; in healthy days nothing."""
    gained = {key for key, amount in gains.items() if amount > 0}
    found = _OVERFULL.rows(tx, sorted({provider_id for provider_id, _ in gained}))
    return sorted({(provider_id, class_id) for provider_id, class_id in found} & gained)


def gains_of(
    added: Iterable[tuple[ProviderId, ClassId, int]],
    let_go: Iterable[tuple[ProviderId, ClassId, int]],
) -> Gains:
    """Add up what comes and what goes."""
    sums: dict[tuple[ProviderId, ClassId], int] = {}
    for provider_id, class_id, used in added:
        key = (provider_id, class_id)
        sums[key] = sums.get(key, 0) + used
    return less(sums, let_go)


def less(gains: Gains, let_go: Iterable[tuple[ProviderId, ClassId, int]]) -> Gains:
    """Count as well what is let go beside them."""
    sums = dict(gains)
    for provider_id, class_id, used in let_go:
        key = (provider_id, class_id)
        sums[key] = sums.get(key, 0) - used
    return sums
