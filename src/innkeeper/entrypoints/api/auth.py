"""Authentication in the ``none`` mode of identity.

The token is the name of the caller, as ``USER`` or ``USER:PROJECT``. The user ``admin`` has the
role ``admin``. The headers ``x-roles`` (comma-separated) and ``x-project-id`` override roles and
project. This is OpenStack's noauth2 convention for development and tests. It protects nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from innkeeper.domain.errors import Unauthenticated
from innkeeper.domain.identity import RequestContext

NO_TOKEN = "The request you have made requires authentication."  # noqa: S105 - a message


class NoauthAuthenticator:
    """Trusts every token. See :mod:`innkeeper.entrypoints.api.auth`."""

    async def authenticate(self, headers: Mapping[str, str], request_id: str) -> RequestContext:
        """Return the request context of the user and project that the token names.

        Raises :class:`Unauthenticated` if there is no token.
        """
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
        """Do nothing, because no token is cached."""
