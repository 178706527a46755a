"""Usage of servers over a period of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

SECONDS_PER_HOUR = 3600


def hours_between(
    began_at: datetime, ended_at: datetime | None, start: datetime, stop: datetime
) -> float:
    """Return how many hours of a period lie between ``start`` and ``stop``.

    ``ended_at`` is ``None`` if the period has not ended.
    """
    end = stop if ended_at is None else min(ended_at, stop)
    return max(0.0, (end - max(began_at, start)).total_seconds() / SECONDS_PER_HOUR)


@dataclass(frozen=True, slots=True)
class ServerPeriod:
    """The time from the launch of a server to its deletion, with the facts that reports need."""

    row: int
    uuid: str
    name: str
    project_id: str
    flavor_name: str
    vcpus: int
    memory_mb: int
    disk_gb: int
    status: str
    launched_at: datetime | None
    deleted_at: datetime | None

    def hours_in(self, start: datetime, stop: datetime) -> float:
        """Return the hours between ``start`` and ``stop`` in which the server existed."""
        if self.launched_at is None:
            return 0.0
        return hours_between(self.launched_at, self.deleted_at, start, stop)


@dataclass(frozen=True, slots=True)
class ServerUsage:
    """The hours of servers, and these hours multiplied by the servers' vcpus, memory and disk."""

    hours: float = 0.0
    vcpu_hours: float = 0.0
    memory_mb_hours: float = 0.0
    disk_gb_hours: float = 0.0


def total(periods: Sequence[ServerPeriod], start: datetime, stop: datetime) -> ServerUsage:
    """Add up the usage of these periods between ``start`` and ``stop``."""
    hours = [period.hours_in(start, stop) for period in periods]
    pairs = list(zip(periods, hours, strict=True))
    return ServerUsage(
        hours=sum(hours),
        vcpu_hours=sum(period.vcpus * each for period, each in pairs),
        memory_mb_hours=sum(period.memory_mb * each for period, each in pairs),
        disk_gb_hours=sum(period.disk_gb * each for period, each in pairs),
    )
