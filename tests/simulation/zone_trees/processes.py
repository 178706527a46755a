"""Simulated zones: the tasks of a zone's process, and its wire to child zones."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass
from functools import partial
from typing import Any

from innkeeper.domain.errors import Refusal
from innkeeper.engine.zones import polling
from innkeeper.engine.zones.neighbours import Neighbours, ZoneSources
from innkeeper.engine.zones.repairing import Repairer
from innkeeper.store.transactions import Tx
from innkeeper.systems.zones import parents, used_entries
from innkeeper.wiring import Seams
from tests.simulation.stepping.services import COMPUTE, Dice, ServiceProcess, SimulatedService
from tests.simulation.zone_trees.network import Network, SimulatedWire

POLL_S = 10.0
SETTINGS = {
    "apis": "compute",
    "allow_admin_api": "true",
    "enable_zone_routing": "true",
    "explain_decisions": "off",
    "service_down_time_s": "86400",
    "order_timeout_s": "86400",
    "quota_cores": "-1",
    "quota_ram": "-1",
    "zone_poll_interval_s": str(POLL_S),
    "zone_failures_to_offline": "2",
    "zone_select_timeout_s": "1",
    "zone_request_timeout_s": "4",
}


class ZoneProcess(ServiceProcess):
    """One process of a zone: the service, and its tasks."""

    def __init__(self, zone: SimulatedZone, dice: Dice) -> None:
        seams = Seams(
            zone_sources_of=lambda clock, ids: ZoneSources(
                clock, ids, zone.loop.time, lambda: SimulatedWire(zone.network, zone)
            )
        )
        super().__init__(zone, dice, seams)
        self._clock = zone.loop.now
        self._repairer = Repairer()
        self.spawn(self._upkeep())

    @property
    def neighbours(self) -> Neighbours:
        """The zones around this one."""
        found = self.service.site.neighbours
        assert found is not None, "it has keys"
        return found

    async def _upkeep(self) -> None:
        """Poll and repair, as the threads of the program do."""
        while True:
            await asyncio.sleep(POLL_S * (0.9 + 0.2 * self._dice.random()))
            here = self.neighbours.beside()
            for work in (
                partial(polling.poll, here.tree),
                partial(self._repairer.work, here.tree, here.booter),
                self._prune,
            ):
                try:
                    await work()
                except Refusal:
                    # The program's threads log the error, and try again the next time.
                    continue

    async def _prune(self) -> int:
        now = self._clock()

        def prune(tx: Tx) -> int:
            return parents.prune(tx, now) + used_entries.prune(tx, now)

        return await self.service.engine.write(prune)


@dataclass(slots=True, kw_only=True)
class SimulatedZone(SimulatedService):
    """A zone, over all its processes."""

    network: Network

    def __post_init__(self) -> None:
        own = {"zone_name": self.name, "build_plan_encryption_key": secrets.token_hex(32)}
        self.settings = {**SETTINGS, **own, **self.settings}
        SimulatedService.__post_init__(self)
        self.network.processes[self.name] = self

    def make(self, dice: Dice) -> ServiceProcess:
        return ZoneProcess(self, dice)

    async def compute(
        self, method: str, path: str, body: Any = None, token: str = "admin"
    ) -> tuple[int, Any]:
        """Send a request to the Compute API; see :meth:`ask`."""
        return await self.ask(method, COMPUTE + path, body, token)


def address_of(name: str) -> str:
    """Return the address of a zone's Compute API on the simulated wire."""
    return f"http://{name}{COMPUTE}"
