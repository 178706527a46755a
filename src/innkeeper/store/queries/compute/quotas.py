"""Database access for the quotas that operators set for projects."""

from __future__ import annotations

from innkeeper.store.limit_tables import LimitTable
from innkeeper.store.tables.compute import quotas

_LIMITS = LimitTable(quotas)
of_projects = _LIMITS.of_projects
replace = _LIMITS.replace
delete = _LIMITS.delete
