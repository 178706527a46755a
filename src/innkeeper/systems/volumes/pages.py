"""Read pages of volumes, and count the volumes of all pages."""

from __future__ import annotations

from dataclasses import replace

from innkeeper.domain.errors import Invalid
from innkeeper.domain.volumes import Volume, VolumeSelection
from innkeeper.store.queries.volumes import volumes
from innkeeper.store.transactions import Tx

COUNTED_MAX = 100_000
"""The maximum number of volumes that one count reads."""


def page(tx: Tx, selection: VolumeSelection) -> list[Volume]:
    """Return a page of volumes. Raises :class:`Invalid` for an unknown marker."""
    marker = None
    if selection.marker is not None:
        marker = volumes.by_uuid(tx, selection.marker)
        projects = selection.exact.get("project_id")
        if marker is None or (projects is not None and marker.project_id not in projects):
            raise Invalid(f"marker [{selection.marker}] not found")
    return volumes.page(tx, selection, marker)


def count(tx: Tx, selection: VolumeSelection) -> int:
    """Return the number of volumes on all pages of a selection."""
    if selection.accepts is None:
        return volumes.count(tx, selection)
    whole = replace(selection, limit=COUNTED_MAX, offset=0)
    return len(volumes.page(tx, whole, None))
