"""Runs simulated doors over pods, with the real program and a virtual clock, in one process.

A seed decides everything: the pods, the requests of clients, the fates of requests to pods, and
when processes die. After the faults, the door gets time to settle, and is checked.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from innkeeper import wiring
from innkeeper.store.guards import Guards
from tests.simulation.pod_doors import checks
from tests.simulation.pod_doors.clients import (
    CAD,
    COMPUTE,
    FLAVORS,
    OK,
    PODS,
    PROJECTS,
    TYPES,
    VOLUME,
    Clients,
)
from tests.simulation.pod_doors.network import FATES, Network
from tests.simulation.pod_doors.processes import (
    OF_DOORS,
    OF_PODS,
    RECHECK_S,
    UPKEEP_S,
    SimulatedDoor,
    SimulatedPod,
)
from tests.simulation.stepping.outcomes import Outcome, end
from tests.simulation.stepping.services import SimulatedService, dice_of, template
from tests.simulation.stepping.virtual_time import VirtualLoop

ZONES: Mapping[str, str] = {"p1": "az1", "p2": "az1", "p4": "az1", "p7": "az2"}
"""The pods with their availability zones."""
DOORS = ("door", "door2")
"""The processes of the gateway, which share a database."""
GROUPS = 2
SPECIAL = "p4"
"""The pod for special work."""
HOSTS_MAX, PLACES_MAX = 2, 4
PLENTY = 1_000_000
REQUESTS, FAULTS_S = 100, 150.0
DEATHS_MAX = 3
ROUNDS_MAX = 120
SETTLED_ROUNDS = int(2 * RECHECK_S / UPKEEP_S)
"""In this many rounds, the door looks for each resource in its pod."""


def run(seed: int, chances: Mapping[str, float] = FATES, *, sends_again: bool = False) -> Outcome:
    """Run one door. ``chances`` are the probabilities of the fates of a request.

    ``sends_again`` plants a bug.
    """
    with tempfile.TemporaryDirectory(prefix="innkeeper-door-") as folder:
        loop = VirtualLoop()
        try:
            network = Network(dice_of(f"{seed} network"), chances, sends_again)
            cloud = _Cloud(seed, Path(folder), loop, network)
            outcome = loop.run_until_complete(cloud.run())
            outcome.virtual_s = loop.time()
            return outcome
        finally:
            end(loop)


class _Cloud:
    """Doors on one database, and their pods."""

    def __init__(self, seed: int, folder: Path, loop: VirtualLoop, network: Network) -> None:
        self._seed, self._folder, self._loop, self._network = seed, folder, loop, network
        self._dice = dice_of(seed)
        quota = {"quota_instances": str(self._dice.choice([-1, 4]))}
        quota |= {"quota_volumes": str(self._dice.choice([-1, 3]))}
        place = self._place("door")
        self._doors: list[SimulatedDoor] = [
            self._made_of(
                partial(SimulatedDoor, network=network), name, place, {**OF_DOORS, **quota}
            )
            for name in DOORS
        ]
        self._pods = {
            name: self._made_of(SimulatedPod, name, self._place(name), OF_PODS) for name in ZONES
        }
        network.pods.update(self._pods)
        self._ids: dict[str, str] = {}
        self._clients = Clients(self._doors, self._pods, self._ids, ZONES, self._dice)

    def _place(self, name: str) -> Path:
        place = self._folder / name
        place.mkdir()
        shutil.copy(template() / wiring.DATABASE_FILE, place)
        return place

    def _made_of(self, kind: Any, name: str, place: Path, settings: Mapping[str, str]) -> Any:
        dice = dice_of(f"{self._seed} {name}")
        return kind(name, place, self._loop, dice, Guards(), settings, self._network.accidents)

    @property
    def _services(self) -> list[SimulatedService]:
        return [*self._doors, *self._pods.values()]

    @property
    def _door(self) -> SimulatedDoor:
        """The first door, which runs before and after the faults."""
        return self._doors[0]

    async def run(self) -> Outcome:
        for each in self._services:
            each.start()
        await self._furnish()
        self._network.has_faults = True
        deaths = [self._die() for _ in range(self._dice.randint(0, DEATHS_MAX))]
        await asyncio.gather(self._clients.work(REQUESTS, FAULTS_S), *deaths)
        self._network.has_faults = False
        outcome = Outcome(self._seed, fates=self._network.fates)
        outcome.answers.update(f"{kind} {status}" for kind, status in self._clients.answers)
        outcome.faults = [*await self._rest(), *self._clients.faults]
        outcome.faults += [f"accident: {each!r}" for each in self._network.accidents]
        outcome.deaths = sum(each.deaths for each in self._services)
        for each in self._services:
            if each.process is not None:
                each.process.die()
        return outcome

    async def _die(self) -> None:
        await asyncio.sleep(self._dice.uniform(0, FAULTS_S))
        # Doors die as often as pods.
        pods = [self._pods[name] for name in sorted(self._pods)]
        dying: list[SimulatedService] = [self._dice.choice(self._doors), self._dice.choice(pods)]
        self._dice.choice(dying).die()

    async def _rest(self) -> list[str]:
        """Wait until the door has settled everything; returns what is wrong then."""
        settled = 0
        for _ in range(ROUNDS_MAX):
            await asyncio.sleep(UPKEEP_S)
            is_up = all(each.process is not None for each in self._services)
            if is_up:
                waiting = checks.seen(self._door, self._pods).alive
                await self._clients.end_resizes(
                    row["uuid"] for row in waiting if row["status"] == checks.RESIZED
                )
            is_quiet = is_up and self._network.is_quiet()
            is_settled = is_quiet and not checks.unsettled(checks.seen(self._door, self._pods))
            settled = settled + 1 if is_settled else 0
            if settled == SETTLED_ROUNDS:
                break
        if not all(each.process is not None for each in self._services):
            return ["a service does not come back"]
        found = checks.unsettled(checks.seen(self._door, self._pods))
        left = [] if settled >= SETTLED_ROUNDS else [f"the door does not come to rest: {found}"]
        left += checks.faults(self._door, self._pods, self._clients.creates)
        return [*left, *await checks.shown_faults(self._door, self._pods, self._clients.creates)]

    async def _furnish(self) -> None:
        for flavor in FLAVORS.values():
            await self._door.made("POST", f"{COMPUTE}/flavors", {"flavor": dict(flavor)})
        specs = {"extra_specs": dict(CAD)}
        await self._door.made("POST", f"{COMPUTE}/flavors/cad/os-extra_specs", specs)
        for name in TYPES:
            wanted = {"name": name, "extra_specs": dict(CAD) if name == "cad" else {}}
            await self._door.made("POST", f"{VOLUME}/types", {"volume_type": wanted})
        for project in PROJECTS:
            self._clients.groups[project] = [await self._group(project) for _ in range(GROUPS)]
        for name, pod in self._pods.items():
            await self._report_hosts(pod)
            fields = {
                "pod_name": name,
                "az_name": ZONES[name],
                "auth_url": f"http://{name}/identity",
                "username": "admin",
                "password": "any",
                "project_name": "admin",
                "threshold_percent": 80,
                "resource_affinity_tag": dict(CAD) if name == SPECIAL else {},
            }
            made = await self._door.made("POST", f"{PODS}/pods", {"pod": fields})
            self._ids[name] = made["pod"]["pod_id"]

    async def _group(self, project: str) -> str:
        wanted = {"server_group": {"name": "some", "policy": "soft-anti-affinity"}}
        path = f"{COMPUTE}/os-server-groups"
        status, told = await self._door.ask("POST", path, wanted, f"user:{project}")
        assert status == OK, told
        return str(told["server_group"]["id"])

    async def _report_hosts(self, pod: SimulatedPod) -> None:
        agent = {"agent": {"name": "rack", "driver": "fake"}}
        made = await pod.made("POST", f"{COMPUTE}/os-agents", agent)
        memory_mb = FLAVORS["g"]["ram"] * len(PROJECTS)
        rows = [
            {
                "name": f"{pod.name}-host-{number}",
                "inventories": {
                    "VCPU": {"total": PLENTY},
                    "MEMORY_MB": {"total": memory_mb * self._dice.randint(1, PLACES_MAX)},
                    "DISK_GB": {"total": PLENTY},
                },
            }
            for number in range(self._dice.randint(1, HOSTS_MAX))
        ]
        pod.agent_id = made["agent"]["id"]
        path = f"{COMPUTE}/os-agents/{pod.agent_id}"
        await pod.made("PUT", f"{path}/hosts", {"hosts": rows})
        await pod.made("POST", f"{path}/heartbeat", None)
