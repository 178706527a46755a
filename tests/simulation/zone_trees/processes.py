"""Simulated zones: the real program of each, with its own database, as one process after the other.

Always true: what a process did not commit is gone when it dies. Its successor has only the
database, and the settings.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from innkeeper import wiring
from innkeeper.clients.zone_wire import NoAnswer, NotSent, SignedRequest, ZoneAnswer
from innkeeper.domain.errors import Refusal
from innkeeper.engine.zones import polling
from innkeeper.engine.zones.neighbours import Neighbours, ZoneSources
from innkeeper.engine.zones.repairing import Repairer
from innkeeper.settings import load
from innkeeper.store.guards import Guards
from innkeeper.store.transactions import Store, Tx
from innkeeper.systems.zones import parents, used_entries
from innkeeper.wiring import Seams, Service
from tests.simulation.zone_trees.network import Dice, Network, SimulatedWire, dice_of
from tests.simulation.zone_trees.stepped_engine import SteppedEngine
from tests.simulation.zone_trees.virtual_time import VirtualLoop

STEP_S = 0.004
"""The mean time of a commit or a read."""
POLL_S = 10.0
AGENT_S = 4.0
DOWN_S = (0.5, 15.0)
TIME_BITS, RANDOM_BITS = 48, 80
SERVER_ERROR, AWAY = 500, 503
SETTINGS = {
    "auth": "none",
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


class SeededIds:
    """Identifiers that are ordered by the virtual time, and are equal for equal seeds."""

    def __init__(self, dice: Dice, loop: VirtualLoop) -> None:
        self._dice = dice
        self._loop = loop

    def uuid(self) -> str:
        milliseconds = int(self._loop.now().timestamp() * 1000) % (1 << TIME_BITS)
        text = f"{milliseconds:012x}{self._dice.getrandbits(RANDOM_BITS):020x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def seed(self) -> int:
        return self._dice.getrandbits(63)


class ZoneProcess:
    """One process of a zone: the service, and its tasks."""

    def __init__(self, zone: SimulatedZone, dice: Dice) -> None:
        self._zone = zone
        self._dice = dice
        self._tasks: set[asyncio.Task[Any]] = set()
        self.is_dead = False
        settings = load(None, zone.environ)
        opened = wiring.open_store_as_it_is(settings)
        self.store = Store(opened.backend, opened.engines, zone.guards)
        seams = Seams(
            SeededIds(dice, zone.loop),
            partial(SteppedEngine, pause=self._pause, spawn=self.spawn),
            lambda clock, ids: ZoneSources(
                clock, ids, zone.loop.time, lambda: SimulatedWire(zone.network, zone)
            ),
        )
        self.service = Service(settings, self.store, clock=zone.loop.now, seams=seams)
        self.service.engine.load()
        self._transport = httpx.ASGITransport(self.service.app)
        self._repairer = Repairer()
        self.spawn(self._upkeep())
        self.spawn(self._agent())

    @property
    def neighbours(self) -> Neighbours:
        """The zones around this one."""
        found = self.service.site.neighbours
        assert found is not None, "it has keys"
        return found

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run a task until it ends, or the process dies."""
        task = self._zone.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._zone.network.accidents.append(task.exception())

    async def _pause(self) -> None:
        await asyncio.sleep(self._dice.expovariate(1 / STEP_S))
        if self.is_dead:
            raise asyncio.CancelledError

    def die(self) -> None:
        """End all tasks where they are."""
        self.is_dead = True
        for task in list(self._tasks):
            task.cancel()
        self.store.dispose()

    async def answer(self, signed: SignedRequest) -> ZoneAnswer:
        """Let the service answer a request."""
        request = httpx.Request(
            signed.method, signed.url, headers=list(signed.headers), content=signed.body
        )
        response = await self._transport.handle_async_request(request)
        body = await response.aread()
        if response.status_code >= SERVER_ERROR and response.status_code != AWAY:
            text = f"{self._zone.name}: {signed.method} {signed.url}: {body.decode()}"
            self._zone.network.accidents.append(AssertionError(text))
        shown = {name.lower(): text for name, text in response.headers.items()}
        return ZoneAnswer(response.status_code, shown, body)

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
                    # The threads log it, and try again the next time.
                    continue

    async def _prune(self) -> int:
        now = self._zone.loop.now()

        def prune(tx: Tx) -> int:
            return parents.prune(tx, now) + used_entries.prune(tx, now)

        return await self.service.engine.write(prune)

    async def _agent(self) -> None:
        """Carry out the orders for the hosts, as an agent with the fake driver does."""
        while True:
            await asyncio.sleep(AGENT_S * self._dice.uniform(0.5, 1.5))
            if self._zone.agent_id is None:
                continue
            path = f"/os-agents/{self._zone.agent_id}"
            _, told = await self._zone.ask("POST", path + "/work", {"after": 0, "wait_s": 0})
            results = [{"order_id": each["id"], "ok": True} for each in told["orders"]]
            if results:
                await self._zone.ask("POST", path + "/results", {"results": results})


@dataclass(slots=True)
class SimulatedZone:
    """A zone, over all its processes."""

    name: str
    folder: Path
    network: Network
    loop: VirtualLoop
    dice: Dice
    settings: Mapping[str, str]
    guards: Guards
    agent_id: str | None = None
    process: ZoneProcess | None = None
    deaths: int = 0
    environ: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        own = {
            **SETTINGS,
            "zone_name": self.name,
            "data_dir": str(self.folder),
            "build_plan_encryption_key": secrets.token_hex(32),
            **self.settings,
        }
        self.environ = {f"INNKEEPER_{name.upper()}": text for name, text in own.items()}
        self.network.processes[self.name] = self

    def start(self) -> None:
        """Start the next process."""
        self.process = ZoneProcess(self, dice_of(self.dice.getrandbits(64)))

    def die(self) -> None:
        """Let the process die, and start the next one after a while."""
        if self.process is None:
            return
        self.process.die()
        self.process = None
        self.deaths += 1
        self.loop.call_later(self.dice.uniform(*DOWN_S), self.start)

    def serve(self, signed: SignedRequest) -> asyncio.Task[ZoneAnswer]:
        """Begin to serve a request."""
        if self.process is None:
            raise NotSent("refused")
        return self.process.spawn(self.process.answer(signed))

    async def ask(
        self, method: str, path: str, body: Any = None, token: str = "admin"
    ) -> tuple[int, Any]:
        """Send a request as a client that is never cut off; returns status and body.

        Raises :class:`NotSent` if the zone is down, and :class:`NoAnswer`
        if it dies.
        """
        serving = self.serve(request_of(self.name, method, path, body, token))
        await asyncio.wait([serving])
        if serving.cancelled():
            raise NoAnswer("the connection was reset")
        answer = serving.result()
        return answer.status, json.loads(answer.body) if answer.body else None

    @property
    def store(self) -> Store:
        """The store of the running process."""
        assert self.process is not None, "it runs"
        return self.process.store


def request_of(name: str, method: str, path: str, body: Any, token: str) -> SignedRequest:
    """Return a client's request to the Compute API of a zone."""
    headers = {
        "host": name,
        "content-type": "application/json",
        "x-auth-token": token,
        "openstack-api-version": "compute 2.90",
    }
    return SignedRequest(
        method,
        address_of(name) + path,
        tuple((k.encode(), text.encode()) for k, text in headers.items()),
        b"" if body is None else json.dumps(body).encode(),
    )


def address_of(name: str) -> str:
    """Return the address of a zone's Compute API on the simulated wire."""
    return f"http://{name}/compute/v2.1"
