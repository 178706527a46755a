"""List and add up billing periods. Projects pay for whole hosts, used or unused.

Always true: the owner of a pcloud pays for a host from the host's allocation to its release. The
price is the number of units that the host had at the allocation. It does not depend on the servers
on the host.
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
    """The billing periods of one project, and their sums in host hours and unit hours."""

    project_id: str
    periods: list[BillingPeriod] = field(default_factory=list)
    host_hours: float = 0.0
    unit_hours: float = 0.0


def page(
    tx: Tx, start: datetime, stop: datetime, *, project_id: str | None, after: int = 0, limit: int
) -> list[BillingPeriod]:
    """Return a page of the billing periods between two times, of one project or of all projects."""
    return pcloud_hosts.periods(tx, start, stop, project_id=project_id, after=after, limit=limit)


def by_project(
    periods: Iterable[BillingPeriod], start: datetime, stop: datetime
) -> list[PcloudUsage]:
    """Return the totals of each project, in the order of each project's first billing period."""
    found: dict[str, PcloudUsage] = {}
    for each in periods:
        usage = found.setdefault(each.project_id, PcloudUsage(each.project_id))
        hours = each.hours_in(start, stop)
        usage.periods.append(each)
        usage.host_hours += hours
        usage.unit_hours += hours * each.units
    return list(found.values())
