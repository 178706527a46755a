"""Who asks: users, projects, roles, and the context that every request carries.

Always true: a :class:`RequestContext` is made once, at the edge, from a checked token, and is
never widened on the way down.
"""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass, field
from datetime import datetime

DEFAULT_DOMAIN_ID = "default"
DEFAULT_DOMAIN_NAME = "Default"
ROLES = ("admin", "member", "reader", "service")
"""Roles that exist from the first start on; more can be created."""


@dataclass(frozen=True, slots=True)
class Speaker:
    """An agent that called with a credential of its own: its name, and of which hosts it may
    speak, by patterns of their names. Without patterns those are all that nobody else has.
    """

    agent_name: str
    hosts: tuple[str, ...] = ()

    def may_report(self, host_name: str) -> bool:
        """Whether the patterns let a host in."""
        return not self.hosts or any(
            fnmatch.fnmatchcase(host_name, pattern) for pattern in self.hosts
        )


@dataclass(frozen=True, slots=True)
class RequestContext:
    """The caller of one request, as the token says, and the request's own id.

    ``speaker`` is set for agents with a credential of their own, who may do nothing else than
    what agents do.
    """

    request_id: str
    user_id: str | None = None
    project_id: str | None = None
    roles: frozenset[str] = frozenset()
    user_name: str | None = None
    project_name: str | None = None
    is_system: bool = False
    speaker: Speaker | None = None

    @property
    def is_admin(self) -> bool:
        """Whether the caller has the administrator's role."""
        return "admin" in self.roles


@dataclass(frozen=True, slots=True)
class Project:
    """Who owns and pays."""

    id: str
    name: str
    description: str = ""
    is_enabled: bool = True
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class User:
    """Somebody, or a program, that can ask for a token.

    ``tokens_valid_from`` is a stamp that every token carries; it moves on when a password or a
    right is taken away, and leaves the tokens behind it void.
    """

    id: str
    name: str
    password_hash: str = field(repr=False)
    tokens_valid_from: datetime
    created_at: datetime
    email: str | None = None
    description: str = ""
    default_project_id: str | None = None
    is_enabled: bool = True


@dataclass(frozen=True, slots=True)
class Role:
    """A named right that a user can have on a project."""

    id: str
    name: str
    description: str | None = None


@dataclass(frozen=True, slots=True)
class Assignment:
    """A role that a user has on a project."""

    user_id: str
    user_name: str
    project_id: str
    project_name: str
    role: Role


@dataclass(frozen=True, slots=True)
class TokenOwner:
    """Whom a token stands for now: the user, and the roles on the project it is scoped to.

    Without a project there are no roles either.
    """

    user: User
    project: Project | None = None
    roles: tuple[Role, ...] = ()


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One address of a service. ``interface`` is ``public``, ``internal`` or ``admin``."""

    id: str
    service_id: str
    interface: str
    url: str


@dataclass(frozen=True, slots=True)
class CatalogService:
    """An API in the service catalog; ``path`` is where it begins on this service's address."""

    id: str
    name: str
    type: str
    path: str


@dataclass(frozen=True, slots=True)
class AgentCredential:
    """What one agent proves with that it is that agent; of its secret only a hash is kept."""

    id: str
    agent_name: str
    secret_hash: str = field(repr=False)
    hosts: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None = None
