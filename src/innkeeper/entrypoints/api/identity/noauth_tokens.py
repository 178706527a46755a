"""Tokens in the ``none`` mode of identity: any password will do, and the token is the name.

So the stock clients can be used there too, with any user, project and password. See
:mod:`innkeeper.entrypoints.api.auth` for what such a token means.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from innkeeper.domain.errors import Invalid, NotFound, Unauthenticated
from innkeeper.domain.identity import Role
from innkeeper.entrypoints.api.identity.token_documents import Shown
from innkeeper.entrypoints.api.routing import Call
from innkeeper.systems.identity import roles
from innkeeper.systems.identity.logins import NamedEntity, Scope
from innkeeper.systems.identity.tokens import PASSWORD, TOKEN

ADMIN = "admin"
_NAME = re.compile(r"[!-9;-~]{1,255}")
"""What fits between the colons of a header: visible ASCII without one."""
_TOKEN = re.compile(rf"({_NAME.pattern})(?::({_NAME.pattern}))?")


def issue(call: Call, identity: Mapping[str, Any], scope: Scope) -> tuple[Shown, str]:
    """What a token stands for, and the token."""
    if PASSWORD in identity["methods"]:
        fields = identity[PASSWORD]["user"]
        user: str = fields.get("id") or fields.get("name") or ""
    else:
        user = identity[TOKEN]["id"].partition(":")[0]
    project = _project(user, scope)
    text = user if project is None else f"{user}:{project}"
    if _TOKEN.fullmatch(text) is None:
        raise Unauthenticated(
            "In this mode of identity, users and projects are named in visible ASCII "
            "without colons."
        )
    return _shown(call, user, project), text


def _project(user: str, scope: Scope) -> str | None:
    if scope.is_unscoped:
        return None
    named = scope.project or NamedEntity(name=user)
    return named.id or named.name


def subject(call: Call) -> Shown:
    """What the token stands for that the call is about."""
    text = call.headers.get("x-subject-token")
    if not text:
        raise Invalid("The header X-Subject-Token is missing.")
    match = _TOKEN.fullmatch(text)
    if match is None:
        raise NotFound("Could not recognize the token.")
    return _shown(call, match[1], match[2] or match[1])


def _shown(call: Call, user: str, project: str | None) -> Shown:
    names = sorted(roles.names_with_implied([ADMIN])) if user == ADMIN else []
    lifetime = timedelta(seconds=call.site.settings.authenticating.token_lifetime_s)
    return Shown(
        user=(user, user),
        project=None if project is None else (project, project),
        roles=tuple(Role(name, name) for name in names),
        methods=(PASSWORD,),
        audit_ids=(),
        issued_at=call.now,
        expires_at=call.now + lifetime,
    )
