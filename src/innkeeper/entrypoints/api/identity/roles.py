"""Handlers of roles and role assignments."""

from __future__ import annotations

from typing import Any

from innkeeper.domain.errors import NotFound
from innkeeper.domain.identity import Assignment, Role
from innkeeper.entrypoints.api.identity import conventions
from innkeeper.entrypoints.api.routing import Answer, Call
from innkeeper.systems.identity import roles

NEVER_MATCHING = ("group.id", "scope.domain.id", "scope.system", "scope.OS-INHERIT:inherited_to")
"""Filters for kinds of assignments that this service does not have. A list with such a filter is
empty."""


def _view(call: Call, role: Role) -> dict[str, Any]:
    return {
        "id": role.id,
        "name": role.name,
        "domain_id": None,
        "description": role.description,
        "options": {},
        "links": conventions.self_link(call, "roles", role.id),
    }


async def find(call: Call) -> Answer:
    """List roles."""
    found: list[Role] = []
    # Roles belong to no domain, so a filter by domain matches no role.
    if not call.last("domain_id"):
        found = await call.read(lambda tx: roles.find(tx, name=call.last("name")))
    return conventions.listed(call, "roles", [_view(call, each) for each in found])


async def show(call: Call) -> Answer:
    """Show a role."""
    role = await call.read(lambda tx: roles.get(tx, call.params["role_id"]))
    return Answer(200, {"role": _view(call, role)})


async def create(call: Call) -> Answer:
    """Create a role."""
    fields = call.body["role"]
    new = Role(conventions.new_id(call), fields["name"], fields.get("description"))
    role = await call.write(lambda tx: roles.create(tx, new, now=call.now))
    return Answer(201, {"role": _view(call, role)})


async def update(call: Call) -> Answer:
    """Change a role."""
    fields = call.body["role"]
    changes = {key: fields[key] for key in ("name", "description") if key in fields}
    role = await call.write(lambda tx: roles.update(tx, call.params["role_id"], changes))
    call.site.authenticator.forget()
    return Answer(200, {"role": _view(call, role)})


async def delete(call: Call) -> Answer:
    """Delete a role."""
    await call.write(lambda tx: roles.delete(tx, call.params["role_id"], now=call.now))
    call.site.authenticator.forget()
    return Answer(204)


async def find_granted(call: Call) -> Answer:
    """List the roles of a user on a project."""
    user_id, project_id = call.params["user_id"], call.params["project_id"]
    found = await call.read(lambda tx: roles.of_user(tx, user_id, project_id))
    return conventions.listed(call, "roles", [_view(call, each) for each in found])


def _grant_of(call: Call) -> tuple[str, str, str]:
    return call.params["user_id"], call.params["project_id"], call.params["role_id"]


async def check(call: Call) -> Answer:
    """Check that a user has a role on a project."""
    if not await call.read(lambda tx: roles.is_granted(tx, *_grant_of(call))):
        raise NotFound("The user does not have this role on this project.")
    return Answer(204)


async def grant(call: Call) -> Answer:
    """Assign a role on a project to a user."""
    await call.write(lambda tx: roles.grant(tx, *_grant_of(call)))
    call.site.authenticator.forget()
    return Answer(204)


async def withdraw(call: Call) -> Answer:
    """Remove a user's role on a project."""
    await call.write(lambda tx: roles.withdraw(tx, *_grant_of(call), now=call.now))
    call.site.authenticator.forget()
    return Answer(204)


def _assignment(call: Call, each: Assignment, has_names: bool) -> dict[str, Any]:
    parts = ("projects", each.project_id, "users", each.user_id, "roles", each.role.id)
    user: dict[str, Any] = {"id": each.user_id}
    project: dict[str, Any] = {"id": each.project_id}
    role: dict[str, Any] = {"id": each.role.id}
    if has_names:
        user |= {"name": each.user_name, "domain": conventions.DOMAIN}
        project |= {"name": each.project_name, "domain": conventions.DOMAIN}
        role |= {"name": each.role.name}
    link = {"assignment": conventions.self_link(call, *parts)["self"]}
    return {"role": role, "user": user, "scope": {"project": project}, "links": link}


async def assignments(call: Call) -> Answer:
    """List role assignments."""
    user_id = call.last("user.id")
    call.demand("identity:list_role_assignments", user_id=user_id)
    found: list[Assignment] = []
    if not any(call.last(name) for name in NEVER_MATCHING):
        found = await call.read(
            lambda tx: roles.assignments(
                tx,
                user_id=user_id or None,
                project_id=call.last("scope.project.id") or None,
                role_id=call.last("role.id") or None,
                is_effective=conventions.is_true(call.last("effective")),
            )
        )
    has_names = conventions.is_true(call.last("include_names"))
    shown = [_assignment(call, each, has_names) for each in found]
    return conventions.listed(call, "role_assignments", shown)
