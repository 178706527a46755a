"""Database access for users, projects, roles, role assignments, revoked tokens and secrets.

Always true: functions that add or rename a row raise :class:`AlreadyExists` if the name is in use,
even if another process begins to use it at the same time. A function that changes what tokens
permit invalidates the caches of all processes, in the same transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.errors import AlreadyExists
from innkeeper.domain.identity import Assignment, Project, Role, User
from innkeeper.store import by_ids, invalidations, pruning, records
from innkeeper.store.by_ids import Rows
from innkeeper.store.tables.identity import (
    projects,
    revoked_tokens,
    role_assignments,
    roles,
    secrets,
    users,
)
from innkeeper.store.transactions import Tx

_NOUNS = {projects: "project", users: "user", roles: "role"}
_PROJECTS = sa.select(*records.columns(projects, Project))
_USERS = sa.select(*records.columns(users, User))
_ROLES = sa.select(*records.columns(roles, Role))


def _insert(tx: Tx, table: sa.Table, values: Mapping[str, Any]) -> None:
    try:
        tx.execute(table.insert().values(**values))
    except sa.exc.IntegrityError as error:
        raise _taken(table, values) from error


def _update(tx: Tx, table: sa.Table, row_id: str, values: Mapping[str, Any]) -> None:
    invalidations.invalidate(tx, invalidations.IDENTITY)
    if not values:
        return
    try:
        tx.execute(table.update().where(table.c.id == row_id).values(**values))
    except sa.exc.IntegrityError as error:
        raise _taken(table, values) from error


def _taken(table: sa.Table, values: Mapping[str, Any]) -> AlreadyExists:
    return AlreadyExists(f"There is a {_NOUNS[table]} named {values.get('name')!r} already.")


def _delete(tx: Tx, table: sa.Table, assigned: sa.Column[Any], row_id: str) -> None:
    invalidations.invalidate(tx, invalidations.IDENTITY)
    tx.execute(role_assignments.delete().where(assigned == row_id))
    tx.execute(table.delete().where(table.c.id == row_id))


def _matching(
    query: sa.Select[Any], table: sa.Table, name: str | None, is_enabled: bool | None
) -> sa.Select[Any]:
    query = query.order_by(table.c.name)
    if name is not None:
        query = query.where(table.c.name == name)
    return query if is_enabled is None else query.where(table.c.is_enabled == is_enabled)


# -- projects


def add_project(tx: Tx, project: Project) -> None:
    """Insert a project."""
    _insert(tx, projects, records.values(project))


def project(tx: Tx, project_id: str) -> Project | None:
    """Return the project with this id."""
    return records.first(tx, _PROJECTS.where(projects.c.id == project_id), Project)


def find_projects(
    tx: Tx, *, name: str | None = None, is_enabled: bool | None = None
) -> list[Project]:
    """Return the projects with this name and state, ordered by name. ``None`` allows all."""
    return [Project(*row) for row in tx.execute(_matching(_PROJECTS, projects, name, is_enabled))]


def projects_of_user(tx: Tx, user_id: str) -> list[Project]:
    """Return the projects on which a user has a role, ordered by name."""
    own = sa.select(role_assignments.c.project_id).where(role_assignments.c.user_id == user_id)
    query = _PROJECTS.where(projects.c.id.in_(own)).order_by(projects.c.name)
    return [Project(*row) for row in tx.execute(query)]


def update_project(tx: Tx, project_id: str, values: Mapping[str, Any]) -> None:
    """Set these columns of a project."""
    _update(tx, projects, project_id, values)


def delete_project(tx: Tx, project_id: str) -> None:
    """Delete a project and all role assignments on it."""
    _delete(tx, projects, role_assignments.c.project_id, project_id)


# -- users


def add_user(tx: Tx, user: User) -> None:
    """Insert a user."""
    _insert(tx, users, records.values(user))


def user(tx: Tx, user_id: str) -> User | None:
    """Return the user with this id."""
    return records.first(tx, _USERS.where(users.c.id == user_id), User)


def find_users(tx: Tx, *, name: str | None = None, is_enabled: bool | None = None) -> list[User]:
    """Return the users with this name and state, ordered by name. ``None`` allows all."""
    return [User(*row) for row in tx.execute(_matching(_USERS, users, name, is_enabled))]


def update_user(tx: Tx, user_id: str, values: Mapping[str, Any]) -> None:
    """Set these columns of a user."""
    _update(tx, users, user_id, values)


def delete_user(tx: Tx, user_id: str) -> None:
    """Delete a user and all the user's role assignments."""
    _delete(tx, users, role_assignments.c.user_id, user_id)


