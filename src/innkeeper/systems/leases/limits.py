"""Limits on leases: their length, and the quotas of projects.

Always true: the transaction that increases the usage writes the increase first, and then reads the
usage. At this time, no other writer can add a lease, so the usage is complete. A limit may be lower
than a project's usage. The project then keeps its leases, but these leases may not grow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

import msgspec

from innkeeper.domain import lease_limits
from innkeeper.domain.compute import UNLIMITED
from innkeeper.domain.errors import Forbidden, QuotaExceeded
from innkeeper.domain.lease_limits import LeaseLimits, ReservedUnits
from innkeeper.domain.leases import Lease, Window
from innkeeper.domain.slices import Leasing
from innkeeper.store.queries.leases import quotas
from innkeeper.store.transactions import Tx
from innkeeper.systems.leases.context import LeaseContext

_SECOND = timedelta(seconds=1)
_MOMENT = timedelta(microseconds=1)


def defaults(leasing: Leasing) -> LeaseLimits:
    """Return the limits for projects that have no limits of their own."""
    return LeaseLimits(
        leases=leasing.quota_leases,
        future_leases=leasing.quota_future_leases,
        reserved_hosts=leasing.quota_reserved_hosts,
        reserved_instances=leasing.quota_reserved_instances,
        reserved_vcpus=leasing.quota_reserved_vcpus,
    )


def of_project(tx: Tx, project_id: str, leasing: Leasing) -> LeaseLimits:
    """Return the limits of a project. Limits that were not set for it have their defaults."""
    own = quotas.of_project(tx, project_id)
    known = {name: limit for name, limit in own.items() if name in lease_limits.NAMES}
    return replace(defaults(leasing), **known)


def usage(tx: Tx, project_id: str, context: LeaseContext) -> LeaseLimits:
    """Return a project's present usage, in the same form as the limits."""
    now = context.now
    present, future = quotas.counts(tx, project_id, now)
    found = quotas.reserved(tx, project_id, Window(now, now + _MOMENT))
    return LeaseLimits(present, future, **lease_limits.used_at(now, found))


def set_limits(
    tx: Tx, project_id: str, changed: Mapping[str, int | None], context: LeaseContext
) -> None:
    """Set some limits of a project, by name. ``None`` restores the default."""
    own = {**quotas.of_project(tx, project_id), **changed}
    kept = {name: limit for name, limit in own.items() if limit is not None}
    quotas.replace(tx, project_id, kept, context.now)


def reset(tx: Tx, project_id: str) -> None:
    """Restore the default limits of a project."""
    quotas.delete(tx, project_id)


def longest(project_id: str, context: LeaseContext) -> timedelta | None:
    """Return the maximum length of a project's leases, or ``None`` for no maximum."""
    most = context.leasing.max_lease_duration_s
    if most == UNLIMITED or project_id in context.leasing.max_lease_duration_exempt_projects:
        return None
    return timedelta(seconds=most)


def demand_duration(
    window: Window, project_id: str, context: LeaseContext, before: Window | None = None
) -> None:
    """Raise :class:`Forbidden` if a lease is longer than allowed.

    ``before`` is the window before a change. If the lease is already too long, it may still become
    shorter.
    """
    most = longest(project_id, context)
    if most is None:
        return
    length = window.end - window.start
    if before is not None and length <= before.end - before.start:
        return
    if length > most:
        # The length is rounded up, so that the message shows a length above the limit.
        raise Forbidden(
            f"Lease duration of {-(-length // _SECOND)} seconds must be less than or equal to the "
            f"maximum lease duration of {most // _SECOND} seconds."
        )


@contextmanager
def kept(tx: Tx, lease: Lease, window: Window, context: LeaseContext) -> Iterator[None]:
    """A context manager that checks the limits of a lease, before and after the block changes it.

    ``window`` is the lease's new window. Raises the errors of :func:`demand_duration` and
    :func:`demand`.
    """
    demand_duration(window, lease.project_id, context, lease.window)
    before = _reserved_by(tx, lease)
    yield
    changed = msgspec.structs.replace(lease, start_at=window.start, end_at=window.end)
    demand(tx, changed, context, before)


def _reserved_by(tx: Tx, lease: Lease) -> list[ReservedUnits]:
    found = quotas.reserved(tx, lease.project_id, lease.window)
    return [each for each in found if each.lease_id == lease.id]


def demand(
    tx: Tx, lease: Lease, context: LeaseContext, before: Sequence[ReservedUnits] | None = None
) -> None:
    """Raise :class:`QuotaExceeded` if a lease exceeds a quota.

    The lease and its reserved hosts are already written. ``before`` is the lease's usage before a
    change, or ``None`` if the lease is new to the project. Only increases are checked.
    """
    limits = of_project(tx, lease.project_id, context.leasing)
    if before is None:
        _demand_counts(tx, lease, limits, context)
    limited = [name for name in lease_limits.RESERVED if getattr(limits, name) != UNLIMITED]
    since = max(lease.start_at, context.now)
    if not limited or lease.end_at <= since:
        return
    found = quotas.reserved(tx, lease.project_id, Window(since, lease.end_at))
    for name in limited:
        limit: int = getattr(limits, name)
        worst = lease_limits.excess(
            name,
            limit,
            others=[each for each in found if each.lease_id != lease.id],
            own=[each for each in found if each.lease_id == lease.id],
            before=before or (),
            since=since,
        )
        if worst is not None:
            raise QuotaExceeded(
                f"Quota exceeded for {name}: Requested {worst.requested}, but already used "
                f"{worst.used} of {limit} {name} at {worst.at:%Y-%m-%d %H:%M}"
            )


def _demand_counts(tx: Tx, lease: Lease, limits: LeaseLimits, context: LeaseContext) -> None:
    """Check the quotas for the number of leases. The counts include this lease."""
    names = ["leases", *(["future_leases"] if lease.start_at > context.now else [])]
    if all(getattr(limits, name) == UNLIMITED for name in names):
        # Without a limit, do not count: the time grows with the number of leases of the project.
        return
    present, future = quotas.counts(tx, lease.project_id, context.now)
    for name, used in zip(names, (present, future), strict=False):
        limit: int = getattr(limits, name)
        if limit != UNLIMITED and used > limit:
            raise QuotaExceeded(
                f"Quota exceeded for {name}: Requested 1, but already used {used - 1} of {limit} "
                f"{name}"
            )
