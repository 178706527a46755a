"""Runs simulated trees of zones, with the real program and a virtual clock, in one process.

A seed decides everything: the tree, the hosts, the requests of clients, the fates of requests
between zones, and when processes die. After the faults, the tree gets time to repair, and is
checked.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from innkeeper import wiring
from innkeeper.store.guards import Guards
from tests.simulation.stepping.outcomes import Outcome, end
from tests.simulation.stepping.services import dice_of, template
from tests.simulation.stepping.virtual_time import VirtualLoop
from tests.simulation.zone_trees import checks
from tests.simulation.zone_trees.clients import ACCEPTED, FLAVOR, Clients
from tests.simulation.zone_trees.network import FATES, Network
from tests.simulation.zone_trees.processes import POLL_S, SimulatedZone, address_of

SHAPES: Sequence[Mapping[str, str]] = (
    {"east": "root"},
    {"east": "root", "west": "root"},
    {"east": "root", "edge": "east"},
    {"east": "root", "west": "root", "edge": "east"},
)
"""Trees of two and three levels: each zone with its parent."""
ROOT = "root"
BARE = 0.4
"""The probability that a zone with child zones has no hosts of its own."""
HOSTS_MAX, PLACES_MAX = 2, 4
PLENTY = 1_000_000
REQUESTS, FAULTS_S = 14, 60.0
DEATHS_MAX = 2
ROUNDS_MAX = 60
SETTLED_ROUNDS = 3


def run(seed: int, chances: Mapping[str, float] = FATES, guards: Guards | None = None) -> Outcome:
    """Run one tree. ``chances`` are the probabilities of the fates of a request.

    A planted bug is a guard that is switched off.
    """
    with tempfile.TemporaryDirectory(prefix="innkeeper-tree-") as folder:
        loop = VirtualLoop()
        try:
            tree = _Tree(seed, Path(folder), loop, chances)
            tree.start(guards or Guards())
            outcome = loop.run_until_complete(tree.run())
            outcome.virtual_s = loop.time()
            return outcome
        finally:
            end(loop)


class _Tree:
    def __init__(
        self, seed: int, folder: Path, loop: VirtualLoop, chances: Mapping[str, float]
    ) -> None:
        self._seed = seed
        self._loop = loop
        self._folder = folder
        self._dice = dice_of(seed)
        self._parents = self._dice.choice(SHAPES)
        self._network = Network(self._dice, chances=chances)
        self._zones: dict[str, SimulatedZone] = {}
        self._clients = Clients(self._zones, self._dice, ROOT)

    def start(self, guards: Guards) -> None:
        """Make the zones, which start when the tree runs."""
        settings = {"quota_instances": str(self._dice.choice([-1, 12]))}
        for name in (ROOT, *self._parents):
            place = self._folder / name
            place.mkdir()
            shutil.copy(template() / wiring.DATABASE_FILE, place)
            dice = dice_of(f"{self._seed} {name}")
            self._zones[name] = SimulatedZone(
                name,
                place,
                self._loop,
                dice,
                guards,
                settings,
                self._network.accidents,
                network=self._network,
            )

    async def run(self) -> Outcome:
        for zone in self._zones.values():
            zone.start()
            await self._furnish(zone)
        for child, parent in self._parents.items():
            await self._link(parent, child)
        self._network.has_faults = True
        deaths = [self._die() for _ in range(self._dice.randint(0, DEATHS_MAX))]
        await asyncio.gather(self._clients.work(REQUESTS, FAULTS_S), *deaths)
        self._network.has_faults = False
        outcome = Outcome(self._seed, fates=self._network.fates)
        outcome.answers.update(
            "accepted" if each.status == ACCEPTED else str(each.status)
            for each in self._clients.creates
        )
        outcome.deaths = sum(zone.deaths for zone in self._zones.values())
        outcome.faults = [*self._clients.faults, *await self._rest()]
        outcome.faults += [f"accident: {each!r}" for each in self._network.accidents]
        for zone in self._zones.values():
            if zone.process is not None:
                zone.process.die()
        return outcome

    async def _die(self) -> None:
        await asyncio.sleep(self._dice.uniform(0, FAULTS_S))
        self._zones[self._dice.choice(sorted(self._zones))].die()

    async def _rest(self) -> list[str]:
        """Wait until the repair has done its work; returns what is wrong then."""
        settled = 0
        for _ in range(ROUNDS_MAX):
            await asyncio.sleep(POLL_S)
            zones = self._zones.values()
            is_up = all(zone.process is not None for zone in zones)
            is_settled = is_up and self._network.is_quiet() and all(map(checks.is_settled, zones))
            settled = settled + 1 if is_settled else 0
            if settled == SETTLED_ROUNDS:
                break
        if not all(zone.process is not None for zone in self._zones.values()):
            return ["a zone does not come back"]
        left = [] if settled == SETTLED_ROUNDS else ["the tree does not come to rest"]
        creates = self._clients.creates
        return [*left, *checks.faults(self._zones, self._parents, creates, self._network)]

    def _hosts_of(self, zone: SimulatedZone) -> int:
        is_bare = zone.name in self._parents.values() and self._dice.random() < BARE
        return 0 if is_bare else self._dice.randint(1, HOSTS_MAX)

    async def _furnish(self, zone: SimulatedZone) -> None:
        await self._made(zone, "POST", "/flavors", {"flavor": dict(FLAVOR)})
        made = await self._made(
            zone, "POST", "/os-agents", {"agent": {"name": "rack", "driver": "fake"}}
        )
        rows = [
            {
                "name": f"{zone.name}-host-{number}",
                "inventories": {
                    "VCPU": {"total": PLENTY},
                    "MEMORY_MB": {"total": FLAVOR["ram"] * self._dice.randint(1, PLACES_MAX)},
                    "DISK_GB": {"total": PLENTY},
                },
            }
            for number in range(self._hosts_of(zone))
        ]
        zone.agent_id = made["agent"]["id"]
        if rows:
            await self._made(zone, "PUT", f"/os-agents/{zone.agent_id}/hosts", {"hosts": rows})

    async def _link(self, parent: str, child: str) -> None:
        name = f"up-{parent}"
        wanted = {"zone_parent": {"name": name}}
        made = await self._made(self._zones[child], "POST", "/zones/parents", wanted)
        zone = {
            "name": child,
            "api_url": address_of(child),
            "username": name,
            "password": made["zone_parent"]["password"],
        }
        await self._made(self._zones[parent], "POST", "/zones", {"zone": zone})

    @staticmethod
    async def _made(zone: SimulatedZone, method: str, path: str, body: Any) -> Any:
        status, answer = await zone.compute(method, path, body)
        assert status < 300, (path, answer)
        return answer
