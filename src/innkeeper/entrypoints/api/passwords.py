"""Password hashing, off the event loop and off the writer thread.

Always true: at most ``THREADS`` hashes are computed concurrently. A hash takes memory and tens of
milliseconds, and even clients without a token can cause one. Attempts to log in as one user from
one source run one at a time, and each is counted before the next begins.
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
"""The maximum number of waiting logins. A login takes about 25 ms, so with more waiting logins,
clients would time out."""
WAITING_FROM_ONE_MAX = WAITING_MAX // 2
"""Maximum number of waiting logins per source, so that one client cannot block all others."""
FULL = "Too many logins are waiting. Please try again later."


@dataclass(slots=True)
class _Turn:
    """A lock for login attempts as one user from one source.

    ``users`` counts the tasks that use it.
    """

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


class PasswordThreads:
    """Computes and verifies hashes in dedicated threads."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="passwords")
        self._waiting = 0
        self._turns: dict[Hashable, _Turn] = {}
        self._in_line = 0
        self._in_line_from: Counter[str] = Counter()

    @asynccontextmanager
    async def turn(self, attempt: Hashable, source: str) -> AsyncIterator[None]:
        """A context manager that lets only one task at a time make the given attempt.

        Raises :class:`Unavailable` if too many attempts wait in total, or from ``source``.
        """
        from_one = self._in_line_from
        if self._in_line >= WAITING_MAX or from_one[source] >= WAITING_FROM_ONE_MAX:
            raise Unavailable(FULL)
        self._in_line += 1
        from_one[source] += 1
        turn = self._turns.setdefault(attempt, _Turn())
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
                del self._turns[attempt]

    async def hash_of(self, password: str) -> str:
        """Return the hash of a password; see :mod:`innkeeper.systems.identity.passwords`."""
        return await self._run(lambda: passwords.hash_of(password))

    async def verify(self, password_hash: str | None, password: str) -> bool:
        """Check a password; see :func:`innkeeper.systems.identity.passwords.verify`."""
        return await self._run(lambda: passwords.verify(password_hash, password))

    def stop(self) -> None:
        """Stop the threads."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    async def _run(self, work: Callable[[], T]) -> T:
        if self._waiting >= WAITING_MAX:
            raise Unavailable(FULL)
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work)
        finally:
            self._waiting -= 1
