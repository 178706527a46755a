"""Report how the freepool was reserved and used in a past period."""

from __future__ import annotations

from datetime import timedelta

from innkeeper.domain.errors import Invalid
from innkeeper.domain.freepool_usage import DAY, Hours, report
from innkeeper.domain.leases import Window
from innkeeper.store.queries.leases import freepool_usage
from innkeeper.store.transactions import Tx

PERIOD_MAX = timedelta(days=366)
ROWS_MAX = 50_000
"""The maximum number of freepool periods that one report reads. The same limit holds for servers.
"""
PIECES_MAX = 500_000
"""If hours are grouped by day, the maximum product of freepool periods and days."""
TOO_LONG = "The period has too many {what} for one report. Choose a shorter period."


def of_period(tx: Tx, period: Window, group_by: str) -> dict[str, Hours]:
    """Return the hours of hosts and slots in a period, by group.

    Raises :class:`Invalid` if the period is too long, or has too many freepool periods or
    servers.
    """
    if period.end - period.start > PERIOD_MAX:
        raise Invalid(f"A period has at most {PERIOD_MAX.days} days.")
    found = freepool_usage.between(tx, period.start, period.end, ROWS_MAX + 1)
    days = (period.end - period.start).days + 1 if group_by == DAY else 1
    if len(found) > ROWS_MAX or len(found) * days > PIECES_MAX:
        raise Invalid(TOO_LONG.format(what="reservations"))
    names = {each.host_name for each in found if each.reservation_uuid is not None}
    servers = freepool_usage.server_times(tx, names, period.start, period.end, ROWS_MAX + 1)
    if len(servers) > ROWS_MAX or len(servers) * days > PIECES_MAX:
        raise Invalid(TOO_LONG.format(what="servers"))
    return report(period, found, servers, group_by)
