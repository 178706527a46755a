"""Users, projects, roles, who has which, revoked tokens and secrets.

Always true: a function that adds or renames raises :class:`AlreadyExists` for a name that is
taken, whoever was faster. One that changes what a token stands for tells so to all processes
that remember it, in the same transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from innkeeper.domain.errors import AlreadyExists
from innkeeper.domain.identity import Assignment, Project, Role, User
from innkeeper.store import invalidations
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


def _insert(tx: Tx, table: sa.Table, values: Mapping[str, Any]) -> None:
    try:
        tx.execute(table.insert().values(**values))
    except sa.exc.IntegrityError as error:
        raise _taken(table, values) from error


def _update(tx: Tx, table: sa.Table, row_id: str, values: Mapping[str, Any]) -> None:
    if not values:
        return
    try:
        tx.execute(table.update().where(table.c.id == row_id).values(**values))
    except sa.exc.IntegrityError as error:
        raise _taken(table, values) from error


def _taken(table: sa.Table, values: Mapping[str, Any]) -> AlreadyExists:
    return AlreadyExists(f"There is a {_NOUNS[table]} named {values.get('name')!r} already.")


# -- projects

_PROJECT_COLUMNS = (
    projects.c.id,
    projects.c.name,
    projects.c.description,
    projects.c.is_enabled,
    projects.c.created_at,
)


def add_project(tx: Tx, project: Project) -> None:
    """Add a project."""
    values = {column.name: getattr(project, column.name) for column in _PROJECT_COLUMNS}
    _insert(tx, projects, values)


def project(tx: Tx, project_id: str) -> Project | None:
    """The project with this id."""
    row = tx.execute(sa.select(*_PROJECT_COLUMNS).where(projects.c.id == project_id)).first()
    return None if row is None else Project(*row)


def find_projects(
    tx: Tx, *, name: str | None = None, is_enabled: bool | None = None
) -> list[Project]:
    """The projects that fit, by name."""
    query = sa.select(*_PROJECT_COLUMNS).order_by(projects.c.name)
    if name is not None:
        query = query.where(projects.c.name == name)
    if is_enabled is not None:
        query = query.where(projects.c.is_enabled == is_enabled)
    return [Project(*row) for row in tx.execute(query)]


def projects_of_user(tx: Tx, user_id: str) -> list[Project]:
    """The projects on which a user has any role, by name."""
    mine = sa.select(role_assignments.c.project_id).where(role_assignments.c.user_id == user_id)
    query = sa.select(*_PROJECT_COLUMNS).where(projects.c.id.in_(mine)).order_by(projects.c.name)
    return [Project(*row) for row in tx.execute(query)]


def update_project(tx: Tx, project_id: str, values: Mapping[str, Any]) -> None:
    """Change some columns of a project."""
    invalidations.tell(tx, invalidations.IDENTITY)
    _update(tx, projects, project_id, values)


def delete_project(tx: Tx, project_id: str) -> None:
    """Drop a project, and all roles on it."""
    invalidations.tell(tx, invalidations.IDENTITY)
    tx.execute(role_assignments.delete().where(role_assignments.c.project_id == project_id))
    tx.execute(projects.delete().where(projects.c.id == project_id))


# -- users

_USER_COLUMNS = (
    users.c.id,
    users.c.name,
    users.c.password_hash,
    users.c.tokens_valid_from,
    users.c.created_at,
    users.c.email,
    users.c.description,
    users.c.default_project_id,
    users.c.is_enabled,
)


def add_user(tx: Tx, user: User) -> None:
    """Add a user."""
    _insert(tx, users, {column.name: getattr(user, column.name) for column in _USER_COLUMNS})


def user(tx: Tx, user_id: str) -> User | None:
    """The user with this id."""
    row = tx.execute(sa.select(*_USER_COLUMNS).where(users.c.id == user_id)).first()
    return None if row is None else User(*row)


def find_users(tx: Tx, *, name: str | None = None, is_enabled: bool | None = None) -> list[User]:
    """The users that fit, by name."""
    query = sa.select(*_USER_COLUMNS).order_by(users.c.name)
    if name is not None:
        query = query.where(users.c.name == name)
    if is_enabled is not None:
        query = query.where(users.c.is_enabled == is_enabled)
    return [User(*row) for row in tx.execute(query)]


def update_user(tx: Tx, user_id: str, values: Mapping[str, Any]) -> None:
    """Change some columns of a user."""
    invalidations.tell(tx, invalidations.IDENTITY)
    _update(tx, users, user_id, values)


def delete_user(tx: Tx, user_id: str) -> None:
    """Drop a user, and all roles of the user."""
    invalidations.tell(tx, invalidations.IDENTITY)
    tx.execute(role_assignments.delete().where(role_assignments.c.user_id == user_id))
    tx.execute(users.delete().where(users.c.id == user_id))


def void_tokens(tx: Tx, user_ids: Collection[str], now: datetime) -> None:
    """Leave all tokens behind that these users have."""
    invalidations.tell(tx, invalidations.IDENTITY)
    rows = tx.execute(
        sa.select(users.c.id, users.c.tokens_valid_from).where(users.c.id.in_(list(user_ids)))
    ).all()
    for user_id, stamp in rows:
        # A clock may stand still or step back; the stamp must move on all the same.
        later = max(now, stamp + timedelta(microseconds=1))
        tx.execute(users.update().where(users.c.id == user_id).values(tokens_valid_from=later))


# -- roles

_ROLE_COLUMNS = (roles.c.id, roles.c.name, roles.c.description)


def add_role(tx: Tx, role: Role, now: datetime) -> None:
    """Add a role."""
    values = {column.name: getattr(role, column.name) for column in _ROLE_COLUMNS}
    _insert(tx, roles, {**values, "created_at": now})


def role(tx: Tx, role_id: str) -> Role | None:
    """The role with this id."""
    row = tx.execute(sa.select(*_ROLE_COLUMNS).where(roles.c.id == role_id)).first()
    return None if row is None else Role(*row)


def find_roles(tx: Tx, *, names: Iterable[str] | None = None) -> list[Role]:
    """All roles, or those with these names, by name."""
    query = sa.select(*_ROLE_COLUMNS).order_by(roles.c.name)
    if names is not None:
        query = query.where(roles.c.name.in_(list(names)))
    return [Role(*row) for row in tx.execute(query)]


def update_role(tx: Tx, role_id: str, values: Mapping[str, Any]) -> None:
    """Change some columns of a role."""
    invalidations.tell(tx, invalidations.IDENTITY)
    _update(tx, roles, role_id, values)


def delete_role(tx: Tx, role_id: str) -> None:
    """Drop a role, and take it from everybody."""
    invalidations.tell(tx, invalidations.IDENTITY)
    tx.execute(role_assignments.delete().where(role_assignments.c.role_id == role_id))
    tx.execute(roles.delete().where(roles.c.id == role_id))


# -- who has which role

_OF_USER_ON_PROJECT = (
    sa.select(*_ROLE_COLUMNS)
    .join(role_assignments, role_assignments.c.role_id == roles.c.id)
    .where(role_assignments.c.user_id == sa.bindparam("user"))
    .where(role_assignments.c.project_id == sa.bindparam("project"))
    .order_by(roles.c.name)
)


def roles_of(tx: Tx, user_id: str, project_id: str) -> list[Role]:
    """The roles that were given to a user on a project, by name."""
    rows = tx.execute(_OF_USER_ON_PROJECT, {"user": user_id, "project": project_id})
    return [Role(*row) for row in rows]


def grant(tx: Tx, user_id: str, project_id: str, role_id: str) -> None:
    """Give a role that the user does not have there yet."""
    invalidations.tell(tx, invalidations.IDENTITY)
    tx.execute(
        role_assignments.insert().values(user_id=user_id, project_id=project_id, role_id=role_id)
    )


def withdraw(tx: Tx, user_id: str, project_id: str, role_id: str) -> bool:
    """Take a role away; tell whether it was there."""
    invalidations.tell(tx, invalidations.IDENTITY)
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
    """Who has which role on what, in a stable order."""
    query = (
        sa.select(users.c.id, users.c.name, projects.c.id, projects.c.name, *_ROLE_COLUMNS)
        .select_from(role_assignments)
        .join(users, users.c.id == role_assignments.c.user_id)
        .join(projects, projects.c.id == role_assignments.c.project_id)
        .join(roles, roles.c.id == role_assignments.c.role_id)
        .order_by(users.c.name, projects.c.name, roles.c.name)
    )
    wanted = {
        role_assignments.c.user_id: user_id,
        role_assignments.c.project_id: project_id,
        role_assignments.c.role_id: role_id,
    }
    for column, value in wanted.items():
        if value is not None:
            query = query.where(column == value)
    return [
        Assignment(row[0], row[1], row[2], row[3], Role(row[4], row[5], row[6]))
        for row in tx.execute(query)
    ]


# -- tokens and secrets

_USER_AND_REVOCATION = (
    sa.select(*_USER_COLUMNS, revoked_tokens.c.audit_id)
    .select_from(users)
    .outerjoin(revoked_tokens, revoked_tokens.c.audit_id.in_(sa.bindparam("chain", expanding=True)))
    .where(users.c.id == sa.bindparam("user"))
)


def user_of_token(tx: Tx, user_id: str, chain: Sequence[str]) -> User | None:
    """The user a token belongs to; none if it, or one before it in its chain, was revoked."""
    found = tx.execute(_USER_AND_REVOCATION, {"user": user_id, "chain": list(chain)})
    # With one revoked token in the chain or several, the first row has one.
    row = found.first()
    if row is None or row[-1] is not None:
        return None
    return User(*row[:-1])


def revoke_token(tx: Tx, audit_id: str, expires_at: datetime) -> None:
    """Remember that a token is void until it would have ended by itself."""
    invalidations.tell(tx, invalidations.IDENTITY)
    there = tx.execute(
        sa.select(revoked_tokens.c.audit_id).where(revoked_tokens.c.audit_id == audit_id)
    ).first()
    if there is None:
        tx.execute(revoked_tokens.insert().values(audit_id=audit_id, expires_at=expires_at))


def prune_revoked_tokens(tx: Tx, now: datetime) -> int:
    """Forget revoked tokens that have ended by themselves; give their number."""
    return tx.execute(revoked_tokens.delete().where(revoked_tokens.c.expires_at < now)).rowcount


def secret(tx: Tx, name: str) -> str | None:
    """The secret with this name."""
    return tx.execute(sa.select(secrets.c.value).where(secrets.c.name == name)).scalar()


def add_secret(tx: Tx, name: str, value: str, now: datetime) -> None:
    """Add a secret that is not there yet."""
    tx.execute(sa.insert(secrets).values(name=name, value=value, created_at=now))


def remove_secret(tx: Tx, name: str) -> None:
    """Drop a secret, if it is there."""
    tx.execute(sa.delete(secrets).where(secrets.c.name == name))


def secrets_by_name(tx: Tx) -> dict[str, str]:
    """All that is kept, by name."""
    rows = tx.execute(sa.select(secrets.c.name, secrets.c.value).order_by(secrets.c.name))
    return {name: value for name, value in rows}
