"""What is remembered of tokens, so that most requests cost no look at anything.

Always true: nothing is remembered past a token's end or longer than the setting says, nor by a
clock that was set back since; what was being looked up while :meth:`TokenCache.forget` was
called is not remembered at all; however many requests bring an unknown token at once, it is
looked up once. Where other processes write
what tokens stand for, it is asked for each request whether any of them did since it came.
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
"""Tokens remembered at once, some kilobytes each at the very most."""


@dataclass(frozen=True, slots=True)
class Known:
    """Whom a token stands for, and until when that may be believed."""

    context: RequestContext
    until: datetime


Look = Callable[[str, datetime], Awaitable[Known]]
"""Finds out about a token at a moment; raises :class:`Unauthenticated` if it is void."""

Heard = Callable[[], Awaitable[int]]
"""Gives a number that is another one than before if what tokens stand for was written."""


class TokenCache:
    """An authenticator that asks ``look`` about tokens it does not remember.

    Without ``heard``, nobody but this process writes what tokens stand for.
    """

    def __init__(
        self, look: Look, clock: Clock, remember_s: float, heard: Heard | None = None
    ) -> None:
        self._heard = heard
        self._number: int | None = None
        self._look = look
        self._clock = clock
        self._remember = timedelta(seconds=remember_s)
        self._known: dict[str, tuple[Known, datetime]] = {}
        self._asked: dict[str, asyncio.Task[Known]] = {}
        self._times_forgotten = 0

    async def authenticate(self, headers: Mapping[str, str], request_id: str) -> RequestContext:
        """See :class:`innkeeper.entrypoints.api.site.Authenticator`."""
        token = headers.get("x-auth-token")
        if not token:
            raise Unauthenticated(NO_TOKEN)
        if self._heard is not None:
            number = await self._heard()
            if number != self._number:
                self.forget()
                self._number = number
        now = self._clock()
        known, since = self._known.get(token, (None, now))
        # Before it was learned: the clock was set back, and nobody knows how long ago that was.
        if known is None or not since <= now < known.until:
            known = await self._ask(token, now)
        caller = known.context
        return RequestContext(
            request_id,
            caller.user_id,
            caller.project_id,
            caller.roles,
            caller.user_name,
            caller.project_name,
            caller.is_system,
            caller.speaker,
        )

    def forget(self) -> None:
        """See :class:`innkeeper.entrypoints.api.site.Authenticator`."""
        self._times_forgotten += 1
        self._known.clear()
        self._asked.clear()

    async def _ask(self, token: str, now: datetime) -> Known:
        task = self._asked.get(token)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._find_out(token, now))
            self._asked[token] = task
        # One caller who goes away must not take the answer from the others.
        return await asyncio.shield(task)

    async def _find_out(self, token: str, now: datetime) -> Known:
        times_forgotten = self._times_forgotten
        try:
            found = await self._look(token, now)
        finally:
            if times_forgotten == self._times_forgotten:
                self._asked.pop(token, None)
        known = Known(found.context, min(found.until, now + self._remember))
        if times_forgotten == self._times_forgotten:
            self._known.pop(token, None)
            if len(self._known) >= TOKENS_MAX:
                # The oldest: dictionaries keep the order of insertion.
                del self._known[next(iter(self._known))]
            self._known[token] = (known, now)
        return known
