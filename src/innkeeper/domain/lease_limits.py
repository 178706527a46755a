"""Limits on the resources that projects reserve, and the amounts reserved at each time.

Windows are half-open. If one reservation ends when another begins, the two amounts are therefore
not added up.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from innkeeper.domain.compute import UNLIMITED
from innkeeper.domain.leases import Window

PROCESSORS = ("VCPU", "PCPU")
"""The resource classes that count as virtual processors."""


@dataclass(frozen=True, slots=True)
class LeaseLimits:
    """The limits of one project, or the project's usage. As a limit, -1 is unlimited.

    ``leases`` counts leases that are not over, and ``future_leases`` leases that have not begun.
    The other fields are the highest totals that all reservations together have at any time, in
    whole hosts, slots for servers, and virtual processors in slots.
    """

    leases: int = UNLIMITED
    future_leases: int = UNLIMITED
    reserved_hosts: int = UNLIMITED
    reserved_instances: int = UNLIMITED
    reserved_vcpus: int = UNLIMITED


NAMES = tuple(field.name for field in dataclasses.fields(LeaseLimits))
COUNTED = ("leases", "future_leases")
RESERVED = tuple(name for name in NAMES if name not in COUNTED)


@dataclass(frozen=True, slots=True)
class ReservedUnits:
    """The units that one reservation has in the window of its lease."""

    lease_id: int
    window: Window
    units: int
    unit_amounts: Mapping[str, int] | None

    def amount(self, name: str) -> int:
        """Return the amount with which these units count against the limit ``name``."""
        if self.unit_amounts is None:
            return self.units if name == "reserved_hosts" else 0
        if name == "reserved_instances":
            return self.units
        if name == "reserved_vcpus":
            return self.units * sum(self.unit_amounts.get(each, 0) for each in PROCESSORS)
        return 0


@dataclass(frozen=True, slots=True)
class Excess:
    """The time at which a lease exceeds a limit the most.

    ``requested`` is the use by the lease at that time, and ``used`` the use by other leases.
    """

    at: datetime
    requested: int
    used: int


def excess(
    name: str,
    limit: int,
    *,
    others: Sequence[ReservedUnits],
    own: Sequence[ReservedUnits],
    before: Sequence[ReservedUnits] = (),
    since: datetime,
) -> Excess | None:
    """Return the time from ``since`` on at which a lease exceeds a limit the most, or ``None``.

    ``before`` has the units that the lease reserved before a change. The function ignores times at
    which the change does not increase the lease's use, because this use was accepted earlier.
    """
    steps: dict[datetime, list[int]] = {}
    for column, some in enumerate((others, own, before)):
        for each in some:
            amount = each.amount(name)
            if amount and each.window.end > since:
                start = max(each.window.start, since)
                steps.setdefault(start, [0, 0, 0])[column] += amount
                steps.setdefault(each.window.end, [0, 0, 0])[column] -= amount
    worst, used, requested, had = None, 0, 0, 0
    for at in sorted(steps):
        used, requested, had = (
            sum(pair) for pair in zip((used, requested, had), steps[at], strict=True)
        )
        is_more = requested > had and used + requested > limit
        if is_more and (worst is None or used + requested > worst.used + worst.requested):
            worst = Excess(at, requested, used)
    return worst


def used_at(moment: datetime, units: Sequence[ReservedUnits]) -> dict[str, int]:
    """Return the amounts reserved at one time, by the name of the limit that applies."""
    present = [each for each in units if each.window.start <= moment < each.window.end]
    return {name: sum(each.amount(name) for each in present) for name in RESERVED}
