"""Quotas of projects on leases."""

from __future__ import annotations

from dataclasses import asdict

from innkeeper.domain.errors import Invalid
from innkeeper.engine.retry import WHOLE_HOSTS
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.leases.leases import lease_context
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.entrypoints.api.schema_types import PROJECT_ID_MAX
from innkeeper.systems.leases import limits, sharing

RULE = "blazar:quotas"


async def show_own(call: Call) -> Answer:
    """Show the limits of the caller's project on leases, and its present usage."""
    project_id = call.context.project_id
    if project_id is None:
        raise Invalid("The quotas of a project require a token with project scope.")
    return await _shown(call, project_id)


async def show(call: Call) -> Answer:
    """Show a project's limits on leases, and its present usage."""
    project_id = _project(call)
    call.demand(f"{RULE}:get", project_id=project_id)
    return await _shown(call, project_id)


async def change(call: Call) -> Answer:
    """Set some of a project's limits on leases; null restores a default. Existing leases stay."""
    project_id, wanted, context = _project(call), call.body["quota"], lease_context(call)

    def work(tx: Tx) -> None:
        sharing.demand_projects(tx, [project_id], context)
        limits.set_limits(tx, project_id, wanted, context)

    await call.write(work, retry=WHOLE_HOSTS)
    return await _shown(call, project_id)


async def reset(call: Call) -> Answer:
    """Reset a project's limits on leases to the defaults."""
    project_id = _project(call)
    await call.write(lambda tx: limits.reset(tx, project_id), retry=WHOLE_HOSTS)
    return Answer(204)


def _project(call: Call) -> str:
    project_id = call.params["project_id"]
    if len(project_id) > PROJECT_ID_MAX:
        raise Invalid(f"A project's id has at most {PROJECT_ID_MAX} characters.")
    return project_id


async def _shown(call: Call, project_id: str) -> Answer:
    context = lease_context(call)
    limit, used = await call.read(
        lambda tx: (
            limits.of_project(tx, project_id, context.leasing),
            limits.usage(tx, project_id, context),
        )
    )
    quota = {"project_id": project_id, "limits": asdict(limit), "usage": asdict(used)}
    return Answer(200, {"quota": quota})
