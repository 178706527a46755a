"""Handlers of projects' usage of whole hosts, and of projects' quotas of units."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from innkeeper.domain.amounts import UNIT_MAX
from innkeeper.domain.compute import UNLIMITED
from innkeeper.domain.errors import Invalid
from innkeeper.domain.pclouds import BillingPeriod
from innkeeper.entrypoints.api.paging import limit_of, next_link
from innkeeper.entrypoints.api.pclouds.calling import PCLOUDS, context, moment
from innkeeper.entrypoints.api.periods import window
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.entrypoints.api.schema_types import PROJECT_ID_MAX
from innkeeper.systems.pclouds import billing_periods, quotas

USAGE_PATH = "/v2.1/os-pcloud-usage"
MONTH = timedelta(days=31)
BEGINNING = datetime.min  # noqa: DTZ901 - The API's times have no zone: they are UTC.
QUOTAS = "os_compute_api:os-pcloud-quotas"


async def usage(call: Call) -> Answer:
    """Report how long each project had whole hosts in a period, by default the last 31 days."""
    start, stop = window(call)
    if not call.last("start"):
        start = max(stop, BEGINNING + MONTH) - MONTH
    if start > stop:
        raise Invalid("The period must not end before it begins.")
    limit, marker = limit_of(call), call.last("marker")
    project_id = call.last("project_id") or call.context.project_id
    if "all_projects" in call.query:
        call.demand(f"{PCLOUDS}:usage:all_projects")
        project_id = call.last("project_id")
    elif project_id != call.context.project_id:
        call.demand(f"{PCLOUDS}:usage:all_projects")
    elif project_id is None:
        raise Invalid("The token has no project. Add the parameter all_projects.")
    after = 0 if marker is None else int(marker)
    found = await call.read(
        lambda tx: billing_periods.page(
            tx, start, stop, project_id=project_id, after=after, limit=limit + 1
        )
    )
    usages = [
        {
            "project_id": each.project_id,
            "host_hours": each.host_hours,
            "unit_hours": each.unit_hours,
            "hosts": [_shown_period(period, start, stop) for period in each.periods],
        }
        for each in billing_periods.by_project(found[:limit], start, stop)
    ]
    body = {"pcloud_usages": usages, "start": moment(start), "stop": moment(stop)}
    link = next_link(call, "pcloud_usages", found, limit, lambda each: each.id)
    return Answer(200, {**body, **link})


def _shown_period(period: BillingPeriod, start: datetime, stop: datetime) -> dict[str, Any]:
    return {
        "pcloud_id": period.pcloud_uuid,
        "name": period.host_name,
        "host_flavor": period.flavor_id,
        "units": period.units,
        "started_at": moment(period.started_at),
        "ended_at": None if period.ended_at is None else moment(period.ended_at),
        "hours": period.hours_in(start, stop),
    }


async def show_quota(call: Call) -> Answer:
    """Show a project's quota of units, and how many units it uses."""
    project_id = call.params["project_id"]
    call.demand(f"{QUOTAS}:show", project_id=project_id)
    return await _quota(call, project_id)


async def set_quota(call: Call) -> Answer:
    """Set a project's quota of units. The project keeps the hosts that it already has."""
    project_id, limit = call.params["project_id"], call.body["pcloud_quota"]["units"]
    if len(project_id) > PROJECT_ID_MAX:
        raise Invalid(f"A project's id must have at most {PROJECT_ID_MAX} characters.")
    if not UNLIMITED <= limit <= UNIT_MAX:
        raise Invalid(f"units must be {UNLIMITED} (unlimited) or a number from 0 to {UNIT_MAX}")
    ctx = context(call)
    await call.write(lambda tx: quotas.set_limit(tx, project_id, limit, ctx))
    return await _quota(call, project_id)


async def reset_quota(call: Call) -> Answer:
    """Reset a project's quota of units to the default."""
    project_id = call.params["project_id"]
    await call.write(lambda tx: quotas.reset(tx, project_id))
    return Answer(204)


async def _quota(call: Call, project_id: str) -> Answer:
    settings = call.site.settings.dedicating
    units = await call.read(lambda tx: quotas.of_project(tx, project_id, settings))
    shown = {"project_id": project_id, "units": units.limit, "in_use": units.in_use}
    return Answer(200, {"pcloud_quota": shown})
