"""Validates tokens with a Keystone.

Always true: every request has a deadline, and no token is written to a log. The client is
thread-safe.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import msgspec
import structlog
from keystoneauth1 import exceptions, session
from keystoneauth1.identity import v3

from innkeeper.domain.errors import Unavailable

LOG = structlog.get_logger("innkeeper.keystone")
HEADER_LENGTH_MAX = 8192
"""The maximum length of a token. Every token of a Keystone is shorter than this, even one that
contains a catalog."""
SILENT = "The identity service does not answer."


class Validated(msgspec.Struct, frozen=True):
    """The user, project and roles of a valid token."""

    user_id: str
    user_name: str
    project_id: str | None
    project_name: str | None
    roles: frozenset[str]
    is_system: bool
    expires_at: datetime


class _Named(msgspec.Struct):
    id: str
    name: str


class _System(msgspec.Struct):
    all: bool = False


class _Token(msgspec.Struct):
    user: _Named
    expires_at: Annotated[datetime, msgspec.Meta(tz=True)]
    project: _Named | None = None
    roles: list[_Named] = []
    system: _System | None = None


class _Answer(msgspec.Struct):
    token: _Token


_DECODER = msgspec.json.Decoder(_Answer)


class Keystone:
    """Calls a Keystone as the service user that validates tokens.

    ``url`` is the address of Keystone's Identity API, with or without ``/v3``. ``domain`` is the
    name of the domain of both the user and the project.
    """

    def __init__(
        self, url: str, *, user: str, password: str, project: str, domain: str, timeout_s: float
    ) -> None:
        bare = url.rstrip("/")
        self.url = bare if bare.endswith("/v3") else bare + "/v3"
        login = v3.Password(
            auth_url=self.url,
            username=user,
            password=password,
            project_name=project,
            user_domain_name=domain,
            project_domain_name=domain,
        )
        self._session = session.Session(auth=login, timeout=timeout_s)

    def validate(self, token: str) -> Validated | None:
        """Validate a token; returns ``None`` if it is not valid.

        Raises :class:`Unavailable` if Keystone does not answer, or rejects the service user.
        """
        if len(token) > HEADER_LENGTH_MAX or not token.isprintable() or not token.isascii():
            return None
        try:
            answer = self._session.get(
                f"{self.url}/auth/tokens?nocatalog",
                headers={"X-Subject-Token": token, "Accept": "application/json"},
                authenticated=True,
                log=False,
            )
            return _validated(_DECODER.decode(answer.content).token)
        except exceptions.NotFound:
            return None
        except exceptions.Unauthorized as error:
            LOG.error("keystone_refuses_us", url=self.url, reason=error.message)
            raise Unavailable(SILENT) from error
        except (exceptions.ClientException, msgspec.DecodeError) as error:
            LOG.error("keystone_silent", url=self.url, reason=type(error).__name__)
            raise Unavailable(SILENT) from error


def _validated(token: _Token) -> Validated:
    project = token.project
    return Validated(
        user_id=token.user.id,
        user_name=token.user.name,
        project_id=None if project is None else project.id,
        project_name=None if project is None else project.name,
        roles=frozenset(role.name for role in token.roles),
        is_system=token.system is not None and token.system.all,
        expires_at=token.expires_at.astimezone(UTC).replace(tzinfo=None),
    )
