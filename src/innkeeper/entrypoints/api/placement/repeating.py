"""Writes that repeat themselves when another writer comes between.

Always true: every attempt is a step of its own, which looks at the store anew, and what a lost
one wrote is undone. What the client has said of generations is compared in each of them, so
nothing is repeated that the client must decide on.

While writers take turns nobody comes between a look and a write of the same transaction.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from innkeeper.domain.errors import ConcurrentUpdate, Overtaken
from innkeeper.entrypoints.api.routing import Call
from innkeeper.entrypoints.api.site import Together
from innkeeper.store.transactions import Tx

LOG = structlog.get_logger("innkeeper.placement")
T = TypeVar("T")

LOST = "Inventory and/or allocations changed while attempting to allocate: "
"""Clients know a conflict that they should repeat by these words, and the next ones."""
CAUSE = (
    "Another thread concurrently updated the resource provider data. Please retry your update"
)


async def write(call: Call, work: Callable[[Tx], T], *, lines: int = 1, lost: str = LOST) -> T:
    """As ``call.write``, and again while other writers come between."""
    attempts_max = call.site.settings.placing.allocation_conflict_retry_count
    return await again(lambda: call.write(work, lines), attempts_max, lost=lost)


async def write_together(call: Call, work: Together[T], item: T, *, lines: int = 1) -> None:
    """As ``call.write_together``, and again while other writers come between."""
    attempts_max = call.site.settings.placing.allocation_conflict_retry_count
    await again(lambda: call.write_together(work, item, lines), attempts_max)


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
