"""Simulated services: the real program of each, with its own database, one process after the other.

Always true: what a process did not commit is gone when it dies. Its successor has only the
database, and the settings.
"""

from __future__ import annotations

import asyncio
import json
import random
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import httpx

from innkeeper import wiring
from innkeeper.settings import load
from innkeeper.store.guards import Guards
from innkeeper.store.transactions import Store
from innkeeper.wiring import Seams, Service
from tests.simulation.stepping.stepped_engine import SteppedEngine
from tests.simulation.stepping.virtual_time import VirtualLoop
from tests.support.servers.leaving import LEAVING

Dice = random.Random
STEP_S = 0.004
"""The mean time of a commit or a read."""
AGENT_S = 4.0
DOWN_S = (0.5, 15.0)
TIME_BITS, RANDOM_BITS = 48, 80
SERVER_ERROR, AWAY = 500, 503
COMPUTE = "/compute/v2.1"
VERSIONS = {"openstack-api-version": "compute 2.90"}


def dice_of(seed: object) -> Dice:
    """Return a source of random choices that a seed repeats. They need not be secret."""
    return random.Random(str(seed))  # noqa: S311


@cache
def template() -> Path:
    """Return a folder with an empty database, from which each service gets a copy."""
    folder = LEAVING.folder("innkeeper-simulated-")
    environ = {"INNKEEPER_DATA_DIR": str(folder), "INNKEEPER_AUTH": "none"}
    wiring.open_store(load(None, environ)).dispose()
    return folder


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


class ServiceProcess:
    """One process of a service, and its tasks. ``seams`` connect it to other services."""

    def __init__(self, simulated: SimulatedService, dice: Dice, seams: Seams) -> None:
        self._simulated = simulated
        self._dice = dice
        self._tasks: set[asyncio.Task[Any]] = set()
        self.is_dead = False
        settings = load(None, simulated.environ)
        opened = wiring.open_store_as_it_is(settings)
        self.store = Store(opened.backend, opened.engines, simulated.guards)
        seams = replace(
            seams,
            ids=SeededIds(dice, simulated.loop),
            engine_of=partial(SteppedEngine, pause=self._pause, spawn=self.spawn),
        )
        self.service = Service(settings, self.store, clock=simulated.loop.now, seams=seams)
        self.service.engine.load()
        self._transport = httpx.ASGITransport(self.service.app)
        self.spawn(self._agent())

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run a task until it ends, or the process dies."""
        task = self._simulated.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._simulated.accidents.append(task.exception())

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

    async def answer(self, request: httpx.Request) -> httpx.Response:
        """Let the service answer a request."""
        response = await self._transport.handle_async_request(request)
        body = await response.aread()
        if response.status_code >= SERVER_ERROR and response.status_code != AWAY:
            text = f"{self._simulated.name}: {request.method} {request.url}: {body.decode()}"
            self._simulated.accidents.append(AssertionError(text))
        return response

    async def _agent(self) -> None:
        """Carry out the orders for the hosts, as an agent with the fake driver does."""
        while True:
            await asyncio.sleep(AGENT_S * self._dice.uniform(0.5, 1.5))
            if self._simulated.agent_id is None:
                continue
            path = f"{COMPUTE}/os-agents/{self._simulated.agent_id}"
            _, told = await self._simulated.ask("POST", path + "/work", {"after": 0, "wait_s": 0})
            results = [{"order_id": each["id"], "ok": True} for each in told["orders"]]
            if results:
                await self._simulated.ask("POST", path + "/results", {"results": results})


@dataclass(slots=True)
class SimulatedService(ABC):
    """A service, over all its processes.

    ``accidents`` has unexpected errors in a process, and answers that report one. They must never
    happen.
    """

    name: str
    folder: Path
    loop: VirtualLoop
    dice: Dice
    guards: Guards
    settings: Mapping[str, str]
    accidents: list[BaseException | None]
    agent_id: str | None = None
    process: ServiceProcess | None = None
    deaths: int = 0
    environ: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        own = {"auth": "none", "data_dir": str(self.folder), **self.settings}
        self.environ = {f"INNKEEPER_{name.upper()}": text for name, text in own.items()}

    @abstractmethod
    def make(self, dice: Dice) -> ServiceProcess:
        """Return a new process."""

    def start(self) -> None:
        """Start the next process."""
        self.process = self.make(dice_of(self.dice.getrandbits(64)))

    def die(self) -> None:
        """Let the process die, and start the next one after a while."""
        if self.process is None:
            return
        self.process.die()
        self.process = None
        self.deaths += 1
        self.loop.call_later(self.dice.uniform(*DOWN_S), self.start)

    def serve(self, request: httpx.Request) -> asyncio.Task[httpx.Response]:
        """Begin to serve a request. Raises ``ConnectionRefusedError`` if the service is down."""
        if self.process is None:
            raise ConnectionRefusedError
        return self.process.spawn(self.process.answer(request))

    async def ask(
        self, method: str, path: str, body: Any = None, token: str = "admin"
    ) -> tuple[int, Any]:
        """Send a request over a connection that is never cut; returns status and body.

        Raises ``ConnectionRefusedError`` if the service is down, and ``ConnectionResetError`` if it
        dies.
        """
        headers = {"x-auth-token": token, "content-type": "application/json", **VERSIONS}
        content = b"" if body is None else json.dumps(body).encode()
        url = f"http://{self.name}{path}"
        serving = self.serve(httpx.Request(method, url, headers=headers, content=content))
        await asyncio.wait([serving])
        if serving.cancelled():
            raise ConnectionResetError
        answer = serving.result()
        return answer.status_code, json.loads(answer.content) if answer.content else None

    async def made(self, method: str, path: str, body: Any) -> Any:
        """Send a request of an administrator that must succeed, and return the answer's body."""
        status, answer = await self.ask(method, path, body)
        assert status < 300, (path, answer)
        return answer

    @property
    def store(self) -> Store:
        """The store of the running process."""
        assert self.process is not None, "it runs"
        return self.process.store
