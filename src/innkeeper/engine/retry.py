"""How often, and when, work is tried again that the database could not take.

Always true: the pauses grow, there are few of them, and none begins late.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from threading import Event
from typing import TypeVar

import structlog

from innkeeper.domain.errors import Collided, ConcurrentUpdate, Overtaken, Unreachable

LOG = structlog.get_logger("innkeeper.placement")
T = TypeVar("T")

PASSING = (Collided, Unreachable)
"""Nothing has happened, and the same work may be taken in a moment."""
PAUSES_S = (0.05, 0.2, 0.6)
"""Before each repeat, give or take half. A collision is over by then, a dead connection is
replaced; a fail-over takes longer, which the client is told and waits for."""
REPEAT_WITHIN_S = 3.0
"""No repeat is begun later: others wait for the thread meanwhile, and are better refused."""
JITTER_OF = 1_000


class Repeats:
    """The attempts at one piece of work."""

    def __init__(self) -> None:
        self._begun_s = time.perf_counter()
        self._pauses = iter(PAUSES_S)

    def wait(self) -> bool:
        """Wait until it is time for the next attempt; at once False if there is to be none."""
        pause_s = next(self._pauses, None)
        if pause_s is None or time.perf_counter() - self._begun_s > REPEAT_WITHIN_S:
            return False
        Event().wait(pause_s * (0.5 + _jitter()))
        return True


def _jitter() -> float:
    """Some number from 0 to 1 that processes do not share: the last digits of a fine clock.

    What failed at the same moment must not come back at the same moment.
    """
    return time.perf_counter_ns() // 100 % JITTER_OF / JITTER_OF


LOST = "Inventory and/or allocations changed while attempting to allocate: "
"""Clients know a conflict that they should repeat by these words, and the next ones."""
CAUSE = (
    "Another thread concurrently updated the resource provider data. Please retry your update"
)


async def again(
    attempt: Callable[[], Awaitable[T]], attempts_max: int, *, lost: str = LOST
) -> T:
    """Wait for ``attempt``, as often as it is overtaken, but ``attempts_max`` times at most.

    Raises :class:`ConcurrentUpdate`, which begins with ``lost``, if that was not enough.
    """
    for _ in range(attempts_max):
        try:
            return await attempt()
        except Overtaken as error:
            LOG.info("write_overtaken", cause=error.message)
    LOG.warning("write_given_up", attempts=attempts_max)
    raise ConcurrentUpdate(lost + CAUSE)
