"""Create the roles, the administrator and the service's own user at the first start.

Always true: one transaction writes all rows and a mark. If a start is killed before the commit,
nothing is written. Later starts find the mark and write nothing, even if an administrator has
changed or deleted the rows.
"""

from __future__ import annotations

from datetime import datetime

from innkeeper.domain.identity import ROLES, Project, Role, User
from innkeeper.domain.ids import IdSource
from innkeeper.store.queries.identity import identity
from innkeeper.store.transactions import Tx
from innkeeper.systems.identity import attempts

MARK = "first_start"
ADMIN = "admin"
AGENT = "innkeeper-agent"
SERVICE_PROJECT = "service"


def is_done(tx: Tx) -> bool:
    return identity.secret(tx, MARK) is not None


def ensure(tx: Tx, *, admin_hash: str, agent_hash: str, ids: IdSource, now: datetime) -> bool:
    """Write the initial users, projects and roles, if no earlier start has written them.

    Return True if this call has written them. The caller passes the hashes of new random passwords.
    The agents' password is never used, because :func:`innkeeper.systems.identity.tokens.mint`
    creates their tokens.
    """
    if is_done(tx):
        return False
    _administrator(tx, admin_hash, ids, now)
    project = _project(tx, SERVICE_PROJECT, "The cloud's own programs.", ids, now)
    user = _user(tx, AGENT, agent_hash, "The agents of this service.", ids, now)
    _grant(tx, user, project, "service", ids, now)
    identity.add_secret(tx, MARK, now.isoformat(), now)
    return True


def reset_administrator(tx: Tx, *, admin_hash: str, ids: IdSource, now: datetime) -> None:
    """Set the administrator's password. Restore the user, project and roles if needed."""
    user = _administrator(tx, admin_hash, ids, now)
    identity.update_user(tx, user.id, {"password_hash": admin_hash, "is_enabled": True})
    identity.void_tokens(tx, [user.id], now)
    attempts.forgive(tx, user.id)


def _administrator(tx: Tx, admin_hash: str, ids: IdSource, now: datetime) -> User:
    for name in ROLES:
        _role(tx, name, ids, now)
    project = _project(tx, ADMIN, "The administrator's project.", ids, now)
    identity.update_project(tx, project.id, {"is_enabled": True})
    user = _user(tx, ADMIN, admin_hash, "The administrator.", ids, now)
    _grant(tx, user, project, "admin", ids, now)
    return user


def _new_id(ids: IdSource) -> str:
    return ids.uuid().replace("-", "")


def _role(tx: Tx, name: str, ids: IdSource, now: datetime) -> Role:
    for found in identity.find_roles(tx, names=[name]):
        return found
    role = Role(_new_id(ids), name)
    identity.add_role(tx, role, now)
    return role


def _project(tx: Tx, name: str, text: str, ids: IdSource, now: datetime) -> Project:
    for found in identity.find_projects(tx, name=name):
        return found
    project = Project(_new_id(ids), name, text, True, now)
    identity.add_project(tx, project)
    return project


def _user(tx: Tx, name: str, password_hash: str, text: str, ids: IdSource, now: datetime) -> User:
    for found in identity.find_users(tx, name=name):
        return found
    user = User(_new_id(ids), name, password_hash, now, now, description=text)
    identity.add_user(tx, user)
    return user


def _grant(
    tx: Tx, user: User, project: Project, role_name: str, ids: IdSource, now: datetime
) -> None:
    role = _role(tx, role_name, ids, now)
    if role not in identity.roles_of(tx, user.id, project.id):
        identity.grant(tx, user.id, project.id, role.id)
