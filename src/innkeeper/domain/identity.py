"""Who asks: users, projects, roles, and the context that every request carries.

Always true: a :class:`RequestContext` is made once, at the edge, from a checked token, and is
never widened on the way down.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

DEFAULT_DOMAIN_ID = "default"
DEFAULT_DOMAIN_NAME = "Default"
ROLES = ("admin", "member", "reader", "service")
"""Roles that exist from the first start on; more can be created."""


@dataclass(frozen=True, slots=True)
class RequestContext:
    """The caller of one request, as the token says, and the request's own id.

    ``global_request_id`` is the id that the caller gave the larger job this request is part of.
    """

    request_id: str
    user_id: str | None = None
    project_id: str | None = None
    roles: frozenset[str] = frozenset()
    user_name: str | None = None
    project_name: str | None = None
    is_system: bool = False
    global_request_id: str | None = None

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
    """Somebody, or a program, that can ask for a token."""

    id: str
    name: str
    password_hash: str
    email: str | None = None
    description: str = ""
    default_project_id: str | None = None
    is_enabled: bool = True
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Role:
    """A named right that a user can have on a project."""

    id: str
    name: str
    description: str | None = None


@dataclass(frozen=True, slots=True)
class Token:
    """What a token stands for."""

    audit_id: str
    user: User
    project: Project | None
    roles: tuple[Role, ...]
    methods: tuple[str, ...]
    issued_at: datetime
    expires_at: datetime
    extras: dict[str, str] = field(default_factory=dict)
