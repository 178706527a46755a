"""Queries that find inconsistent bindings and routings. On a sound database, they find nothing."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import sqlalchemy as sa

from innkeeper.domain.pods import PodBinding
from innkeeper.store import records
from innkeeper.store.by_ids import Rows
from innkeeper.store.tables.pods import pod_bindings, pod_routings, pods
from innkeeper.store.transactions import Tx

_KEYS = (pod_bindings.c.group_key, pod_bindings.c.active_key)
_KEYED = sa.select(*records.columns(pod_bindings, PodBinding), *_KEYS)


def bindings(tx: Tx) -> Iterator[tuple[PodBinding, str, str | None]]:
    """Yield all bindings, each with its group key and active key.

    Bindings are ordered by group key, which stands for project and group, and then by number. The
    active key of an ended binding is ``None``.
    """
    query = _KEYED.order_by(pod_bindings.c.group_key, pod_bindings.c.sequence)
    for *row, of_group, of_active in tx.execute(query):
        yield PodBinding(*row), of_group, of_active


def bindings_without_pod(tx: Tx) -> Rows:
    """Return the active bindings to pods that do not exist, as rows of (uuid,)."""
    query = sa.select(pod_bindings.c.uuid).outerjoin(pods, pods.c.id == pod_bindings.c.pod_id)
    query = query.where(pod_bindings.c.ended_at.is_(None))
    return list(tx.execute(query.where(pods.c.id.is_(None))))


def routings_without_pod(tx: Tx) -> Rows:
    """Return the routings to pods that do not exist, as rows of (id, resource type, top id)."""
    columns = (pod_routings.c.id, pod_routings.c.resource_type, pod_routings.c.top_id)
    query = sa.select(*columns).outerjoin(pods, pods.c.id == pod_routings.c.pod_id)
    return list(tx.execute(query.where(pods.c.id.is_(None))))


def begun_before(tx: Tx, at: datetime) -> Rows:
    """Return resources whose creation began before ``at`` and that no pod has confirmed.

    The rows are (id, resource type, project id, pod name).
    """
    each = pod_routings.c
    columns = (each.id, each.resource_type, each.project_id, pods.c.pod_name)
    query = sa.select(*columns).join(pods, pods.c.id == each.pod_id).order_by(each.id)
    is_begun = each.bottom_id.is_(None) & each.number.is_not(None)
    return list(tx.execute(query.where(is_begun, each.created_at < at)))
