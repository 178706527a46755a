"""The document that shows a token, for every mode of identity."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from innkeeper.domain.identity import Role
from innkeeper.entrypoints.api.identity import catalog, conventions
from innkeeper.entrypoints.api.routing import Call


@dataclass(frozen=True, slots=True)
class TokenView:
    """The content of a token's document. ``user`` and ``project`` are pairs of an id and a name."""

    user: tuple[str, str]
    project: tuple[str, str] | None
    roles: tuple[Role, ...]
    methods: tuple[str, ...]
    audit_ids: tuple[str, ...]
    issued_at: datetime
    expires_at: datetime


def document(call: Call, shown: TokenView) -> dict[str, Any]:
    """Return a token's document. It has roles and a catalog if the token is for a project."""
    user_id, user_name = shown.user
    user = {"id": user_id, "name": user_name, "domain": conventions.DOMAIN}
    token: dict[str, Any] = {
        "methods": list(shown.methods),
        "user": {**user, "password_expires_at": None},
        "audit_ids": list(shown.audit_ids),
        "expires_at": conventions.time_text(shown.expires_at),
        "issued_at": conventions.time_text(shown.issued_at),
    }
    if shown.project is not None:
        project_id, project_name = shown.project
        token["project"] = {"id": project_id, "name": project_name, "domain": conventions.DOMAIN}
        token["is_domain"] = False
        token["roles"] = [{"id": role.id, "name": role.name} for role in shown.roles]
        if "nocatalog" not in call.query:
            token["catalog"] = catalog.whole(call)
    return {"token": token}
