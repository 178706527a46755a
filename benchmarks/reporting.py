"""Measures agents: the time from an accepted boot to ACTIVE, and the cost of what agents send.

A few real agents with thousands of hosts each are measured, and then many simulated agents with few
hosts each (:mod:`benchmarks.simulated_agents`). The simulated agents all send at the same moment.
Processor times are those of the service alone. After each run the final state is checked.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import httpx

from benchmarks import judging, together
from benchmarks.building import await_hosts, make_flavor
from benchmarks.clients import ADMIN, TOKEN, compute_headers
from benchmarks.figures import Figure, median
from benchmarks.running import Started, started, stop

LOOK_AGAIN_S = 0.02
PER_HOSTS = 10_000
BUILDING = {"status": "BUILD", "limit": "1"}
STEPS = "innkeeper_commit_steps"


@dataclass(frozen=True, slots=True)
class Plan:
    """Says how much work to measure."""

    hosts: int
    real_agents: int
    simulated_agents: int
    boots: int
    rounds: int


@contextmanager
def _client(service: Started) -> Iterator[httpx.Client]:
    url = f"http://127.0.0.1:{service.port}/compute/v2.1"
    headers = compute_headers(TOKEN)
    with httpx.Client(base_url=url, headers=headers, timeout=together.TIMEOUT_S) as client:
        yield client


def measure(directory: Path, plan: Plan) -> Iterator[Figure]:
    """Measure real agents, and then simulated ones."""
    for kind, measured in (("few", _measure_few), ("many", _measure_many)):
        place = directory / kind
        place.mkdir(parents=True)
        yield from measured(place, plan)


def _measure_few(place: Path, plan: Plan) -> Iterator[Figure]:
    acknowledged: list[str] = []
    took: list[float] = []
    with started(place, {}) as service, ExitStack() as ends, _client(service) as client:
        for number in range(plan.real_agents):
            ends.enter_context(_real_agent(place, service, number, plan.hosts // plan.real_agents))
        await_hosts(service, plan.hosts)
        make_flavor(service)
        for _ in range(1 + plan.boots):
            _, batch_id = together.boot(client)
            begun_s = time.perf_counter()
            while client.get("/servers", params={"status": "BUILD", "limit": "1"}).json()[
                "servers"
            ]:
                time.sleep(LOOK_AGAIN_S)
            took.append(time.perf_counter() - begun_s)
            acknowledged += _active(client, batch_id)
    judging.judge(place, acknowledged)
    yield from _times("few", took[1:])


@contextmanager
def _real_agent(place: Path, service: Started, number: int, hosts: int) -> Iterator[None]:
    command = [sys.executable, "-m", "innkeeper.main", "agent", "--driver", "fake"]
    command += ["--hosts", str(hosts), "--host-prefix", f"host-{number}-"]
    command += ["--name", f"agent-{number}", "--state-dir", str(place / f"agent-{number}")]
    command += ["--url", f"http://127.0.0.1:{service.port}/compute"]
    with (place / "agents.log").open("ab") as log:
        environ = {**os.environ, "OS_TOKEN": ADMIN}
        agent = subprocess.Popen(command, stdout=log, stderr=log, env=environ)
    try:
        yield
    finally:
        stop(agent)


def _measure_many(place: Path, plan: Plan) -> Iterator[Figure]:
    acknowledged: list[str] = []
    took: list[float] = []
    busy: list[float] = []
    with started(place) as service, _simulated(service, plan) as agents, _client(service) as client:
        make_flavor(service)
        for number in range(1 + plan.boots):
            _, batch_id = together.boot(client)
            begun_s, busy_s = time.perf_counter(), service.busy_s()
            took.append(agents.ask(f"results {(number + 1) * together.SERVERS}") - begun_s)
            busy.append((service.busy_s() - busy_s) / together.SERVERS)
            acknowledged += _active(client, batch_id)
        yield from _times("many", took[1:])
        yield Figure("agents.many.result.busy", median(busy[1:]) * 1e6, "us")
        for what, per_round in (("beat", plan.simulated_agents), ("report", plan.hosts)):
            yield from _rounds(service, agents, what, per_round, plan)
    judging.judge(place, acknowledged)


def _rounds(
    service: Started, agents: Simulated, what: str, per_round: int, plan: Plan
) -> Iterator[Figure]:
    agents.ask(what)
    busy_s, commits, begun_s = service.busy_s(), _commits(service), time.perf_counter()
    for _ in range(plan.rounds):
        ended_s = agents.ask(what)
    time.sleep(LOOK_AGAIN_S)
    name = f"agents.many.{what}"
    done = plan.rounds * per_round
    yield Figure(f"{name}.busy", (service.busy_s() - busy_s) / done * 1e6, "us")
    yield Figure(f"{name}.rate", done / (ended_s - begun_s), "/s", is_rate=True)
    writes = (_commits(service) - commits) * PER_HOSTS / (plan.rounds * plan.hosts)
    yield Figure(f"{name}.commits", writes, "")


def _times(kind: str, took: list[float]) -> Iterator[Figure]:
    yield Figure(f"agents.{kind}.active.median", median(took), "s")
    yield Figure(f"agents.{kind}.active.longest", max(took), "s")


def _active(client: httpx.Client, batch_id: str) -> list[str]:
    wanted = {"reservation_id": batch_id, "limit": str(together.SERVERS)}
    servers = client.get("/servers/detail", params=wanted).json()["servers"]
    states = {each["status"] for each in servers}
    if states != {"ACTIVE"} or len(servers) != together.SERVERS:
        raise RuntimeError(f"The servers are not all ACTIVE: {states}")
    return [str(each["id"]) for each in servers]


def _commits(service: Started) -> float:
    with urllib.request.urlopen(f"http://127.0.0.1:{service.port}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    (line,) = (each for each in lines if each.startswith(f"{STEPS}_count"))
    return float(line.rsplit(" ", 1)[1])


@dataclass(frozen=True, slots=True)
class Simulated:
    """The program with the simulated agents."""

    commands: IO[str]
    answers: IO[str]

    def ask(self, command: str) -> float:
        """Give the agents a command; returns the time at which the last of them got its answer."""
        self.commands.write(f"{command}\n")
        self.commands.flush()
        return self.read()

    def read(self) -> float:
        """Read one line, and return its time."""
        line = self.answers.readline()
        if not line:
            raise RuntimeError("The simulated agents have ended.")
        return float(line.split()[1])


@contextmanager
def _simulated(service: Started, plan: Plan) -> Iterator[Simulated]:
    command = [sys.executable, "-m", "benchmarks.simulated_agents", "--port", str(service.port)]
    command += ["--agents", str(plan.simulated_agents)]
    command += ["--hosts", str(plan.hosts // plan.simulated_agents)]
    program = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    try:
        assert program.stdin is not None
        assert program.stdout is not None
        agents = Simulated(program.stdin, program.stdout)
        agents.read()
        yield agents
    finally:
        program.kill()
        program.wait()
