"""Errors for leases that do not fit, or that are over.

If a lease does not fit, the error says why, how many units (hosts or slots) fit, and when the lease
would fit.

Always true: an error does not name other leases or hosts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime

from innkeeper.domain.errors import Invalid, NotEnough
from innkeeper.domain.leases import Demand, Lease, LeaseStatus, Window
from innkeeper.scheduling.leases.lacks import Lack

NOT_ENOUGH = "Not enough hosts available"
"""The words by which clients recognize the error."""
NO_FREE_HOST = "no_free_host"
DATE = "%Y-%m-%d %H:%M"
REASONS = {
    "unusable": "{} hosts are down, disabled or about to leave the freepool",
    "unsuitable": "{} do not satisfy the requirements",
    "too_small": "{} are too small",
    "held_whole": "{} are reserved as a whole in this time",
    "in_use": "{} are too full in this time",
    "taken": "{} are taken by other reservations of the lease",
}


def demand_not_over(lease: Lease) -> None:
    """Raise :class:`Invalid` if the lease is over, because it can then only be renamed."""
    if lease.status in LeaseStatus.OVER:
        raise Invalid("Terminated leases can only be renamed")


def of(
    lack: Lack,
    demands: Sequence[Demand],
    nearest: Window | None = None,
    latest_end: datetime | None = None,
) -> NotEnough:
    """Return the error for a lease that does not fit.

    ``nearest`` is the earliest window of the same length in which the lease would fit.
    ``latest_end`` is the latest end with which a lease that has begun would fit. Either is ``None``
    if it is not known.
    """
    wanted = demands[lack.demand].units_min
    counts = {name: count for name, count in asdict(lack).items() if name in REASONS and count}
    reasons = [REASONS[name].format(count) for name, count in counts.items()]
    if lack.displaced:
        reasons.insert(0, f"{lack.displaced} units cannot stay where they are")
    why = f" ({'; '.join(reasons)})" if reasons else ""
    message = (
        f"{NOT_ENOUGH}: {lack.fits} of {wanted} units of reservation {lack.demand + 1} fit{why}."
    )
    if nearest is not None:
        message += f" The earliest start with the same length is {nearest.start.strftime(DATE)}."
    if latest_end is not None:
        message += f" The latest end with which the lease would fit is {latest_end.strftime(DATE)}."
    details = {
        "reservation": lack.demand + 1,
        "wanted": wanted,
        "fits": lack.fits,
        "hosts": counts,
        "displaced_units": lack.displaced,
        **window_keys(nearest),
        "latest_end_date": None if latest_end is None else latest_end.strftime(DATE),
    }
    return NotEnough(message, code=NO_FREE_HOST, details=details)


def window_keys(nearest: Window | None) -> dict[str, str | None]:
    """Return keys for the ``details`` of an error. They describe a window that fits."""
    return {
        "earliest_start_date": None if nearest is None else nearest.start.strftime(DATE),
        "earliest_end_date": None if nearest is None else nearest.end.strftime(DATE),
    }
