"""Which projects may use a private flavor."""

from __future__ import annotations

from dataclasses import dataclass

from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.compute.flavors import flavors


@dataclass(frozen=True, slots=True)
class AccessOptions:
    """What older versions mean by giving a flavor to a project."""

    takes_public: bool = False
    """Whether a public flavor can be given to a project."""


async def index(call: Call) -> Answer:
    """List the projects."""
    flavor_id = call.params["flavor_id"]
    projects = await call.read(lambda tx: flavors.projects_of(tx, flavor_id))
    return _answer(flavor_id, projects)


async def act(call: Call) -> Answer:
    """Give a flavor to a project, or take it away."""
    flavor_id = call.params["flavor_id"]
    ((action, about),) = call.body.items()
    project_id = about["tenant"]
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
    return Answer(
        200,
        {
            "flavor_access": [
                {"flavor_id": flavor_id, "tenant_id": project_id} for project_id in projects
            ]
        },
    )
