"""Waits for the database at the start of a service.

Always true: the wait ends, and each failed attempt is logged. Pauses grow, and are random, so that
processes that start together do not retry together.

Waiting may be useless. Some permanent errors, such as an unknown host name, look like an
unavailable database, and are also retried.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import chain, repeat
from threading import Event
from typing import Protocol, TypeVar

import structlog

from innkeeper.engine.retry import START
from innkeeper.engine.retry_rows import Retry

LOG = structlog.get_logger("innkeeper.service")
T = TypeVar("T")

TOLD_MAX = 300
"""The maximum length of a driver's message in logs and errors."""


class Patiently(Protocol):
    """Executes an action that needs the database, possibly with retries."""

    def __call__(self, make: Callable[[], T]) -> T:
        """Return the result of ``make``, which may be called several times."""


def at_once(make: Callable[[], T]) -> T:
    """Call ``make`` once, without a retry."""
    return make()


class NotThere(Exception):
    """Raised if the database does not become available in time. A later start may succeed."""


class DatabaseWait:
    """Repeats an action that fails because the database is unavailable, up to a time limit."""

    def __init__(self, within_s: float, draw: Callable[[], float], retry: Retry = START) -> None:
        """``draw`` returns random numbers from 0 to 1 that differ between processes."""
        self._within_s = within_s
        self._draw = draw
        self._retry = retry

    def __call__(self, make: Callable[[], T]) -> T:
        """Return the result of ``make``. Raises :class:`NotThere` after the time limit."""
        begun_s = time.perf_counter()
        for pause_s in chain(self._retry.pauses_s, repeat(self._retry.pauses_s[-1])):
            try:
                return make()
            except self._retry.errors as error:
                self._wait(pause_s, self._within_s - (time.perf_counter() - begun_s), error)
        raise AssertionError("the pauses do not end")

    def _wait(self, pause_s: float, remaining_s: float, error: Exception) -> None:
        why = reason(error)
        if remaining_s <= 0:
            raise NotThere(
                f"Cannot use the database: {why.removesuffix('.')}. Gave up after "
                f"{self._within_s:g} s."
            ) from error
        # Limit the pause, so that the last attempt is made at the time limit.
        wait_s = min(pause_s * (0.5 + self._draw()), remaining_s)
        LOG.warning(
            "database_awaited", why=why, again_in_s=round(wait_s, 2), left_s=round(remaining_s, 1)
        )
        # In the main thread, signal handlers still run during the wait.
        Event().wait(wait_s)


def reason(error: Exception) -> str:
    """Return the database driver's message in one line. Drivers do not quote passwords."""
    message = str(getattr(error.__cause__, "orig", None) or error)
    return " ".join(message.split())[:TOLD_MAX]
