"""Handlers of projects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from innkeeper.domain.errors import Invalid
from innkeeper.domain.identity import DEFAULT_DOMAIN_ID, Project
from innkeeper.entrypoints.api.identity import conventions
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.identity import projects


def _view(call: Call, project: Project) -> dict[str, Any]:
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
        raise Invalid("A project cannot be a domain: there is only the default domain.")
    if fields.get("parent_id") not in (None, DEFAULT_DOMAIN_ID):
        raise Invalid("The parent of a project must be the default domain.")


def _listed(call: Call, found: list[Project]) -> Answer:
    return conventions.listed(call, "projects", [_view(call, each) for each in found])


async def find(call: Call) -> Answer:
    """List projects."""
    is_nowhere = (
        conventions.is_elsewhere(call)
        or call.last("parent_id", DEFAULT_DOMAIN_ID) != DEFAULT_DOMAIN_ID
        or conventions.is_true(call.last("is_domain"))
    )
    if is_nowhere:
        return _listed(call, [])
    name, is_enabled = call.last("name"), conventions.yes_or_no(call.last("enabled"))
    return _listed(
        call, await call.read(lambda tx: projects.find(tx, name=name, is_enabled=is_enabled))
    )


async def of_user(call: Call) -> Answer:
    """List the projects on which a user has a role."""
    user_id = call.params["user_id"]
    call.demand("identity:list_user_projects", user_id=user_id)
    return _listed(call, await call.read(lambda tx: projects.of_user(tx, user_id)))


async def of_caller(call: Call) -> Answer:
    """List the projects that the caller can log in to."""
    found = await call.read(lambda tx: projects.of_user(tx, call.context.user_id or ""))
    if call.site.signer is None and call.context.project_id is not None:
        # Without a signer the service stores no users, and any user can log in to any project.
        found = [Project(call.context.project_id, call.context.project_id)]
    return _listed(call, [each for each in found if each.is_enabled])


async def show(call: Call) -> Answer:
    """Show a project."""
    project_id = call.params["project_id"]
    call.demand("identity:get_project", project_id=project_id)
    project = await call.read(lambda tx: projects.get(tx, project_id))
    return Answer(200, {"project": _view(call, project)})


async def create(call: Call) -> Answer:
    """Create a project."""
    fields = call.body["project"]
    _check(fields)
    new = Project(
        id=conventions.new_id(call),
        name=fields["name"],
        description=fields.get("description") or "",
        is_enabled=fields.get("enabled", True),
        created_at=call.now,
    )
    project = await call.write(lambda tx: projects.create(tx, new))
    return Answer(201, {"project": _view(call, project)})


async def update(call: Call) -> Answer:
    """Change a project."""
    fields = call.body["project"]
    _check(fields)
    changes = conventions.changes(fields, "name")
    project_id = call.params["project_id"]
    project = await call.write(lambda tx: projects.update(tx, project_id, changes))
    call.site.authenticator.forget()
    return Answer(200, {"project": _view(call, project)})


async def delete(call: Call) -> Answer:
    """Delete a project."""
    await call.write(lambda tx: projects.delete(tx, call.params["project_id"]))
    call.site.authenticator.forget()
    return Answer(204)
