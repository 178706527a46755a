"""Read, set and check the quota of pcloud units, which whole hosts consume.

Always true: a transaction counts the usage before it increases the usage, and sees all earlier
commits. If a project's limit is below its usage, the project keeps its units but gets no more.
"""

from __future__ import annotations

from typing import NamedTuple

from innkeeper.domain.compute import UNLIMITED
from innkeeper.domain.errors import QuotaExceeded
from innkeeper.domain.slices import Dedicating
from innkeeper.store.queries.pclouds import hosts as pcloud_hosts
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.accounts import quotas
from innkeeper.systems.pclouds import aggregates
from innkeeper.systems.pclouds.context import PcloudContext

RESOURCE = "pcloud_units"


class Units(NamedTuple):
    """A project's limit (-1 is unlimited) and its usage."""

    limit: int
    in_use: int


def of_project(tx: Tx, project_id: str, settings: Dedicating) -> Units:
    limit = quotas.limit_of(tx, project_id, RESOURCE, settings.quota_pcloud_units)
    return Units(limit, pcloud_hosts.units_of(tx, project_id))


def set_limit(tx: Tx, project_id: str, limit: int, context: PcloudContext) -> None:
    """Set a project's limit. Raises :class:`Invalid` for an unknown project."""
    aggregates.demand_known(tx, project_id, context)
    quotas.set_limit(tx, project_id, RESOURCE, limit)


def reset(tx: Tx, project_id: str) -> None:
    """Reset a project's limit to the default limit."""
    quotas.reset(tx, project_id, [RESOURCE])


def demand_room(tx: Tx, project_id: str, more: int, context: PcloudContext) -> None:
    """Raise :class:`QuotaExceeded` if the usage plus ``more`` units would exceed the quota."""
    units = of_project(tx, project_id, context.settings)
    if more > 0 and units.limit != UNLIMITED and units.in_use + more > units.limit:
        raise QuotaExceeded(
            f"Quota exceeded for {RESOURCE}: Requested {more}, but already used "
            f"{units.in_use} of {units.limit} {RESOURCE}"
        )
