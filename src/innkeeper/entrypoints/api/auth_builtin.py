"""Authentication with tokens of this service's own Identity API."""

from __future__ import annotations

from datetime import datetime

from innkeeper.domain.identity import RequestContext, TokenOwner
from innkeeper.domain.ids import Clock
from innkeeper.engine.engine import Engine
from innkeeper.entrypoints.api.token_cache import CachedToken, Epoch, TokenCache
from innkeeper.systems.identity import roles, tokens
from innkeeper.systems.identity.tokens import Signer


def authenticator(
    signer: Signer, engine: Engine, clock: Clock, remember_s: float, epoch: Epoch | None = None
) -> TokenCache:
    """Return an authenticator for tokens that ``signer`` signed.

    The authenticator rejects all other tokens without a database query.
    """

    async def look_up(token: str, now: datetime) -> CachedToken:
        claims = signer.open(token, now)
        holder = await engine.read(lambda tx: tokens.holder(tx, claims))
        return CachedToken(context_of(holder), claims.expires_at)

    return TokenCache(look_up, clock, remember_s, epoch)


def context_of(holder: TokenOwner, request_id: str = "") -> RequestContext:
    """Return the request context of a token's owner."""
    project = holder.project
    return RequestContext(
        request_id=request_id,
        user_id=holder.user.id,
        project_id=None if project is None else project.id,
        roles=roles.names_with_implied(role.name for role in holder.roles),
        user_name=holder.user.name,
        project_name=None if project is None else project.name,
    )
