"""How long servers ran in a time, and what that adds up to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

SECONDS_PER_HOUR = 3600


@dataclass(frozen=True, slots=True)
class ServerRun:
    """A server as far as its usage goes."""

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
        """Hours between ``start`` and ``stop`` in which the server was there."""
        if self.launched_at is None:
            return 0.0
        begin = max(self.launched_at, start)
        end = stop if self.deleted_at is None else min(self.deleted_at, stop)
        return max(0.0, (end - begin).total_seconds() / SECONDS_PER_HOUR)


@dataclass(frozen=True, slots=True)
class ServerUsage:
    """What servers add up to: hours, and hours times what they had."""

    hours: float = 0.0
    vcpu_hours: float = 0.0
    memory_mb_hours: float = 0.0
    disk_gb_hours: float = 0.0


def total(runs: Sequence[ServerRun], start: datetime, stop: datetime) -> ServerUsage:
    """Add up these runs between two moments."""
    hours = [run.hours_in(start, stop) for run in runs]
    pairs = list(zip(runs, hours, strict=True))
    return ServerUsage(
        hours=sum(hours),
        vcpu_hours=sum(run.vcpus * each for run, each in pairs),
        memory_mb_hours=sum(run.memory_mb * each for run, each in pairs),
        disk_gb_hours=sum(run.disk_gb * each for run, each in pairs),
    )
