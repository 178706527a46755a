"""Find the user and the project that a client names when it logs in.

Always true: an unknown user, a wrong password, a disabled user and an unknown or forbidden project
all lead to the same error.
"""

from __future__ import annotations

from dataclasses import dataclass

from innkeeper.domain.errors import Unauthenticated
from innkeeper.domain.identity import (
    DEFAULT_DOMAIN_ID,
    DEFAULT_DOMAIN_NAME,
    Project,
    TokenOwner,
    User,
)
from innkeeper.store.queries.identity import identity
from innkeeper.store.transactions import Tx
from innkeeper.systems.identity.names import could_be_stored

REFUSED = "The request you have made requires authentication."


@dataclass(frozen=True, slots=True)
class NamedEntity:
    """A user or a project, as a client names it: by id, or by name and domain."""

    id: str | None = None
    name: str | None = None
    domain_id: str | None = None
    domain_name: str | None = None

    @property
    def is_ours(self) -> bool:
        """True if this user or project could exist: the id or name and the domain are valid."""
        texts = [text for text in (self.id, self.name) if text is not None]
        in_domain = self.id is not None or (
            self.domain_id == DEFAULT_DOMAIN_ID or self.domain_name == DEFAULT_DOMAIN_NAME
        )
        return bool(texts) and in_domain and all(could_be_stored(text) for text in texts)


@dataclass(frozen=True, slots=True)
class Scope:
    """The requested scope of a token: a project, or no scope at all (``is_unscoped``).

    If a client requests neither, the scope is the user's default project.
    """

    project: NamedEntity | None = None
    is_unscoped: bool = False


def user_named(tx: Tx, claimed: NamedEntity) -> User | None:
    if not claimed.is_ours:
        return None
    if claimed.id is not None:
        return identity.user(tx, claimed.id)
    return next(iter(identity.find_users(tx, name=claimed.name)), None)


def holder(tx: Tx, user: User, scope: Scope) -> TokenOwner:
    """Return the owner of a token with this scope. The caller has checked the password.

    Raises :class:`Unauthenticated` if the user may not have a token with this scope.
    """
    if not user.is_enabled:
        raise Unauthenticated(REFUSED)
    if scope.is_unscoped:
        return TokenOwner(user)
    if scope.project is not None:
        found = _on(tx, user, _project_named(tx, scope.project))
        if found is None:
            raise Unauthenticated(REFUSED)
        return found
    default = user.default_project_id
    project = None if default is None else identity.project(tx, default)
    # If the default project cannot be used, the token is unscoped.
    return _on(tx, user, project) or TokenOwner(user)


def _project_named(tx: Tx, named: NamedEntity) -> Project | None:
    if not named.is_ours:
        return None
    if named.id is not None:
        return identity.project(tx, named.id)
    return next(iter(identity.find_projects(tx, name=named.name)), None)


def _on(tx: Tx, user: User, project: Project | None) -> TokenOwner | None:
    if project is None or not project.is_enabled:
        return None
    roles = tuple(identity.roles_of(tx, user.id, project.id))
    return TokenOwner(user, project, roles) if roles else None
