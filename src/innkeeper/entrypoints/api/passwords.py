"""Hashing passwords off the event loop and off the decision thread.

Always true: at most so many hashes are computed at once as there are threads, whoever asks;
each takes memory and tens of milliseconds, and strangers can ask for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from innkeeper.domain.errors import Unavailable
from innkeeper.systems.identity import passwords

T = TypeVar("T")

THREADS = 2
WAITING_MAX = 100
"""Logins that may wait; at some 25 ms each, more would wait longer than a client does."""


class PasswordThreads:
    """Makes and checks hashes in threads of its own."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="passwords")
        self._waiting = 0

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
            raise Unavailable("Too many logins wait already.")
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work)
        finally:
            self._waiting -= 1
