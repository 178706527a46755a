"""Waiting, while a service starts, for a database that is not there yet.

Always true: the waiting ends, and each attempt that failed is told in the log. Pauses grow, and
processes that began to wait at the same moment do not come back at the same moment.

May be false: that it was the database's absence. Whoever cannot be told apart from one that is
away, such as a name that nobody knows, is waited for too.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import chain, repeat
from threading import Event
from typing import Protocol, TypeVar

import structlog

from innkeeper.engine.retry import START, Retry

LOG = structlog.get_logger("innkeeper.service")
T = TypeVar("T")

TOLD_MAX = 300
"""Characters of what a driver says that are passed on."""


class Patiently(Protocol):
    """Does something that needs the database."""

    def __call__(self, make: Callable[[], T]) -> T:
        """Give what ``make`` gives; it may be called again after it has failed."""


def at_once(make: Callable[[], T]) -> T:
    """Wait for nothing."""
    return make()


class NotThere(Exception):
    """What was needed did not come in time; starting again later may help."""


class DatabaseWait:
    """Repeats what fails because the database is away, for so long."""

    def __init__(self, within_s: float, draw: Callable[[], float], retry: Retry = START) -> None:
        """``draw`` gives numbers from 0 to 1 that other processes do not have."""
        self._within_s = within_s
        self._draw = draw
        self._retry = retry

    def __call__(self, make: Callable[[], T]) -> T:
        """See :class:`Patiently`. Raises :class:`NotThere` once the time is over."""
        begun_s = time.perf_counter()
        for pause_s in chain(self._retry.pauses_s, repeat(self._retry.pauses_s[-1])):
            try:
                return make()
            except self._retry.errors as error:
                self._wait(pause_s, self._within_s - (time.perf_counter() - begun_s), error)
        raise AssertionError("the pauses do not end")

    def _wait(self, pause_s: float, left_s: float, error: Exception) -> None:
        why = reason(error)
        if left_s <= 0:
            raise NotThere(
                f"Cannot use the database: {why.removesuffix('.')}. It was waited for, "
                f"{self._within_s:g} s."
            ) from error
        # The last attempt is made when the time is over, not before.
        wait_s = min(pause_s * (0.5 + self._draw()), left_s)
        LOG.warning(
            "database_awaited", why=why, again_in_s=round(wait_s, 2), left_s=round(left_s, 1)
        )
        # Woken up by signals, as the main thread has to be.
        Event().wait(wait_s)


def reason(error: Exception) -> str:
    """Why, in one line, as the driver says it; drivers quote no passwords."""
    said = str(getattr(error.__cause__, "orig", None) or error)
    return " ".join(said.split())[:TOLD_MAX]
