"""Simulates the agents of many hosts: each polls for orders, and reports every build as done.

It is a program of its own (``python -m benchmarks.simulated_agents``), because it shares the
machine with the service. It reads one command per line from the standard input, and prints one line
as soon as the command is done:

- ``beat``: all agents send a heartbeat at the same moment;
- ``report``: all agents report their hosts, unchanged, at the same moment;
- ``results N``: wait until ``N`` results were acknowledged in all.

A line consists of a number of requests, and the time of the last answer on the clock
``time.perf_counter``, which all programs of a machine share.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import uvloop

from benchmarks.clients import ADMIN
from benchmarks.fleet import SHAPES

AT_ONCE = 32
"""The number of agents that register at the same time."""
POLL_S = 20.0
KEPT_OPEN_S = 3.0
"""After a longer pause, a new connection is opened, because services close connections that were
idle for five seconds."""
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
LAST_GOOD = 299


class Failed(Exception):
    """The service refused a request."""


@dataclass(slots=True)
class Connection:
    """One connection, with one request at a time."""

    port: int
    reader: asyncio.StreamReader | None = None
    writer: asyncio.StreamWriter | None = None
    used_at_s: float = 0.0

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request, and return the body of the answer."""
        if self.writer is not None and time.perf_counter() - self.used_at_s > KEPT_OPEN_S:
            self.writer.close()
            self.writer = None
        if self.reader is None or self.writer is None:
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        content = b"" if body is None else json.dumps(body).encode()
        lines = [f"{method} /compute/v2.1{path} HTTP/1.1", "host: 127.0.0.1"]
        lines += [f"x-auth-token: {ADMIN}", f"content-length: {len(content)}"]
        if content:
            lines.append("content-type: application/json")
        self.writer.write("\r\n".join((*lines, "", "")).encode() + content)
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = LENGTH.search(head)
        text = await self.reader.readexactly(int(length[1])) if length else b""
        self.used_at_s = time.perf_counter()
        if int(head[9:12]) > LAST_GOOD:
            raise Failed(f"{method} {path}: {head[9:12]!r} {text[:300]!r}")
        return json.loads(text) if text else None


@dataclass(slots=True)
class Progress:
    """The numbers of what all agents have done."""

    results: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)


class SimulatedAgent:
    """One agent with its hosts."""

    def __init__(self, port: int, number: int, hosts: int, progress: Progress) -> None:
        self._polling, self._talking = Connection(port), Connection(port)
        self._name = f"agent-{number}"
        self._hosts = [
            _host(f"host-{number}-{i}", SHAPES[(number + i) % len(SHAPES)]) for i in range(hosts)
        ]
        self._progress = progress
        self._path = ""

    async def register(self) -> None:
        """Register the agent and its hosts."""
        wanted = {"agent": {"name": self._name, "driver": "fake"}}
        found = await self._talking.ask("POST", "/os-agents", wanted)
        self._path = f"/os-agents/{found['agent']['id']}"
        await self._report([{**each, "servers": []} for each in self._hosts])

    async def report(self) -> None:
        """Report the hosts once more."""
        await self._report(self._hosts)

    async def _report(self, hosts: list[dict[str, Any]]) -> None:
        await self._talking.ask("PUT", f"{self._path}/hosts", {"hosts": hosts})

    async def beat(self) -> None:
        """Send a heartbeat."""
        await self._talking.ask("POST", f"{self._path}/heartbeat")

    async def work(self) -> None:
        """Poll for orders, and report each order as done, forever."""
        after = 0
        while True:
            wanted = {"after": after, "wait_s": POLL_S}
            found = await self._polling.ask("POST", f"{self._path}/work", wanted)
            orders = found["orders"]
            after = max((each["id"] for each in orders), default=0)
            if orders:
                results = [{"order_id": each["id"], "ok": True} for each in orders]
                # Like a real agent, it polls again only when the results are stored.
                await self._talking.ask("POST", f"{self._path}/results", {"results": results})
                self._progress.results += len(orders)
                self._progress.changed.set()


def _host(name: str, shape: tuple[int, int, int]) -> dict[str, Any]:
    totals: Mapping[str, int] = dict(zip(("VCPU", "MEMORY_MB", "DISK_GB"), shape, strict=True))
    return {
        "name": name,
        "inventories": {each: {"total": total} for each, total in totals.items()},
        "traits": ["HW_CPU_X86_AVX2", "HW_CPU_X86_AESNI"],
        "capabilities": {"cpu_mhz": 2600, "cpu_arch": "x86_64", "disk_type": "ssd"},
        "host_type": "fake",
        "host_version": 1000,
    }


async def run(port: int, agents: int, hosts: int) -> None:
    """Register the agents, and carry out the commands on the standard input until its end."""
    progress = Progress()
    made = [SimulatedAgent(port, number, hosts, progress) for number in range(agents)]
    gate = asyncio.Semaphore(AT_ONCE)

    async def register(agent: SimulatedAgent) -> None:
        async with gate:
            await agent.register()

    await asyncio.gather(*(register(each) for each in made))
    async with asyncio.TaskGroup() as working:
        tasks = [working.create_task(each.work()) for each in made]
        _say(agents)
        await _obey(made, progress)
        for task in tasks:
            task.cancel()


async def _obey(made: Sequence[SimulatedAgent], progress: Progress) -> None:
    while line := await asyncio.to_thread(sys.stdin.readline):
        command, _, number = line.strip().partition(" ")
        if command == "results":
            while progress.results < int(number):
                progress.changed.clear()
                await progress.changed.wait()
            _say(progress.results)
        else:
            acts = {"beat": SimulatedAgent.beat, "report": SimulatedAgent.report}
            await asyncio.gather(*(acts[command](each) for each in made))
            _say(len(made))


def _say(count: int) -> None:
    print(count, time.perf_counter(), flush=True)


def main() -> None:
    """Run the agents that the options describe."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--agents", type=int, required=True)
    parser.add_argument("--hosts", type=int, required=True, help="hosts of each agent")
    wanted = parser.parse_args()
    uvloop.run(run(wanted.port, wanted.agents, wanted.hosts))


if __name__ == "__main__":
    main()
