"""What repairs of providers read and write, and nobody else does."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

import sqlalchemy as sa

from innkeeper.domain.ids import ProviderId
from innkeeper.store import by_ids
from innkeeper.store.by_ids import IDS
from innkeeper.store.tables.placement import resource_providers
from innkeeper.store.transactions import Tx


def rows_of(tx: Tx, uuids: Collection[str]) -> dict[str, ProviderId]:
    """Row ids by uuid."""
    query = sa.select(resource_providers.c.uuid, resource_providers.c.id)
    rows = by_ids.rows(tx, query.where(resource_providers.c.uuid.in_(IDS)), uuids)
    return {uuid: ProviderId(row_id) for uuid, row_id in rows}


def parents_of(tx: Tx, ids: Collection[ProviderId]) -> Mapping[ProviderId, ProviderId | None]:
    """The parents of these providers; ``None`` for a root."""
    query = sa.select(resource_providers.c.id, resource_providers.c.parent_provider_id)
    rows = by_ids.rows(tx, query.where(resource_providers.c.id.in_(IDS)), ids)
    return {ProviderId(row_id): parent for row_id, parent in rows}


def write_root(tx: Tx, provider_id: ProviderId, root_id: ProviderId | None, now: datetime) -> None:
    """Write below which root a provider hangs; ``None`` for one that is a root."""
    tx.execute(
        resource_providers.update()
        .where(resource_providers.c.id == provider_id)
        .values(root_provider_id=root_id, updated_at=now)
    )
