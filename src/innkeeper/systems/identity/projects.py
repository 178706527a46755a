"""Create, find, change and delete projects.

Always true: names are unique. Tokens of a disabled or deleted project are not valid, because each
check of a token reads the token's project.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from innkeeper.domain.errors import NotFound
from innkeeper.domain.identity import Project
from innkeeper.store.queries.identity import identity
from innkeeper.store.transactions import Tx
from innkeeper.systems.identity.names import could_be_stored


def create(tx: Tx, project: Project) -> Project:
    """Add a project. Raises :class:`AlreadyExists` if the name is in use."""
    identity.add_project(tx, project)
    return project


def get(tx: Tx, project_id: str) -> Project:
    """Return the project with this id. Raises :class:`NotFound`."""
    found = identity.project(tx, project_id) if could_be_stored(project_id) else None
    if found is None:
        raise NotFound(f"Could not find project: {project_id}.")
    return found


def find(tx: Tx, *, name: str | None = None, is_enabled: bool | None = None) -> list[Project]:
    """Return the projects with this name and state, sorted by name. ``None`` allows all."""
    if name is not None and not could_be_stored(name):
        return []
    return identity.find_projects(tx, name=name, is_enabled=is_enabled)


def of_user(tx: Tx, user_id: str) -> list[Project]:
    """Return the projects on which a user has any role."""
    return identity.projects_of_user(tx, user_id) if could_be_stored(user_id) else []


def update(tx: Tx, project_id: str, changes: Mapping[str, Any]) -> Project:
    """Change the fields of a project that are in ``changes``. Return the changed project."""
    get(tx, project_id)
    identity.update_project(tx, project_id, changes)
    return get(tx, project_id)


def delete(tx: Tx, project_id: str) -> None:
    """Delete a project and the roles on it. Resources that the project owns are kept."""
    get(tx, project_id)
    identity.delete_project(tx, project_id)
