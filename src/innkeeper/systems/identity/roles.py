"""Create, change, assign and remove roles, and find the roles that a role implies.

Always true: the roles of the first start cannot be renamed or deleted, because policies refer to
them. Removing a role from a user revokes the user's tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from innkeeper.domain.errors import Forbidden, NotFound
from innkeeper.domain.identity import ROLES, Assignment, Role
from innkeeper.store.queries.identity import identity
from innkeeper.store.transactions import Tx
from innkeeper.systems.identity import projects, users
from innkeeper.systems.identity.names import could_be_stored

IMPLIED: Mapping[str, tuple[str, ...]] = {"admin": ("member", "reader"), "member": ("reader",)}
"""The roles that each role implies."""


def names_with_implied(names: Iterable[str]) -> frozenset[str]:
    """Return the names of these roles and of all roles that they imply."""
    given = frozenset(names)
    return given.union(*(IMPLIED.get(name, ()) for name in given))


def with_implied(tx: Tx, given: Iterable[Role]) -> tuple[Role, ...]:
    """Return these roles, and all existing roles that they imply."""
    roles = tuple(given)
    names = {role.name for role in roles}
    missing = names_with_implied(names) - names
    if not missing:
        return roles
    found = identity.find_roles(tx, names=missing)
    return tuple(sorted((*roles, *found), key=lambda role: role.name))


def create(tx: Tx, role: Role, *, now: datetime) -> Role:
    """Add a role. Raises :class:`AlreadyExists` if the name is in use."""
    identity.add_role(tx, role, now)
    return role


def get(tx: Tx, role_id: str) -> Role:
    """Return the role with this id. Raises :class:`NotFound`."""
    found = identity.role(tx, role_id) if could_be_stored(role_id) else None
    if found is None:
        raise NotFound(f"Could not find role: {role_id}.")
    return found


def find(tx: Tx, *, name: str | None = None) -> list[Role]:
    """Return all roles, or the role with this name."""
    if name is not None and not could_be_stored(name):
        return []
    return identity.find_roles(tx, names=None if name is None else [name])


def update(tx: Tx, role_id: str, changes: Mapping[str, Any]) -> Role:
    """Change a role. Raises :class:`Forbidden` if ``changes`` would rename a standard role."""
    role = get(tx, role_id)
    if role.name in ROLES and changes.get("name", role.name) != role.name:
        raise Forbidden(f"The role {role.name!r} cannot be renamed, because policies refer to it.")
    identity.update_role(tx, role_id, changes)
    return get(tx, role_id)


def delete(tx: Tx, role_id: str, *, now: datetime) -> None:
    """Delete a role and its assignments. Raises :class:`Forbidden` for a standard role."""
    role = get(tx, role_id)
    if role.name in ROLES:
        raise Forbidden(f"The role {role.name!r} cannot be deleted, because policies refer to it.")
    holders = {each.user_id for each in identity.assignments(tx, role_id=role_id)}
    identity.delete_role(tx, role_id)
    identity.void_tokens(tx, holders, now)


def of_user(tx: Tx, user_id: str, project_id: str) -> list[Role]:
    """Return a user's roles on a project.

    Raises :class:`NotFound` for an unknown user or project.
    """
    users.get(tx, user_id)
    projects.get(tx, project_id)
    return identity.roles_of(tx, user_id, project_id)


def is_granted(tx: Tx, user_id: str, project_id: str, role_id: str) -> bool:
    get(tx, role_id)
    return any(role.id == role_id for role in of_user(tx, user_id, project_id))


def grant(tx: Tx, user_id: str, project_id: str, role_id: str) -> None:
    """Assign a role on a project to a user. An existing assignment is not an error."""
    if not is_granted(tx, user_id, project_id, role_id):
        identity.grant(tx, user_id, project_id, role_id)


def withdraw(tx: Tx, user_id: str, project_id: str, role_id: str, *, now: datetime) -> None:
    """Remove a user's role on a project, and revoke the user's tokens."""
    if not is_granted(tx, user_id, project_id, role_id):
        raise NotFound(
            f"Could not find role assignment with role: {role_id}, user: {user_id}, "
            f"project: {project_id}."
        )
    identity.withdraw(tx, user_id, project_id, role_id)
    identity.void_tokens(tx, [user_id], now)


def assignments(
    tx: Tx,
    *,
    user_id: str | None = None,
    project_id: str | None = None,
    role_id: str | None = None,
    is_effective: bool = False,
) -> list[Assignment]:
    """Return assignments of roles. With ``is_effective``, include implied roles."""
    ids = [text for text in (user_id, project_id, role_id) if text is not None]
    if not all(could_be_stored(text) for text in ids):
        return []
    if not is_effective:
        return identity.assignments(tx, user_id=user_id, project_id=project_id, role_id=role_id)
    given = identity.assignments(tx, user_id=user_id, project_id=project_id)
    by_name = {role.name: role for role in identity.find_roles(tx)}
    held: dict[tuple[str, str, str], Assignment] = {}
    for each in given:
        for name in sorted(names_with_implied([each.role.name])):
            if name in by_name:
                key = (each.user_id, each.project_id, name)
                held[key] = replace(each, role=by_name[name])
    return [each for each in held.values() if role_id in (None, each.role.id)]
