"""Users, projects, roles, and the context of a request.

Always true: the API creates the :class:`RequestContext` of a request once, from a validated token.
Later code never extends the rights in the context.
"""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from innkeeper.domain.zone_tree import Hop

DEFAULT_DOMAIN_ID = "default"
DEFAULT_DOMAIN_NAME = "Default"
ROLES = ("admin", "member", "reader", "service")
"""The roles that the first start creates. More roles can be added."""


@dataclass(frozen=True, slots=True)
class AgentIdentity:
    """An agent with its own credential. ``hosts`` are patterns for the hosts that it may report.

    Without patterns, the agent may report any host that no other agent reports.
    """

    agent_name: str
    hosts: tuple[str, ...] = ()

    def may_report(self, host_name: str) -> bool:
        """Return whether the agent may report a host with this name."""
        return not self.hosts or any(
            fnmatch.fnmatchcase(host_name, pattern) for pattern in self.hosts
        )


class RequestContext(msgspec.Struct, frozen=True):
    """The caller of one request, according to its token, and the id of the request.

    ``agent_identity`` is set for agents with their own credential, which may use the agents' API
    only. ``hop`` is set for requests of zone parents.
    """

    request_id: str
    user_id: str | None = None
    project_id: str | None = None
    roles: frozenset[str] = frozenset()
    user_name: str | None = None
    project_name: str | None = None
    is_system: bool = False
    agent_identity: AgentIdentity | None = None
    hop: Hop | None = None

    @property
    def is_admin(self) -> bool:
        """Whether the caller is an administrator of this zone. Zone parents never are."""
        return "admin" in self.roles and self.hop is None

    def reaches(self, project_id: str) -> bool:
        """Return whether the caller's zone may act on a project. This does not check roles.

        For a zone parent, this is true only for its own projects. For a caller of this zone, it is
        true for all projects.
        """
        return self.hop is None or self.hop.parent.owns(project_id)


@dataclass(frozen=True, slots=True)
class Project:
    """The owner of resources."""

    id: str
    name: str
    description: str = ""
    is_enabled: bool = True
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class User:
    """A person or program that can request tokens.

    ``tokens_valid_from`` is part of every token. It advances when a password changes or a right
    is removed, which revokes all earlier tokens.
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
    """A role that users can have on projects."""

    id: str
    name: str
    description: str | None = None


@dataclass(frozen=True, slots=True)
class Assignment:
    """The assignment of a role to a user on a project."""

    user_id: str
    user_name: str
    project_id: str
    project_name: str
    role: Role


@dataclass(frozen=True, slots=True)
class TokenOwner:
    """The user of a token, the token's project, and the user's present roles on this project.

    With an unscoped token, there is no project and no role.
    """

    user: User
    project: Project | None = None
    roles: tuple[Role, ...] = ()


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One URL of a service. ``interface`` is ``public``, ``internal`` or ``admin``."""

    id: str
    service_id: str
    interface: str
    url: str


@dataclass(frozen=True, slots=True)
class CatalogService:
    """An API in the service catalog. ``path`` is its prefix under the address of this service."""

    id: str
    name: str
    type: str
    path: str


@dataclass(frozen=True, slots=True)
class AgentCredential:
    """The credential of one agent. Only a hash of its secret is stored."""

    id: str
    agent_name: str
    secret_hash: str = field(repr=False)
    hosts: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None = None
