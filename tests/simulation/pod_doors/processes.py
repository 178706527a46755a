"""Simulated doors and pods, and what their processes do in addition to serving requests."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from innkeeper.domain.errors import Refusal
from innkeeper.engine.pods.doors import door_of
from innkeeper.wiring import Seams
from tests.simulation.pod_doors.network import Network, SimulatedPodWire
from tests.simulation.stepping.services import Dice, ServiceProcess, SimulatedService

UPKEEP_S = 5.0
SHARED = {
    "explain_decisions": "off",
    "service_down_time_s": "86400",
    "order_timeout_s": "86400",
    "quota_cores": "-1",
    "quota_ram": "-1",
}
OF_PODS = {
    "apis": '["identity", "compute", "image", "volume"]',
    "allow_resize_to_same_host": "true",
    **SHARED,
}
RECHECK_S = 30.0
OF_DOORS = {
    **SHARED,
    "role": "gateway",
    "apis": '["identity", "compute", "image", "volume", "pods"]',
    "region_name": "Top",
    "pod_request_timeout_s": "4",
    "pod_failures_to_offline": "2",
    "pod_poll_interval_s": str(UPKEEP_S),
    "pod_measure_interval_s": "20",
    "pod_recheck_interval_s": str(RECHECK_S),
}


@dataclass(slots=True)
class SimulatedPod(SimulatedService):
    """A pod, over all its processes."""

    def make(self, dice: Dice) -> ServiceProcess:
        return ServiceProcess(self, dice, Seams())


class DoorProcess(ServiceProcess):
    """One process of a door: the service, and its tasks."""

    def __init__(self, door: SimulatedDoor, dice: Dice) -> None:
        seams = Seams(pod_wire_of=lambda: SimulatedPodWire(door.network, door))
        super().__init__(door, dice, seams)
        self.spawn(self._upkeep())

    async def _upkeep(self) -> None:
        """Poll, measure, settle and compare, as the threads of the program do."""
        pods = self.service.site.pods
        assert pods is not None, "it is a door"
        while True:
            await asyncio.sleep(UPKEEP_S * (0.9 + 0.2 * self._dice.random()))
            clouds = pods.beside()
            door = door_of(self.service.settings, clouds)
            assert door is not None, "it is a door"
            for work in (clouds.poll, clouds.measure, door.recovery.settle, door.reconciling.check):
                try:
                    await work()
                except Refusal:
                    # The program's threads log the error, and try again the next time.
                    continue
            await clouds.client.close()


@dataclass(slots=True, kw_only=True)
class SimulatedDoor(SimulatedService):
    """A door, over all its processes."""

    network: Network

    def make(self, dice: Dice) -> ServiceProcess:
        return DoorProcess(self, dice)
