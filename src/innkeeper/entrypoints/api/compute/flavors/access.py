"""These handlers show and change which projects may use a private flavor."""

from __future__ import annotations

from dataclasses import dataclass

from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.compute.flavors import flavors


@dataclass(frozen=True, slots=True)
class AccessOptions:
    """Options that the microversion sets for requests about access to flavors."""

    takes_public: bool = False
    """Whether a project can be granted access to a public flavor."""


async def index(call: Call) -> Answer:
    """List the projects that may use a private flavor."""
    flavor_id = call.params["flavor_id"]
    projects = await call.read(lambda tx: flavors.projects_of(tx, flavor_id))
    return _answer(flavor_id, projects)


async def act(call: Call) -> Answer:
    """Grant or revoke a project's access to a private flavor."""
    flavor_id = call.params["flavor_id"]
    ((action, arguments),) = call.body.items()
    project_id = arguments["tenant"]
    if action == "addTenantAccess":
        call.demand("os_compute_api:os-flavor-access:add_tenant_access")
        takes_public = call.options.of(AccessOptions).takes_public
        projects = await call.write(
            lambda tx: flavors.add_project(tx, flavor_id, project_id, takes_public=takes_public)
        )
    else:
        call.demand("os_compute_api:os-flavor-access:remove_tenant_access")
        projects = await call.write(lambda tx: flavors.remove_project(tx, flavor_id, project_id))
    return _answer(flavor_id, projects)


def _answer(flavor_id: str, projects: list[str]) -> Answer:
    shown = [{"flavor_id": flavor_id, "tenant_id": project_id} for project_id in projects]
    return Answer(200, {"flavor_access": shown})
