"""Several whole services on one database, an agent, and the providers that clients compete for.

Always true: a killed or paused process can be restarted at the same port;
:meth:`Fleet.close` stops all that is left.
"""

from __future__ import annotations

import re
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import httpx

from tests.simulation.many_writers.asking import FLAVOR, PER_SERVER, PROVIDERS
from tests.simulation.many_writers.doors import ADDRESS, Answer, Door
from tests.simulation.many_writers.history import UNIT
from tests.simulation.many_writers.writers import Places
from tests.simulation.programs import UNLIMITED, Program
from tests.support import forked
from tests.support.servers.ports import take_port
from tests.support.trust import NOBODY

PROCESSES = 3
PLAIN = 5
"""Providers that clients resize. These and the hosts are the eight contended providers."""
HOSTS = 3
HOST_CPUS = 8
"""Four servers share a processor."""
SIZE = 32
LARGE = 10_000
STARTS_WITHIN_S = 120.0
LOOK_AGAIN_S = 0.05
LOG_LINES = 12
LOG_WIDTH = 400
FORWARDED = re.compile(r'^innkeeper_forwarded_total{outcome="answered"} (\S+)$', re.MULTILINE)
SETTINGS = {
    **UNLIMITED,
    "INNKEEPER_BUSY_TIMEOUT_S": "5",
    # A second is enough: an agent repeats a report that fails.
    "INNKEEPER_WORK_POLL_S": "2",
}


class Fleet:
    """The services of one database."""

    def __init__(
        self,
        folder: Path,
        database_url: str,
        *,
        processes: int = PROCESSES,
        settings: Mapping[str, str] | None = None,
        program: str = "innkeeper.main",
        own_settings: Sequence[Mapping[str, str]] = (),
    ) -> None:
        """``own_settings`` are those of single services, in their order."""
        self.folder = folder
        self._database_url = database_url
        self.ports = [take_port() for _ in range(processes)]
        # All services have one key. Otherwise they could not forward writes to each other.
        key = {"INNKEEPER_ENCRYPTION_KEY_FILE": str(folder / "encryption.key")}
        more = {**SETTINGS, **key, **(settings or {})}
        self.services = [
            Program(
                [
                    *("serve", "--auth", "none", "--port", str(port)),
                    # A short name, because the path of a socket must not be long.
                    *("--data-dir", str(folder / str(port))),
                    *("--database-url", database_url),
                ],
                folder / f"service-{port}.log",
                {**more, **(own_settings[number] if own_settings else {})},
                module=program,
            )
            for number, port in enumerate(self.ports)
        ]
        self.agent: Program | None = None

    def start(self) -> None:
        """Migrate the database, then start all services; returns when each is ready."""
        found = run_command("db", "upgrade", "--database-url", self._database_url)
        assert found.returncode == 0, found.stdout + found.stderr
        for each in self.services:
            each.start()
        self.wait_ready()

    def wait_ready(self) -> None:
        """Wait until every process is ready."""
        for number in range(len(self.services)):
            self._wait_ready(number)

    def revive(self, number: int) -> None:
        """Restart a killed process; returns when it is ready."""
        self.services[number].start()
        self._wait_ready(number)

    def _wait_ready(self, number: int) -> None:
        program, port = self.services[number], self.ports[number]
        door = self.door(port)
        deadline = time.monotonic() + STARTS_WITHIN_S
        while not _is_ready(door):
            if time.monotonic() > deadline:
                raise AssertionError(f"waited in vain for {port}\n{self.log_ends()}")
            if program.process is not None and program.process.poll() is not None:
                # As a supervisor does: restart a service that has ended, perhaps because its
                # database was unavailable.
                program.start()
            time.sleep(LOOK_AGAIN_S)
        door.close()

    def door(self, *ports: int) -> Door:
        """A client connection to some or all of the processes."""
        return Door(ports or self.ports, Random(0))  # noqa: S311 - a choice, no secret

    def start_agent(
        self, hosts: int = HOSTS, cpus: int = HOST_CPUS, entrance: int = 0, disk_gb: int = 0
    ) -> None:
        """Start an agent with simulated hosts, connected to the process at one port."""
        port = entrance or self.ports[0]
        words = (
            f"agent --driver fake --name simulation --url http://{ADDRESS}:{port}/compute "
            f"--token admin --state-dir {self.folder / 'agent'} --hosts {hosts} "
            f"--vcpus {cpus} --memory-mb 1000000 --disk-gb {disk_gb}"
        )
        self.agent = Program(words.split(), self.folder / "agent.log")
        self.agent.start()

    def furnish(self) -> Places:
        """Create the flavor and the plain providers, and wait for the hosts."""
        door = self.door()
        flavor = {"id": FLAVOR, "name": FLAVOR, "vcpus": PER_SERVER["VCPU"], "disk": 0}
        flavor["ram"] = PER_SERVER["MEMORY_MB"]
        must(door.call("POST", "/compute/v2.1/flavors", {"flavor": flavor}))
        wait_until(lambda: len(_providers(door)) == HOSTS, "the agent's hosts")
        hosts = _providers(door)
        plain = [f"00000000-0000-4000-8000-0000000000a{n}" for n in range(PLAIN)]
        for each in plain:
            must(door.call("POST", PROVIDERS, {"name": each, "uuid": each}))
            has = {UNIT: {"total": SIZE}}
            body = {"resource_provider_generation": 0, "inventories": has}
            must(door.call("PUT", f"{PROVIDERS}/{each}/inventories", body))
        door.close()
        return Places([*plain, *hosts], plain)

    def settle(self) -> None:
        """Wait until no request of the clients is still being carried out.

        Each process carries out writes in the order of their arrival, so one more write ends after
        all others. Two are sent, because a write that met a conflict is queued again.
        """
        for port in self.ports:
            door = self.door(port)
            for _ in range(2):
                wait_until(partial(_has_written, door), f"a write by {port}")
            door.close()
        if self.agent is not None:
            # The service retries more and more rarely, and would keep waiting for a while.
            self.agent.kill()
            self.agent.start()

    def enlarge(self, places: Places) -> None:
        """Give each provider more capacity than its usage: an audit would report less."""
        door = self.door()
        for each in places.resized:
            path = f"{PROVIDERS}/{each}/inventories"
            seen = must(door.call("GET", path))["resource_provider_generation"]
            body = {"resource_provider_generation": seen, "total": LARGE}
            must(door.call("PUT", f"{path}/{UNIT}", body))
        door.close()

    def close(self) -> None:
        """Stop all."""
        if self.agent is not None:
            self.agent.kill()
        for each in self.services:
            proceed(each)
            each.kill()

    def log_ends(self) -> str:
        """The last lines of each program's log, without its routine messages."""
        ends: list[str] = []
        for log in sorted(self.folder.glob("*.log")):
            text = log.read_text(errors="replace").splitlines()
            wanted = [line for line in text if "level=info" not in line]
            ends += [f"--- {log.name}", *(line[:LOG_WIDTH] for line in wanted[-LOG_LINES:])]
        return "\n".join(ends)


