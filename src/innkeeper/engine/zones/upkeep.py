"""The periodic work of a zone for the zones below it, as its worker threads call it.

Always true: each call has an event loop and connections of its own, and ends them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from innkeeper.engine import metrics
from innkeeper.engine.zones import polling
from innkeeper.engine.zones.neighbours import Neighbours
from innkeeper.engine.zones.repairing import Repairer
from innkeeper.store.transactions import Tx
from innkeeper.systems.zones import children

Work = Callable[[Neighbours], Awaitable[int]]


class ZoneUpkeep:
    """Polls child zones, and repairs, in one process."""

    def __init__(self, neighbours: Neighbours) -> None:
        self._neighbours = neighbours
        self._repairer = Repairer()
        self.period_s = neighbours.tree.parts.zoning.zone_poll_interval_s

    def poll(self) -> int:
        """Poll the children, if it is this process's turn. Return how many changed."""
        return asyncio.run(self._run(self._poll))

    def repair(self) -> int:
        """Repair, if it is this process's turn. Return the number of repaired servers."""
        return asyncio.run(self._run(lambda all_: self._repairer.work(all_.tree, all_.booter)))

    async def _run(self, work: Work) -> int:
        here = self._neighbours.beside()
        try:
            return await work(here)
        finally:
            await here.tree.parts.client.close()

    async def _poll(self, neighbours: Neighbours) -> int:
        count = await polling.poll(neighbours.tree)
        await neighbours.tree.parts.engine.read(_measure)
        return count


def _measure(tx: Tx) -> None:
    counts = children.server_counts(tx)
    metrics.zones(
        {
            each.name: (each.state.is_active, counts.get(each.id, 0), each.state.failures)
            for each in children.every(tx)
        }
    )
