"""A question that many requests ask at the same moment, asked once for all of them.

Always true: an answer is as of a moment after the call that it is given to. Who comes while a
question is on its way waits for the next one, together with all the others who come meanwhile;
so there is one question at a time, however many requests there are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class SingleFlight(Generic[T]):
    """Asks ``ask``; used on one event loop."""

    def __init__(self, ask: Callable[[], Awaitable[T]]) -> None:
        self._ask = ask
        self._under_way: asyncio.Task[T] | None = None
        self._next: asyncio.Task[T] | None = None

    async def __call__(self) -> T:
        """The answer to a question that is asked from now on."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_task(self._ask_next())
        # One caller who goes away must not take the answer from the others.
        return await asyncio.shield(self._next)

    async def _ask_next(self) -> T:
        if self._under_way is not None:
            # Its outcome, whatever it is, is for those who asked it.
            await asyncio.wait([self._under_way])
        self._under_way, self._next = self._next, None
        return await self._ask()
