"""Runs one query on behalf of many concurrent callers.

Always true: at most one query runs at a time. A caller gets the result of a query that started
after the call. All callers that arrive during a query share the next query.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class SingleFlight(Generic[T]):
    """Shares runs of ``query`` between the callers on one event loop."""

    def __init__(self, query: Callable[[], Awaitable[T]]) -> None:
        self._query = query
        self._running: asyncio.Task[T] | None = None
        self._next: asyncio.Task[T] | None = None

    async def __call__(self) -> T:
        """Return the result of a query that starts after this call."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_task(self._run_next())
        # A caller that is cancelled must not cancel the query for the others.
        return await asyncio.shield(self._next)

    async def _run_next(self) -> T:
        if self._running is not None:
            # Wait until the running query ends, but ignore its result or error, which belong to
            # other callers.
            await asyncio.wait([self._running])
        self._running, self._next = self._next, None
        return await self._query()
