"""Database access for measurements of pods."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import sqlalchemy as sa

from innkeeper.domain.pods import PodMeasurement
from innkeeper.store import pruning, records
from innkeeper.store.prepared import Prepared
from innkeeper.store.tables.pods import pod_measurements, pods
from innkeeper.store.transactions import Tx

_C = pod_measurements.c
_ROWS = sa.select(*records.columns(pod_measurements, PodMeasurement))
# This takes one index lookup for each pod:
# SELECT (SELECT MAX(id) FROM pod_measurements WHERE pod_id = pods.id) FROM pods
_LAST = (
    sa.select(sa.func.max(_C.id)).where(_C.pod_id == pods.c.id).correlate(pods).scalar_subquery()
)
NEWEST = sa.select(_LAST.label("id")).select_from(pods).subquery()
_OF_ALL = Prepared(_ROWS.join(NEWEST, NEWEST.c.id == _C.id))


def add(tx: Tx, measurement: PodMeasurement) -> None:
    """Insert a measurement."""
    tx.execute(pod_measurements.insert(), records.values(measurement, but=("id",)))


def count_placed(
    tx: Tx, row_id: int, placed: Mapping[str, float], since: datetime | None, until: datetime
) -> None:
    """Set the amounts that were placed since a measurement.

    ``since`` is the end of the period that was counted before. If another writer has changed this
    end, nothing is set.
    """
    tx.execute(
        pod_measurements.update().where(
            _C.id == row_id,
            _C.placed_until.is_(None) if since is None else _C.placed_until == since,
        ),
        {"placed": dict(placed), "placed_until": until},
    )


def newest(tx: Tx) -> Mapping[int, PodMeasurement]:
    """Return the newest measurement of each measured pod, by the pod's row id."""
    found = [PodMeasurement(*row) for row in _OF_ALL.rows(tx, {})]
    return {each.pod_id: each for each in found}


def of_pod(
    tx: Tx, pod_id: int, since: datetime | None = None, *, limit: int
) -> list[PodMeasurement]:
    """Return the last ``limit`` measurements of a pod, oldest first.

    With ``since``, return only measurements that were made at or after this time.
    """
    query = _ROWS.where(_C.pod_id == pod_id).order_by(_C.id.desc()).limit(limit)
    if since is not None:
        query = query.where(_C.measured_at >= since)
    return [PodMeasurement(*row) for row in tx.execute(query)][::-1]


def prune(tx: Tx, before: datetime) -> int:
    """Delete old measurements, up to a maximum per call.

    The newest measurement of each pod is kept. Returns the number of deleted measurements.
    """
    kept = [each.id for each in newest(tx).values()]
    is_old = (_C.measured_at < before) & _C.id.not_in(kept)
    return pruning.delete_some(tx, pod_measurements, is_old)
