"""A cache of validated tokens, so that most requests need no lookup.

Always true: an entry expires with its token, after the configured time, or when the clock is set
back, whichever comes first. The result of a lookup is not cached if :meth:`TokenCache.forget` is
called during the lookup. Concurrent requests with the same uncached token share one lookup. If
other processes can change users and roles, every request first checks for such changes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from innkeeper.domain.errors import Unauthenticated
from innkeeper.domain.identity import RequestContext
from innkeeper.domain.ids import Clock
from innkeeper.entrypoints.api.auth import NO_TOKEN

TOKENS_MAX = 10_000
"""Maximum number of cached tokens, which take at most a few kilobytes each."""


@dataclass(frozen=True, slots=True)
class CachedToken:
    """The request context of a token, and the time when the token or its entry expires."""

    context: RequestContext
    until: datetime


LookUp = Callable[[str, datetime], Awaitable[CachedToken]]
"""A function that validates a token at a given time. It raises :class:`Unauthenticated` for an
invalid token."""

Epoch = Callable[[], Awaitable[int]]
"""Returns a number that changes with every change of users, roles and credentials."""


class TokenCache:
    """An authenticator that caches the results of ``look_up``.

    Pass ``epoch`` if other processes can change users and roles.
    """

    def __init__(
        self, look_up: LookUp, clock: Clock, remember_s: float, epoch: Epoch | None = None
    ) -> None:
        self._epoch = epoch
        self._seen_epoch: int | None = None
        self._look_up = look_up
        self._clock = clock
        self._remember = timedelta(seconds=remember_s)
        self._cached: dict[str, tuple[CachedToken, datetime]] = {}
        self._lookups: dict[str, asyncio.Task[CachedToken]] = {}
        self._forget_count = 0

    async def authenticate(self, headers: Mapping[str, str], request_id: str) -> RequestContext:
        token = headers.get("x-auth-token")
        if not token:
            raise Unauthenticated(NO_TOKEN)
        if self._epoch is not None:
            epoch = await self._epoch()
            if epoch != self._seen_epoch:
                self.forget()
                self._seen_epoch = epoch
        now = self._clock()
        known, since = self._cached.get(token, (None, now))
        # If the clock was set back to before the lookup, the age of the entry is unknown.
        if known is None or not since <= now < known.until:
            known = await self._shared_look_up(token, now)
        caller = known.context
        return RequestContext(
            request_id,
            caller.user_id,
            caller.project_id,
            caller.roles,
            caller.user_name,
            caller.project_name,
            caller.is_system,
            caller.agent_identity,
        )

    def forget(self) -> None:
        self._forget_count += 1
        self._cached.clear()
        self._lookups.clear()

    async def _shared_look_up(self, token: str, now: datetime) -> CachedToken:
        task = self._lookups.get(token)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._look_up_and_cache(token, now))
            self._lookups[token] = task
        # A caller that is cancelled must not cancel the lookup for the others.
        return await asyncio.shield(task)

    async def _look_up_and_cache(self, token: str, now: datetime) -> CachedToken:
        forget_count = self._forget_count
        try:
            found = await self._look_up(token, now)
        finally:
            if forget_count == self._forget_count:
                self._lookups.pop(token, None)
        known = CachedToken(found.context, min(found.until, now + self._remember))
        if forget_count == self._forget_count:
            self._cached.pop(token, None)
            if len(self._cached) >= TOKENS_MAX:
                # Evict the oldest entry. A dict keeps the order of insertion.
                del self._cached[next(iter(self._cached))]
            self._cached[token] = (known, now)
        return known