def unhashed_passwords(tx: Tx, prefix: str) -> Rows:
    """Return the users whose password is not a hash with this prefix, as rows of (id, name)."""
    # For users without a password, the column is empty. An empty column matches no password.
    query = (
        sa.select(users.c.id, users.c.name)
        .where(users.c.password_hash != "")
        .where(~users.c.password_hash.startswith(prefix, autoescape=True))
    )
    return list(tx.execute(query))


def void_tokens(tx: Tx, user_ids: Collection[str], now: datetime) -> None:
    """Revoke all existing tokens of these users."""
    invalidations.invalidate(tx, invalidations.IDENTITY)
    rows = tx.execute(
        sa.select(users.c.id, users.c.tokens_valid_from).where(users.c.id.in_(list(user_ids)))
    ).all()
    for user_id, stamp in rows:
        # The timestamp must increase even if the clock stands still or is set back.
        later = max(now, stamp + timedelta(microseconds=1))
        tx.execute(users.update().where(users.c.id == user_id).values(tokens_valid_from=later))


# -- roles


def add_role(tx: Tx, role: Role, now: datetime) -> None:
    """Insert a role."""
    _insert(tx, roles, {**records.values(role), "created_at": now})


def role(tx: Tx, role_id: str) -> Role | None:
    """Return the role with this id."""
    return records.first(tx, _ROLES.where(roles.c.id == role_id), Role)


def find_roles(tx: Tx, *, names: Iterable[str] | None = None) -> list[Role]:
    """Return the roles with these names, ordered by name. ``None`` means all roles."""
    query = _ROLES.order_by(roles.c.name)
    if names is not None:
        query = query.where(roles.c.name.in_(list(names)))
    return [Role(*row) for row in tx.execute(query)]


def update_role(tx: Tx, role_id: str, values: Mapping[str, Any]) -> None:
    """Set these columns of a role."""
    _update(tx, roles, role_id, values)


def delete_role(tx: Tx, role_id: str) -> None:
    """Delete a role and all its assignments."""
    _delete(tx, roles, role_assignments.c.role_id, role_id)


# -- role assignments

_OF_USER_ON_PROJECT = (
    _ROLES.join(role_assignments, role_assignments.c.role_id == roles.c.id)
    .where(role_assignments.c.user_id == sa.bindparam("user"))
    .where(role_assignments.c.project_id == sa.bindparam("project"))
    .order_by(roles.c.name)
)


def roles_of(tx: Tx, user_id: str, project_id: str) -> list[Role]:
    """Return the roles of a user on a project, ordered by name."""
    rows = tx.execute(_OF_USER_ON_PROJECT, {"user": user_id, "project": project_id})
    return [Role(*row) for row in rows]


def grant(tx: Tx, user_id: str, project_id: str, role_id: str) -> None:
    """Assign a role to a user on a project. The user must not have the role on the project yet."""
    invalidations.invalidate(tx, invalidations.IDENTITY)
    tx.execute(
        role_assignments.insert().values(user_id=user_id, project_id=project_id, role_id=role_id)
    )


def withdraw(tx: Tx, user_id: str, project_id: str, role_id: str) -> bool:
    """Remove a role assignment; return whether it existed."""
    invalidations.invalidate(tx, invalidations.IDENTITY)
    result = tx.execute(
        role_assignments.delete()
        .where(role_assignments.c.user_id == user_id)
        .where(role_assignments.c.project_id == project_id)
        .where(role_assignments.c.role_id == role_id)
    )
    return result.rowcount > 0


