"""From a request's headers to a context, in the ``none`` mode of identity.

The token itself names the caller: ``USER`` or ``USER:PROJECT``. The user ``admin`` has the
role ``admin``; the header ``x-roles`` (a comma list) and ``x-project-id`` override. This is
the field's convention for development and for tests; it keeps nobody out.
"""

from __future__ import annotations

from collections.abc import Mapping

from innkeeper.domain.errors import Unauthenticated
from innkeeper.domain.identity import RequestContext

NO_TOKEN = "The request you have made requires authentication."  # noqa: S105 - a message


class NoauthAuthenticator:
    """Believes whatever the token says. See :mod:`innkeeper.entrypoints.api.auth`."""

    async def authenticate(self, headers: Mapping[str, str], request_id: str) -> RequestContext:
        """Raises :class:`Unauthenticated` without a token only."""
        token = headers.get("x-auth-token", "")
        user, _, project = token.partition(":")
        if not user:
            raise Unauthenticated(NO_TOKEN)
        is_system = headers.get("openstack-system-scope") == "all"
        named_roles = headers.get("x-roles")
        if named_roles is not None:
            roles = frozenset(role.strip() for role in named_roles.split(",") if role.strip())
        else:
            roles = frozenset({"admin"}) if user == "admin" else frozenset()
        project_id = None if is_system else headers.get("x-project-id") or project or user
        return RequestContext(
            request_id=request_id,
            user_id=user,
            user_name=user,
            project_id=project_id,
            project_name=project_id,
            roles=roles,
            is_system=is_system,
        )

    def forget(self) -> None:
        """Nothing is remembered here."""
