"""From an agent's own credential to a context, whatever the mode of identity is."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from innkeeper.domain.identity import AgentCredential, RequestContext, Speaker
from innkeeper.domain.ids import Clock
from innkeeper.engine.engine import Engine
from innkeeper.entrypoints.api.site import Authenticator
from innkeeper.entrypoints.api.token_cache import Heard, Known, TokenCache
from innkeeper.systems.identity import agent_credentials

NEVER = timedelta(days=365)
"""When a credential without an end is looked at again, if nothing else makes it happen."""


class AgentsAuthenticator:
    """Knows agents by their credentials, and leaves everybody else to ``others``."""

    def __init__(
        self,
        others: Authenticator,
        engine: Engine,
        clock: Clock,
        remember_s: float,
        heard: Heard | None = None,
    ) -> None:
        async def look(text: str, now: datetime) -> Known:
            found = await engine.read(lambda tx: agent_credentials.holder(tx, text, now))
            return Known(_context_of(found), found.expires_at or now + NEVER)

        self._others = others
        self._agents = TokenCache(look, clock, remember_s, heard)

    async def authenticate(self, headers: Mapping[str, str], request_id: str) -> RequestContext:
        """See :class:`innkeeper.entrypoints.api.site.Authenticator`."""
        is_agent = agent_credentials.is_one(headers.get("x-auth-token", ""))
        who = self._agents if is_agent else self._others
        return await who.authenticate(headers, request_id)

    def forget(self) -> None:
        """See :class:`innkeeper.entrypoints.api.site.Authenticator`."""
        self._agents.forget()
        self._others.forget()


def _context_of(credential: AgentCredential) -> RequestContext:
    # No user's id has a colon in it, in any mode of identity.
    name = f"agent:{credential.agent_name}"
    return RequestContext(
        request_id="",
        user_id=name,
        user_name=name,
        speaker=Speaker(credential.agent_name, credential.hosts),
    )
