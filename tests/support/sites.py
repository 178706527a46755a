"""Runs a service of one or several processes on any database, with simulated hosts.

Each request opens a new connection, so that any worker may answer. If the processes have their own
addresses, requests go to them in turn. A process can be killed, with all its children, and started
again.
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from innkeeper.store.backends import catalogue
from innkeeper.store.transactions import Store
from tests.support import forked
from tests.support.dedicated import broken
from tests.support.servers.processes import families, send
from tests.support.service_processes import (
    UNLIMITED,
    VERSIONS,
    Started,
    end,
    started,
    wait_until_ready,
)
from tests.support.trust import NOBODY
from tests.support.worlds import World, world

WITHIN_S = 60.0
BUSY_S = 5.0
INVENTORIES = {
    "VCPU": {"total": 8, "allocation_ratio": 1.0},
    "MEMORY_MB": {"total": 65536},
    "DISK_GB": {"total": 1000},
}
FLAVOR = {"id": "v1", "name": "v1", "ram": 64, "vcpus": 1, "disk": 1}


class Kind(NamedTuple):
    """How the service runs on one kind of database."""

    database: Callable[[Path], str]
    processes: int = 1
    options: tuple[str, ...] = ()


@dataclass(slots=True)
class Site:
    """A service without logins; the test acts as its agent."""

    folder: Path
    url: str
    kind: Kind
    settings: Mapping[str, str]
    services: list[Started] = field(default_factory=list)
    agent_id: str = ""
    turns: Iterator[int] = field(default_factory=itertools.count)

    def ask(
        self, method: str, path: str, token: str = "admin", *, at: int | None = None, **more: Any
    ) -> httpx.Response:
        """Send one request, to process ``at`` or to the next one in turn."""
        number = next(self.turns) if at is None else at
        service = self.services[number % len(self.services)]
        return httpx.request(
            method,
            service.http.base_url.join(path),
            headers={**VERSIONS, "x-auth-token": token},
            timeout=WITHIN_S,
            trust_env=False,
            verify=NOBODY,
            **more,
        )

    def must(self, method: str, path: str, token: str = "admin", **more: Any) -> Any:
        """Send a request like :meth:`ask`, which must succeed; returns the body."""
        answer = self.ask(method, path, token, **more)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    # -- processes -------------------------------------------------------------------------

    def start(self, number: int) -> None:
        """Start a process, again or for the first time, and wait until it is ready."""
        service = started(self.folder, self.settings, *self.kind.options)
        self.services[number:] = [service, *self.services[number + 1 :]]
        wait_until_ready(service)

    def kill(self, number: int) -> None:
        """Kill a process and its children, like a power failure."""
        service = self.services[number]
        send(families([service.process.pid]), signal.SIGKILL)
        service.process.wait(WITHIN_S)
        service.http.close()

    # -- hosts -----------------------------------------------------------------------------

    def prepare(self) -> None:
        """Register the agent, and make a flavor."""
        body = {"agent": {"name": "test", "driver": "fake"}}
        self.agent_id = self.must("POST", "/compute/v2.1/os-agents", json=body)["agent"]["id"]
        self.must("POST", "/compute/v2.1/flavors", json={"flavor": FLAVOR})

    def add_pool(self, flavor_id: str, count: int, units: int = 1) -> list[str]:
        """Create a host flavor with ``count`` free hosts; returns the machines' names."""
        names = [f"{flavor_id}-rack-{number}" for number in range(count)]
        reports = [{"name": e, "inventories": INVENTORIES, "traits": []} for e in names]
        self.must("PUT", f"/compute/v2.1/os-agents/{self.agent_id}/hosts", json={"hosts": reports})
        flavor = {"id": flavor_id, "units": units}
        self.must("POST", "/compute/v2.1/os-host-flavors", json={"host_flavor": flavor})
        listed = self.must("GET", "/compute/v2.1/os-services")["services"]
        services = {each["host"]: each["id"] for each in listed}
        for name in names:
            path = f"/compute/v2.1/os-services/{services[name]}"
            self.must("PUT", path, json={"status": "disabled"})
            path = f"/compute/v2.1/os-host-flavors/{flavor_id}/hosts"
            self.must("POST", path, json={"host": {"hostname": name}})
        return names

    def settle(self) -> None:
        """Have the agent report all its orders as done."""
        path = f"/compute/v2.1/os-agents/{self.agent_id}"
        while orders := self.must("POST", f"{path}/work", json={"wait_s": 0})["orders"]:
            results = [{"order_id": each["id"], "ok": True} for each in orders]
            self.must("POST", f"{path}/results", json={"results": results})

    # -- pclouds ---------------------------------------------------------------------------

    def pcloud(self, token: str) -> str:
        """Create a pcloud for a project; returns its id."""
        body = {"pcloud": {"name": "mine"}}
        made = self.must("POST", "/compute/v2.1/os-pclouds", token, json=body)
        return str(made["pcloud"]["id"])

    def allocate(
        self, token: str, uuid: str, name: str, flavor_id: str, **more: Any
    ) -> httpx.Response:
        """Request a free host for a pcloud."""
        at = more.pop("at", None)
        wanted = {"name": name, "host_flavor": flavor_id, **more}
        path = f"/compute/v2.1/os-pclouds/{uuid}/hosts"
        return self.ask("POST", path, token, at=at, json={"host": wanted})

    def switch(
        self, token: str, uuid: str, name: str, state: str, at: int | None = None
    ) -> httpx.Response:
        """Enable or disable a host."""
        path = f"/compute/v2.1/os-pclouds/{uuid}/hosts/{name}"
        return self.ask("PUT", path, token, at=at, json={"host": {"state": state}})

    def release(self, token: str, uuid: str, name: str, at: int | None = None) -> httpx.Response:
        """Release a host of a pcloud."""
        path = f"/compute/v2.1/os-pclouds/{uuid}/hosts/{name}"
        return self.ask("DELETE", path, token, at=at)

    def boot(self, token: str, uuid: str) -> httpx.Response:
        """Boot a server in a pcloud."""
        server = {"name": "a", "flavorRef": "v1", "networks": "none", "imageRef": ""}
        body = {"server": server, "os:scheduler_hints": {"pcloud": uuid}}
        return self.ask("POST", "/compute/v2.1/servers", token, json=body)

    # -- what is written -------------------------------------------------------------------

    def world(self) -> World:
        """Return all rows about dedicated hosts, after a check of their invariants."""
        backend = catalogue.of_url(self.url)
        store = Store(backend, backend.engines(self.url, readers_max=1, busy_timeout_s=BUSY_S))
        try:
            with store.read() as tx:
                seen = world(tx)
        finally:
            store.dispose()
        found = broken(seen)
        assert not found, found
        return seen

    def audit(self) -> subprocess.CompletedProcess[str]:
        """Run ``innkeeper audit`` on the database."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("OS_", "INNKEEPER_"))}
        words = ("audit", "--data-dir", str(self.folder))
        environment = {**kept, "INNKEEPER_DATABASE_URL": self.url}
        return forked.run(*words, within_s=WITHIN_S, env=environment)


@contextmanager
def site(folder: Path, kind: Kind, settings: Mapping[str, str]) -> Iterator[Site]:
    """Run a service on an empty database of this kind until the block ends."""
    url = kind.database(folder)
    shared = {"database_is_shared": "true"} if kind.processes > 1 else {}
    made = Site(
        folder,
        url,
        kind,
        {
            "auth": "none",
            "database_url": url,
            "service_down_time_s": "3600",
            **shared,
            **UNLIMITED,
            **settings,
        },
    )
    try:
        # The first process migrates the database.
        for number in range(kind.processes):
            made.start(number)
        made.prepare()
        yield made
    finally:
        for each in made.services:
            end(each)


def statuses(answers: Sequence[httpx.Response]) -> list[int]:
    """Return the statuses of the responses, in ascending order."""
    return sorted(each.status_code for each in answers)
