"""Waiting, while a service starts, for a database that is not there yet.

Always true: the waiting ends, and each attempt that failed is told in the log. Pauses grow, and
processes that began to wait at the same moment do not come back at the same moment.

May be false: that it was the database's absence. Whoever cannot be told apart from one that is
away, such as a name that nobody knows, is waited for too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from threading import Event
from typing import Protocol, TypeVar

import structlog

from innkeeper.domain.errors import Busy, Doubtful, Unavailable, Unreachable

LOG = structlog.get_logger("innkeeper.service")
T = TypeVar("T")

FIRST_PAUSE_S = 0.25
LONGEST_PAUSE_S = 5.0
GROWTH = 2.0
TOLD_MAX = 300
"""Characters of what a driver says that are passed on."""
OF_SERVERS = (Unreachable, Busy, Doubtful)
"""What passes: a server that starts or fails over, one that others keep busy, and a commit that
nobody has answered. Each step of a start looks first whether it is done."""
OF_FILES = (Busy,)
"""A file that cannot be opened does not come by itself, nor does room on its disk."""


class Patiently(Protocol):
    """Does something that needs the database."""

    def __call__(self, make: Callable[[], T]) -> T:
        """Give what ``make`` gives; it may be called again after it has failed."""


def at_once(make: Callable[[], T]) -> T:
    """Wait for nothing."""
    return make()


class NotThere(Exception):
    """What was needed did not come in time; starting again later may help."""


class Patience:
    """Repeats what fails because the database is away, for so long."""

    def __init__(
        self,
        within_s: float,
        draw: Callable[[], float],
        awaited: tuple[type[Unavailable], ...] = OF_SERVERS,
    ) -> None:
        """``draw`` gives numbers from 0 to 1 that other processes do not have."""
        self._within_s = within_s
        self._draw = draw
        self._awaited = awaited

    def __call__(self, make: Callable[[], T]) -> T:
        """See :class:`Patiently`. Raises :class:`NotThere` once the time is over."""
        begun_s = time.perf_counter()
        for pause_s in _pauses():
            try:
                return make()
            except self._awaited as error:
                self._wait(pause_s, self._within_s - (time.perf_counter() - begun_s), error)
        raise AssertionError("the pauses do not end")

    def _wait(self, pause_s: float, left_s: float, error: Unavailable) -> None:
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


def reason(error: Unavailable) -> str:
    """Why, in one line, as the driver says it; drivers quote no passwords."""
    said = str(getattr(error.__cause__, "orig", None) or error.message)
    return " ".join(said.split())[:TOLD_MAX]


def _pauses() -> Iterator[float]:
    pause_s = FIRST_PAUSE_S
    while pause_s > 0:
        yield pause_s
        pause_s = min(pause_s * GROWTH, LONGEST_PAUSE_S)
