"""One query on behalf of many concurrent callers.

Always true: a result is from after the call that gets it. A caller that comes during a query waits
for the next one, with all others that come meanwhile, so there is one query at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class SingleFlight(Generic[T]):
    """Runs ``query``, on one event loop."""

    def __init__(self, query: Callable[[], Awaitable[T]]) -> None:
        self._query = query
        self._running: asyncio.Task[T] | None = None
        self._next: asyncio.Task[T] | None = None

    async def __call__(self) -> T:
        """The result of a query that starts after this call."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_task(self._run_next())
        # A caller that is cancelled must not cancel the query for the others.
        return await asyncio.shield(self._next)

    async def _run_next(self) -> T:
        if self._running is not None:
            # Its result or error is for its own callers.
            await asyncio.wait([self._running])
        self._running, self._next = self._next, None
        return await self._query()
