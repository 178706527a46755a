"""Database access for the volume quotas that operators set for projects."""

from __future__ import annotations

from innkeeper.store.limit_tables import LimitTable
from innkeeper.store.tables.volumes import volume_quotas
from innkeeper.store.transactions import Tx

_LIMITS = LimitTable(volume_quotas)
of_projects = _LIMITS.of_projects
replace = _LIMITS.replace
delete = _LIMITS.delete


def forget_type(tx: Tx, suffix: str) -> None:
    """Delete the limits of a type that is being deleted, in all projects."""
    tx.execute(volume_quotas.delete().where(volume_quotas.c.resource.endswith(suffix)))
