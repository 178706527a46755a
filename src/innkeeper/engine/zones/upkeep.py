"""The periodic work for the zones below this zone, in functions for worker threads.

Always true: each call opens its own event loop and connections, and closes them at its end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping

from innkeeper.domain.zone_tree import ChildZone
from innkeeper.engine import metrics
from innkeeper.engine.zones import polling
from innkeeper.engine.zones.neighbours import Neighbours
from innkeeper.engine.zones.repairing import Repairer
from innkeeper.store.transactions import Tx
from innkeeper.systems.zones import children

Work = Callable[[Neighbours], Awaitable[int]]
ChildMeasures = tuple[bool, int, int]
"""Whether a child is active, its number of servers, and its number of failed polls."""


class ZoneUpkeep:
    """Polls child zones and repairs servers' records, in one process."""

    def __init__(self, neighbours: Neighbours) -> None:
        self._neighbours = neighbours
        self._repairer = Repairer()
        self.period_s = neighbours.tree.parts.zoning.zone_poll_interval_s

    def poll(self) -> int:
        """Poll the children, if it is this process's turn. Return how many changed."""
        return asyncio.run(self._run(self._poll))

    def repair(self) -> int:
        """Repair records, if it is this process's turn. Return the number of repaired servers."""
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
    metrics.zones(measured(children.every(tx), children.server_counts(tx)))


def measured(known: Iterable[ChildZone], counts: Mapping[int, int]) -> dict[str, ChildMeasures]:
    """Return the values of the child zones' gauges, by the zone's name.

    ``counts`` has the number of servers, by the row id of the child.

    A disabled child has no failures, because it is not polled and should raise no alert. If several
    children have the same name, their worst state is shown, with the sum of their servers.
    """
    found: dict[str, ChildMeasures] = {}
    for each in known:
        failures = each.state.failures if each.is_enabled else 0
        is_active, servers, most = found.get(each.name, (True, 0, 0))
        servers += counts.get(each.id, 0)
        found[each.name] = (is_active and each.is_reachable, servers, max(most, failures))
    return found
