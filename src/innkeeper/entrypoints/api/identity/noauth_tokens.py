"""Tokens in the ``none`` mode of identity: the name of a user, and that of a project.

Any password is accepted, so OpenStack's clients work in this mode with any user and project. See
:mod:`innkeeper.entrypoints.api.auth` for the form of these tokens.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from innkeeper.domain.errors import Invalid, NotFound, Unauthenticated
from innkeeper.domain.identity import Role
from innkeeper.entrypoints.api.identity.token_documents import TokenView
from innkeeper.entrypoints.api.routing import Call
from innkeeper.systems.identity import roles
from innkeeper.systems.identity.logins import NamedEntity, Scope
from innkeeper.systems.identity.tokens import PASSWORD, TOKEN

ADMIN = "admin"
SUBJECT = "x-subject-token"
UNKNOWN_TOKEN = "Could not recognize the token."  # noqa: S105 - a message
_NAME = re.compile(r"[!-9;-~]{1,255}")
"""Visible ASCII without a colon, which separates user and project in the token."""
_TOKEN = re.compile(rf"({_NAME.pattern})(?::({_NAME.pattern}))?")


def issue(call: Call, identity: Mapping[str, Any], scope: Scope) -> tuple[TokenView, str]:
    """Issue a token for a user, and return the token's content and the token itself."""
    if PASSWORD in identity["methods"]:
        fields = identity[PASSWORD]["user"]
        user: str = fields.get("id") or fields.get("name") or ""
    else:
        user = identity[TOKEN]["id"].partition(":")[0]
    project = _project(user, scope)
    text = user if project is None else f"{user}:{project}"
    if _TOKEN.fullmatch(text) is None:
        raise Unauthenticated(
            "If the service checks no passwords, names of users and projects may contain only "
            "visible ASCII characters, and no colons."
        )
    return _shown(call, user, project), text


def _project(user: str, scope: Scope) -> str | None:
    if scope.is_unscoped:
        return None
    named = scope.project or NamedEntity(name=user)
    return named.id or named.name


def subject_header(call: Call) -> str:
    """Return the header ``X-Subject-Token``. Raises :class:`Invalid` if it is missing."""
    text = call.headers.get(SUBJECT)
    if not text:
        raise Invalid("The header X-Subject-Token is missing.")
    return text


def subject(call: Call) -> TokenView:
    """Return the content of the token in the header ``X-Subject-Token``.

    Raises :class:`NotFound` for a malformed token.
    """
    match = _TOKEN.fullmatch(subject_header(call))
    if match is None:
        raise NotFound(UNKNOWN_TOKEN)
    return _shown(call, match[1], match[2] or match[1])


def _shown(call: Call, user: str, project: str | None) -> TokenView:
    names = sorted(roles.names_with_implied([ADMIN])) if user == ADMIN else []
    lifetime = timedelta(seconds=call.site.settings.authenticating.token_lifetime_s)
    return TokenView(
        user=(user, user),
        project=None if project is None else (project, project),
        roles=tuple(Role(name, name) for name in names),
        methods=(PASSWORD,),
        audit_ids=(),
        issued_at=call.now,
        expires_at=call.now + lifetime,
    )
