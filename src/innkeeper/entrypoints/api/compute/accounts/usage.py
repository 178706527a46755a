"""These handlers show the usage of projects: the hours for which servers existed in a period."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from innkeeper.domain.usage import ServerRun, total
from innkeeper.entrypoints.api.compute.links import next_page
from innkeeper.entrypoints.api.compute.timestamps import micros
from innkeeper.entrypoints.api.paging import limit_of
from innkeeper.entrypoints.api.periods import window
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.compute.servers import history


@dataclass(frozen=True, slots=True)
class UsageOptions:
    """These options reproduce how older microversions request usage."""

    is_paged: bool = True
    """Whether the answer is paged. If not, it contains the usage of all servers."""


async def index(call: Call) -> Answer:
    """List the usage of all projects in a period."""
    start, stop = window(call)
    runs = await _runs(call, start, stop, None)
    by_project: dict[str, list[ServerRun]] = {}
    for run in runs:
        by_project.setdefault(run.project_id, []).append(run)
    is_detailed = call.last("detailed") == "1"
    body: dict[str, Any] = {
        "tenant_usages": [
            _shown(call, project_id, mine, start, stop, is_detailed=is_detailed)
            for project_id, mine in by_project.items()
        ]
    }
    _link(call, body, "tenant_usages_links", "os-simple-tenant-usage", runs)
    return Answer(200, body)


async def show(call: Call) -> Answer:
    """Show a project's usage in a period."""
    project_id = call.params["project_id"]
    call.demand("os_compute_api:os-simple-tenant-usage:show", project_id=project_id)
    start, stop = window(call)
    runs = await _runs(call, start, stop, project_id)
    body: dict[str, Any] = {
        "tenant_usage": _shown(call, project_id, runs, start, stop, is_detailed=True)
    }
    _link(call, body, "tenant_usage_links", f"os-simple-tenant-usage/{project_id}", runs)
    return Answer(200, body)


async def _runs(
    call: Call, start: datetime, stop: datetime, project_id: str | None
) -> list[ServerRun]:
    marker, limit = call.last("marker"), _limit(call)
    return await call.read(
        lambda tx: history.server_runs(
            tx, start, stop, project_id=project_id, marker=marker, limit=limit
        )
    )


def _limit(call: Call) -> int | None:
    return limit_of(call) if call.options.of(UsageOptions).is_paged else None


def _link(call: Call, body: dict[str, Any], key: str, path: str, runs: Sequence[ServerRun]) -> None:
    if runs and len(runs) == _limit(call):
        body[key] = next_page(call, path, runs[-1].uuid)


def _shown(
    call: Call,
    project_id: str,
    runs: Sequence[ServerRun],
    start: datetime,
    stop: datetime,
    *,
    is_detailed: bool,
) -> dict[str, Any]:
    added = total(runs, start, stop)
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
        body["server_usages"] = [_server(call, run, start, stop) for run in runs]
    return body


def _server(call: Call, run: ServerRun, start: datetime, stop: datetime) -> dict[str, Any]:
    assert run.launched_at is not None, "a server that never ran is not in a window"
    ended = run.deleted_at or call.now
    return {
        "instance_id": run.uuid,
        "name": run.name,
        "hours": run.hours_in(start, stop),
        "tenant_id": run.project_id,
        "flavor": run.flavor_name,
        "vcpus": run.vcpus,
        "memory_mb": run.memory_mb,
        "local_gb": run.disk_gb,
        "started_at": micros(run.launched_at),
        "ended_at": micros(run.deleted_at),
        "state": "terminated" if run.deleted_at is not None else run.status.lower(),
        "uptime": max(0, int((ended - run.launched_at).total_seconds())),
    }
