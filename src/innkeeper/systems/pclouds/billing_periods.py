"""What projects pay for: the time of whole hosts, used or not.

Always true: a host costs its pcloud's owner the units that it was allocated with, from its
allocation to its release, whatever servers it has.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from innkeeper.domain.pclouds import BillingPeriod
from innkeeper.store.queries.pclouds import hosts as pcloud_hosts
from innkeeper.store.transactions import Tx


@dataclass(slots=True)
class PcloudUsage:
    """What one project paid for within a period, in hours of hosts and of units."""

    project_id: str
    periods: list[BillingPeriod] = field(default_factory=list)
    host_hours: float = 0.0
    unit_hours: float = 0.0


def page(
    tx: Tx, start: datetime, stop: datetime, *, project_id: str | None, after: int = 0, limit: int
) -> list[BillingPeriod]:
    """The billing periods of hosts within a period, of one project or of all."""
    return pcloud_hosts.periods(tx, start, stop, project_id=project_id, after=after, limit=limit)


def by_project(
    periods: Iterable[BillingPeriod], start: datetime, stop: datetime
) -> list[PcloudUsage]:
    """The totals of each project, in the order in which the projects appear."""
    found: dict[str, PcloudUsage] = {}
    for each in periods:
        usage = found.setdefault(each.project_id, PcloudUsage(each.project_id))
        hours = each.hours_in(start, stop)
        usage.periods.append(each)
        usage.host_hours += hours
        usage.unit_hours += hours * each.units
    return list(found.values())
