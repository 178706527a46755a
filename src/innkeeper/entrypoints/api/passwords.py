"""Hashing passwords off the event loop and off the writer thread.

Always true: at most so many hashes are computed at once as there are threads, whoever asks;
each takes memory and tens of milliseconds, and strangers can ask for them. Of those who try
the same thing at the same time, one is at it and the others wait: so an attempt is counted
before the next is let in.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from innkeeper.domain.errors import Unavailable
from innkeeper.systems.identity import passwords

T = TypeVar("T")

THREADS = 2
WAITING_MAX = 100
"""Logins that may wait; at some 25 ms each, more would wait longer than a client does."""
WAITING_FROM_ONE_MAX = WAITING_MAX // 2
"""Those from one address: who tries one name after the other does not keep out everybody."""
FULL = "Too many logins wait already."


@dataclass(slots=True)
class _Turn:
    """Who waits for the same thing."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


class PasswordThreads:
    """Makes and checks hashes in threads of its own."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="passwords")
        self._waiting = 0
        self._turns: dict[Hashable, _Turn] = {}
        self._in_line = 0
        self._in_line_from: Counter[str] = Counter()

    @asynccontextmanager
    async def turn(self, tried: Hashable, source: str) -> AsyncIterator[None]:
        """Wait until nobody else in this process tries the same thing.

        Raises :class:`Unavailable` where too many wait, or too many from ``source``.
        """
        from_one = self._in_line_from
        if self._in_line >= WAITING_MAX or from_one[source] >= WAITING_FROM_ONE_MAX:
            raise Unavailable(FULL)
        self._in_line += 1
        from_one[source] += 1
        turn = self._turns.setdefault(tried, _Turn())
        turn.users += 1
        try:
            async with turn.lock:
                yield
        finally:
            self._in_line -= 1
            from_one[source] -= 1
            if not from_one[source]:
                del from_one[source]
            turn.users -= 1
            if not turn.users:
                del self._turns[tried]

    async def hash_of(self, password: str) -> str:
        """See :func:`innkeeper.systems.identity.passwords.hash_of`."""
        return await self._run(lambda: passwords.hash_of(password))

    async def verify(self, password_hash: str | None, password: str) -> bool:
        """See :func:`innkeeper.systems.identity.passwords.verify`."""
        return await self._run(lambda: passwords.verify(password_hash, password))

    def stop(self) -> None:
        """Let go of the threads."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    async def _run(self, work: Callable[[], T]) -> T:
        if self._waiting >= WAITING_MAX:
            raise Unavailable(FULL)
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work)
        finally:
            self._waiting -= 1
