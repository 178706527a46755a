"""Aggregates: named sets of hosts with metadata; found, listed, written, and read in bulk."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import sqlalchemy as sa

from innkeeper.domain.ids import ProviderId
from innkeeper.store import by_ids
from innkeeper.store.by_ids import IDS
from innkeeper.store.prepared import PreparedForIds
from innkeeper.store.tables.compute import aggregate_hosts, aggregates, hosts
from innkeeper.store.transactions import Tx

_MEMBERSHIPS = sa.select(hosts.c.provider_id, aggregate_hosts.c.aggregate_id).join(
    aggregate_hosts, aggregate_hosts.c.host_id == hosts.c.id
)
_MEMBERSHIPS_OF = PreparedForIds(_MEMBERSHIPS.where(hosts.c.provider_id.in_(IDS)))
_METADATA = sa.select(aggregates.c.id, aggregates.c.metadata)
_METADATA_OF = _METADATA.where(aggregates.c.id.in_(IDS))


def for_snapshot(
    tx: Tx, provider_ids: Collection[ProviderId] | None
) -> list[tuple[ProviderId, int]]:
    """Pairs of a host's provider and an aggregate's row, of these providers or of all."""
    if provider_ids is None:
        rows = tx.execute(_MEMBERSHIPS).fetchall()
    else:
        rows = _MEMBERSHIPS_OF.rows(tx, provider_ids)
    return [(ProviderId(provider_id), aggregate_id) for provider_id, aggregate_id in rows]


def metadata_of(tx: Tx, ids: Collection[int] | None) -> dict[int, Mapping[str, str]]:
    """The metadata of the aggregates in these rows, or of all."""
    rows = tx.execute(_METADATA) if ids is None else by_ids.rows(tx, _METADATA_OF, ids)
    return {aggregate_id: metadata for aggregate_id, metadata in rows}
