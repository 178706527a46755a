"""From a token of this service's own Identity API to a context."""

from __future__ import annotations

from datetime import datetime

from innkeeper.domain.identity import RequestContext, TokenOwner
from innkeeper.domain.ids import Clock
from innkeeper.engine.engine import Engine
from innkeeper.entrypoints.api.token_cache import Heard, Known, TokenCache
from innkeeper.systems.identity import roles, tokens
from innkeeper.systems.identity.tokens import Signer


def authenticator(
    signer: Signer, engine: Engine, clock: Clock, remember_s: float, heard: Heard | None = None
) -> TokenCache:
    """An authenticator for tokens that ``signer`` made.

    A text that was not signed here is refused without a look at the store.
    """

    async def look(token: str, now: datetime) -> Known:
        claims = signer.open(token, now)
        holder = await engine.read(lambda tx: tokens.holder(tx, claims))
        return Known(context_of(holder), claims.expires_at)

    return TokenCache(look, clock, remember_s, heard)


def context_of(holder: TokenOwner, request_id: str = "") -> RequestContext:
    """Whom a token stands for, as requests carry it."""
    project = holder.project
    return RequestContext(
        request_id=request_id,
        user_id=holder.user.id,
        project_id=None if project is None else project.id,
        roles=roles.names_with_implied(role.name for role in holder.roles),
        user_name=holder.user.name,
        project_name=None if project is None else project.name,
    )