def assignments(
    tx: Tx, *, user_id: str | None = None, project_id: str | None = None, role_id: str | None = None
) -> list[Assignment]:
    """Return the role assignments that match all given ids, ordered by user, project and role."""
    query = (
        sa.select(
            users.c.id, users.c.name, projects.c.id, projects.c.name, *_ROLES.selected_columns
        )
        .select_from(role_assignments)
        .join(users, users.c.id == role_assignments.c.user_id)
        .join(projects, projects.c.id == role_assignments.c.project_id)
        .join(roles, roles.c.id == role_assignments.c.role_id)
        .order_by(users.c.name, projects.c.name, roles.c.name)
    )
    requested = {
        role_assignments.c.user_id: user_id,
        role_assignments.c.project_id: project_id,
        role_assignments.c.role_id: role_id,
    }
    for column, value in requested.items():
        if value is not None:
            query = query.where(column == value)
    return [
        Assignment(user_id, user_name, project_id, project_name, Role(*role))
        for user_id, user_name, project_id, project_name, *role in tx.execute(query)
    ]


# -- tokens and secrets

_USER_AND_REVOCATION = (
    _USERS.add_columns(revoked_tokens.c.audit_id)
    .outerjoin(revoked_tokens, revoked_tokens.c.audit_id.in_(sa.bindparam("chain", expanding=True)))
    .where(users.c.id == sa.bindparam("user"))
)


def user_of_token(tx: Tx, user_id: str, chain: Sequence[str]) -> User | None:
    """Return the user of a token, or ``None`` if any token in its chain is revoked.

    ``chain`` has the audit ids of the token and of the tokens that it was derived from.
    """
    found = tx.execute(_USER_AND_REVOCATION, {"user": user_id, "chain": list(chain)})
    # If any token in the chain is revoked, every row names a revoked token.
    row = found.first()
    if row is None or row[-1] is not None:
        return None
    return User(*row[:-1])


def revoke_token(tx: Tx, audit_id: str, expires_at: datetime) -> None:
    """Revoke a token. The record is kept until the token expires."""
    invalidations.invalidate(tx, invalidations.IDENTITY)
    there = tx.execute(
        sa.select(revoked_tokens.c.audit_id).where(revoked_tokens.c.audit_id == audit_id)
    ).first()
    if there is None:
        tx.execute(revoked_tokens.insert().values(audit_id=audit_id, expires_at=expires_at))


def prune_revoked_tokens(tx: Tx, now: datetime) -> int:
    """Delete the records of revoked tokens that have expired, up to a maximum per call.

    Returns the number of deleted records.
    """
    return pruning.delete_some(tx, revoked_tokens, revoked_tokens.c.expires_at < now)


def secret(tx: Tx, name: str) -> str | None:
    """Return the secret with this name."""
    return tx.execute(sa.select(secrets.c.value).where(secrets.c.name == name)).scalar()


def secrets_named(tx: Tx, names: Collection[str]) -> dict[str, str]:
    """Return the secrets with these names, by name. Unknown names are ignored."""
    query = sa.select(secrets.c.name, secrets.c.value).where(secrets.c.name.in_(by_ids.IDS))
    return {name: value for name, value in by_ids.rows(tx, query, names)}


def add_secret(tx: Tx, name: str, value: str, now: datetime) -> None:
    """Insert a secret."""
    tx.execute(sa.insert(secrets).values(name=name, value=value, created_at=now))


def remove_secret(tx: Tx, name: str) -> None:
    """Delete a secret, if it exists."""
    tx.execute(sa.delete(secrets).where(secrets.c.name == name))


def secrets_by_name(tx: Tx) -> dict[str, str]:
    """Return all secrets by name."""
    rows = tx.execute(sa.select(secrets.c.name, secrets.c.value).order_by(secrets.c.name))
    return {name: value for name, value in rows}