def forwarded(fleet: Fleet) -> int:
    """How many writes the services have forwarded to the leader, and got answered."""
    found = 0
    for port in fleet.ports:
        told = httpx.get(f"http://{ADDRESS}:{port}/metrics", trust_env=False, verify=NOBODY).text
        found += sum(int(float(each)) for each in FORWARDED.findall(told))
    return found


def pause(program: Program) -> None:
    """Pause a process."""
    if program.process is not None:
        program.process.send_signal(signal.SIGSTOP)


def proceed(program: Program) -> None:
    """Resume it."""
    if program.process is not None:
        program.process.send_signal(signal.SIGCONT)


def must(answer: Answer) -> Any:
    """The body of an answer that must be a success."""
    assert 200 <= answer.status < 300, answer
    return answer.body


def _is_ready(door: Door) -> bool:
    return door.call("GET", "/readyz").status == 200


def _has_written(door: Door) -> bool:
    """Whether a release of a consumer that does not exist was carried out."""
    return door.call("DELETE", f"/placement/allocations/{uuid.uuid4()}").status == 404


def _providers(door: Door) -> list[str]:
    found = must(door.call("GET", PROVIDERS))["resource_providers"]
    return sorted(each["uuid"] for each in found)


def wait_until(is_so: Callable[[], bool], what: str, within_s: float = STARTS_WITHIN_S) -> None:
    """Poll until the condition is true; fail when it takes too long."""
    deadline = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(LOOK_AGAIN_S)


def audit(database_url: str) -> subprocess.CompletedProcess[str]:
    """Run ``innkeeper audit`` on the database."""
    return run_command("audit", "--database-url", database_url)


def run_command(*words: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the program to its end."""
    return forked.run(*words, within_s=STARTS_WITHIN_S)
