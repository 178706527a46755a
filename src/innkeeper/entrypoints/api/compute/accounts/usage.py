"""These handlers show the usage of projects: the time for which their servers existed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from innkeeper.domain.usage import ServerPeriod, total
from innkeeper.entrypoints.api.compute.links import next_page
from innkeeper.entrypoints.api.compute.timestamps import micros
from innkeeper.entrypoints.api.paging import limit_of
from innkeeper.entrypoints.api.periods import window
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.compute.servers import history


@dataclass(frozen=True, slots=True)
class UsageOptions:
    """Options that the microversion sets for requests about usage."""

    is_paged: bool = True
    """Whether the answer is paged. Otherwise, it contains the usage of all servers."""


async def index(call: Call) -> Answer:
    """List the usage of all projects in a period."""
    start, stop = window(call)
    periods = await _periods(call, start, stop, None)
    by_project: dict[str, list[ServerPeriod]] = {}
    for period in periods:
        by_project.setdefault(period.project_id, []).append(period)
    is_detailed = call.last("detailed") == "1"
    body: dict[str, Any] = {
        "tenant_usages": [
            _shown(call, project_id, mine, start, stop, is_detailed=is_detailed)
            for project_id, mine in by_project.items()
        ]
    }
    _link(call, body, "tenant_usages_links", "os-simple-tenant-usage", periods)
    return Answer(200, body)


async def show(call: Call) -> Answer:
    """Show a project's usage in a period."""
    project_id = call.params["project_id"]
    call.demand("os_compute_api:os-simple-tenant-usage:show", project_id=project_id)
    start, stop = window(call)
    periods = await _periods(call, start, stop, project_id)
    body: dict[str, Any] = {
        "tenant_usage": _shown(call, project_id, periods, start, stop, is_detailed=True)
    }
    _link(call, body, "tenant_usage_links", f"os-simple-tenant-usage/{project_id}", periods)
    return Answer(200, body)


async def _periods(
    call: Call, start: datetime, stop: datetime, project_id: str | None
) -> list[ServerPeriod]:
    marker, limit = call.last("marker"), _limit(call)
    return await call.read(
        lambda tx: history.server_periods(
            tx, start, stop, project_id=project_id, marker=marker, limit=limit
        )
    )


def _limit(call: Call) -> int | None:
    return limit_of(call) if call.options.of(UsageOptions).is_paged else None


def _link(
    call: Call, body: dict[str, Any], key: str, path: str, periods: Sequence[ServerPeriod]
) -> None:
    if periods and len(periods) == _limit(call):
        body[key] = next_page(call, path, periods[-1].uuid)


def _shown(
    call: Call,
    project_id: str,
    periods: Sequence[ServerPeriod],
    start: datetime,
    stop: datetime,
    *,
    is_detailed: bool,
) -> dict[str, Any]:
    added = total(periods, start, stop)
    body: dict[str, Any] = {
        "tenant_id": project_id,
        "total_hours": added.hours,
        "total_vcpus_usage": added.vcpu_hours,
        "total_memory_mb_usage": added.memory_mb_hours,
        "total_local_gb_usage": added.disk_gb_hours,
        "start": micros(start),
        "stop": micros(stop),
    }
    if is_detailed:
        body["server_usages"] = [_server(call, period, start, stop) for period in periods]
    return body


def _server(call: Call, period: ServerPeriod, start: datetime, stop: datetime) -> dict[str, Any]:
    assert period.launched_at is not None, "a server that never ran is not in a window"
    ended = period.deleted_at or call.now
    return {
        "instance_id": period.uuid,
        "name": period.name,
        "hours": period.hours_in(start, stop),
        "tenant_id": period.project_id,
        "flavor": period.flavor_name,
        "vcpus": period.vcpus,
        "memory_mb": period.memory_mb,
        "local_gb": period.disk_gb,
        "started_at": micros(period.launched_at),
        "ended_at": micros(period.deleted_at),
        "state": "terminated" if period.deleted_at is not None else period.status.lower(),
        "uptime": max(0, int((ended - period.launched_at).total_seconds())),
    }
