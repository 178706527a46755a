"""Authentication with tokens of an external Keystone.

A cached token may have been revoked. If Keystone revokes a token, this service accepts the token
until the token's cache entry expires.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

from innkeeper.clients.keystone import Keystone, Validated
from innkeeper.domain.errors import Unauthenticated, Unavailable
from innkeeper.domain.identity import RequestContext
from innkeeper.domain.ids import Clock
from innkeeper.entrypoints.api.token_cache import CachedToken, TokenCache

THREADS = 4
WRONG_TOKEN = "The request you have made requires authentication."  # noqa: S105 - a message


def authenticator(
    keystone: Keystone, clock: Clock, remember_s: float, deadline_s: float
) -> TokenCache:
    """Return an authenticator that validates tokens with Keystone.

    The authenticator raises :class:`Unavailable` if Keystone does not answer within ``deadline_s``.
    """
    pool = ThreadPoolExecutor(THREADS, thread_name_prefix="keystone")

    async def look_up(token: str, _now: datetime) -> CachedToken:
        loop = asyncio.get_running_loop()
        try:
            validated = await asyncio.wait_for(
                loop.run_in_executor(pool, keystone.validate, token), deadline_s
            )
        except TimeoutError as error:
            raise Unavailable("The identity service does not answer.") from error
        if validated is None:
            raise Unauthenticated(WRONG_TOKEN)
        return CachedToken(_context_of(validated), validated.expires_at)

    return TokenCache(look_up, clock, remember_s)


def _context_of(validated: Validated) -> RequestContext:
    return RequestContext(
        request_id="",
        user_id=validated.user_id,
        project_id=validated.project_id,
        roles=validated.roles,
        user_name=validated.user_name,
        project_name=validated.project_name,
        is_system=validated.is_system,
    )
