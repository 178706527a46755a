"""Authentication of agents by their own credentials, in every mode of identity."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from innkeeper.domain.identity import AgentCredential, AgentIdentity, RequestContext
from innkeeper.domain.ids import Clock
from innkeeper.engine.engine import Engine
from innkeeper.entrypoints.api.site import Authenticator
from innkeeper.entrypoints.api.token_cache import CachedToken, Epoch, TokenCache
from innkeeper.systems.identity import agent_credentials

NEVER = timedelta(days=365)
"""The assumed lifetime of a credential without an expiry."""


class AgentsAuthenticator:
    """Authenticates agents by their credentials. ``users`` authenticates all other callers."""

    def __init__(
        self,
        users: Authenticator,
        engine: Engine,
        clock: Clock,
        remember_s: float,
        epoch: Epoch | None = None,
    ) -> None:
        async def look_up(text: str, now: datetime) -> CachedToken:
            found = await engine.read(lambda tx: agent_credentials.holder(tx, text, now))
            return CachedToken(_context_of(found), found.expires_at or now + NEVER)

        self._users = users
        self._agents = TokenCache(look_up, clock, remember_s, epoch)

    async def authenticate(self, headers: Mapping[str, str], request_id: str) -> RequestContext:
        is_agent = agent_credentials.is_one(headers.get("x-auth-token", ""))
        authenticator = self._agents if is_agent else self._users
        return await authenticator.authenticate(headers, request_id)

    def forget(self) -> None:
        self._agents.forget()
        self._users.forget()


def _context_of(credential: AgentCredential) -> RequestContext:
    # User ids contain no colon in any mode of identity.
    name = f"agent:{credential.agent_name}"
    return RequestContext(
        request_id="",
        user_id=name,
        user_name=name,
        agent_identity=AgentIdentity(credential.agent_name, credential.hosts),
    )
