"""Projects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from innkeeper.domain.errors import Invalid
from innkeeper.domain.identity import DEFAULT_DOMAIN_ID, Project
from innkeeper.entrypoints.api.identity import conventions
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.identity import projects


def view(call: Call, project: Project) -> dict[str, Any]:
    """A project as the API shows it."""
    return {
        "id": project.id,
        "name": project.name,
        "domain_id": DEFAULT_DOMAIN_ID,
        "description": project.description,
        "enabled": project.is_enabled,
        "parent_id": DEFAULT_DOMAIN_ID,
        "is_domain": False,
        "tags": [],
        "options": {},
        "links": conventions.self_link(call, "projects", project.id),
    }


def _check(fields: Mapping[str, Any]) -> None:
    conventions.check_domain(fields)
    if fields.get("is_domain"):
        raise Invalid("There is one domain here, and no other can be made.")
    if fields.get("parent_id") not in (None, DEFAULT_DOMAIN_ID):
        raise Invalid("A project's parent here is always the domain.")


async def find(call: Call) -> Answer:
    """List projects."""
    is_nowhere = (
        conventions.is_elsewhere(call)
        or call.last("parent_id", DEFAULT_DOMAIN_ID) != DEFAULT_DOMAIN_ID
        or conventions.is_true(call.last("is_domain"))
    )
    name, is_enabled = call.last("name"), conventions.yes_or_no(call.last("enabled"))
    found: list[Project] = []
    if not is_nowhere:
        found = await call.read(lambda tx: projects.find(tx, name=name, is_enabled=is_enabled))
    return Answer(200, conventions.listed(call, "projects", [view(call, each) for each in found]))


async def of_user(call: Call) -> Answer:
    """List the projects on which a user has a role."""
    user_id = call.params["user_id"]
    call.demand("identity:list_user_projects", user_id=user_id)
    found = await call.read(lambda tx: projects.of_user(tx, user_id))
    return Answer(200, conventions.listed(call, "projects", [view(call, each) for each in found]))


async def show(call: Call) -> Answer:
    """Show a project."""
    project_id = call.params["project_id"]
    call.demand("identity:get_project", project_id=project_id)
    project = await call.read(lambda tx: projects.get(tx, project_id))
    return Answer(200, {"project": view(call, project)})


async def create(call: Call) -> Answer:
    """Create a project."""
    fields = call.body["project"]
    _check(fields)
    wanted = Project(
        id=conventions.new_id(call),
        name=fields["name"],
        description=fields.get("description") or "",
        is_enabled=fields.get("enabled", True),
        created_at=call.now,
    )
    project = await call.write(lambda tx: projects.create(tx, wanted))
    return Answer(201, {"project": view(call, project)})


async def update(call: Call) -> Answer:
    """Change a project."""
    fields = call.body["project"]
    _check(fields)
    changes: dict[str, Any] = {}
    if "name" in fields:
        changes["name"] = fields["name"]
    if "description" in fields:
        changes["description"] = fields["description"] or ""
    if "enabled" in fields:
        changes["is_enabled"] = fields["enabled"]
    project_id = call.params["project_id"]
    project = await call.write(lambda tx: projects.update(tx, project_id, changes))
    call.site.authenticator.forget()
    return Answer(200, {"project": view(call, project)})


async def delete(call: Call) -> Answer:
    """Delete a project."""
    await call.write(lambda tx: projects.delete(tx, call.params["project_id"]))
    call.site.authenticator.forget()
    return Answer(204)
