"""Writes that repeat themselves when another writer comes between.

Always true: every attempt is a step of its own, which looks at the store anew, and what a lost
one wrote is undone. What the client has said of generations is compared in each of them, so
nothing is repeated that the client must decide on.

While writers take turns nobody comes between a look and a write of the same transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from innkeeper.engine import retry
from innkeeper.engine.commands import Together
from innkeeper.engine.transactions import Tx
from innkeeper.entrypoints.api.routing import Call

T = TypeVar("T")


async def write(
    call: Call, work: Callable[[Tx], T], *, lines: int = 1, lost: str = retry.LOST
) -> T:
    """As ``call.write``, and again while other writers come between."""
    attempts_max = call.site.settings.placing.allocation_conflict_retry_count
    return await retry.again(lambda: call.write(work, lines), attempts_max, lost=lost)


async def write_together(call: Call, work: Together[T], item: T, *, lines: int = 1) -> None:
    """As ``call.write_together``, and again while other writers come between."""
    attempts_max = call.site.settings.placing.allocation_conflict_retry_count
    await retry.again(lambda: call.write_together(work, item, lines), attempts_max)
