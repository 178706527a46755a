"""What projects pay for whole hosts, and how many units they may hold."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from innkeeper.domain.amounts import UNIT_MAX
from innkeeper.domain.compute import UNLIMITED
from innkeeper.domain.errors import Invalid
from innkeeper.domain.pclouds import BillingPeriod
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.paging import limit_of, next_query
from innkeeper.entrypoints.api.pclouds.calling import PCLOUDS, context, moment
from innkeeper.entrypoints.api.periods import window
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.entrypoints.api.schema_types import PROJECT_ID_MAX
from innkeeper.systems.pclouds import billing_periods, quotas
from innkeeper.systems.pclouds.billing_periods import PcloudUsage
from innkeeper.systems.pclouds.quotas import Units

USAGE_PATH = "/v2.1/os-pcloud-usage"
MONTH = timedelta(days=31)
BEGINNING = datetime.min  # noqa: DTZ901 - The API's times have no zone: they are UTC.
QUOTAS = "os_compute_api:os-pcloud-quotas"


async def usage(call: Call) -> Answer:
    """Report the hours of whole hosts within a period, by project; a month, unless told."""
    start, stop = window(call)
    if not call.last("start"):
        start = max(stop, BEGINNING + MONTH) - MONTH
    if start > stop:
        raise Invalid("The period ends before it begins.")
    limit, marker = limit_of(call), call.last("marker")
    project_id = call.last("project_id") or call.context.project_id
    if "all_projects" in call.query:
        call.demand(f"{PCLOUDS}:usage:all_projects")
        project_id = call.last("project_id")
    elif project_id != call.context.project_id:
        call.demand(f"{PCLOUDS}:usage:all_projects")
    elif project_id is None:
        raise Invalid("The token names no project; ask for all_projects.")
    after = 0 if marker is None else int(marker)

    def read(tx: Tx) -> list[BillingPeriod]:
        return billing_periods.page(
            tx, start, stop, project_id=project_id, after=after, limit=limit + 1
        )

    found = await call.read(read)
    told = billing_periods.by_project(found[:limit], start, stop)
    body: dict[str, Any] = {
        "pcloud_usages": [_shown(each, start, stop) for each in told],
        "start": moment(start),
        "stop": moment(stop),
    }
    if len(found) > limit > 0:
        query = next_query(call, str(found[limit - 1].id))
        href = f"{call.address}{USAGE_PATH}?{query}"
        body["pcloud_usages_links"] = [{"rel": "next", "href": href}]
    return Answer(200, body)


def _shown(usage: PcloudUsage, start: datetime, stop: datetime) -> dict[str, Any]:
    return {
        "project_id": usage.project_id,
        "host_hours": usage.host_hours,
        "unit_hours": usage.unit_hours,
        "hosts": [_shown_run(each, start, stop) for each in usage.periods],
    }


def _shown_run(run: BillingPeriod, start: datetime, stop: datetime) -> dict[str, Any]:
    return {
        "pcloud_id": run.pcloud_uuid,
        "name": run.host_name,
        "host_flavor": run.flavor_id,
        "units": run.units,
        "started_at": moment(run.started_at),
        "ended_at": None if run.ended_at is None else moment(run.ended_at),
        "hours": run.hours_in(start, stop),
    }


async def show_quota(call: Call) -> Answer:
    """Show how many units a project may hold, and holds."""
    project_id = call.params["project_id"]
    call.demand(f"{QUOTAS}:show", project_id=project_id)
    return await _quota(call, project_id)


async def set_quota(call: Call) -> Answer:
    """Set how many units a project may hold; what it holds already stays."""
    project_id, limit = call.params["project_id"], call.body["pcloud_quota"]["units"]
    if len(project_id) > PROJECT_ID_MAX:
        raise Invalid(f"A project's id has at most {PROJECT_ID_MAX} characters.")
    if not UNLIMITED <= limit <= UNIT_MAX:
        raise Invalid(f"units is not between {UNLIMITED} and {UNIT_MAX}")
    told = context(call)
    await call.write(lambda tx: quotas.set_limit(tx, project_id, limit, told))
    return await _quota(call, project_id)


async def reset_quota(call: Call) -> Answer:
    """Go back to the default."""
    project_id = call.params["project_id"]
    await call.write(lambda tx: quotas.reset(tx, project_id))
    return Answer(204)


async def _quota(call: Call, project_id: str) -> Answer:
    settings = call.site.settings.dedicating

    def read(tx: Tx) -> Units:
        return quotas.of_project(tx, project_id, settings)

    units = await call.read(read)
    shown = {"project_id": project_id, "units": units.limit, "in_use": units.in_use}
    return Answer(200, {"pcloud_quota": shown})
