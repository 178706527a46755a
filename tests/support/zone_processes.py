"""Runs several zones, each as a process with its own database, and links them to a tree.

The zones have no users: the token ``admin`` is an administrator, and ``a:b`` is the user ``a`` in
the project ``b``. Each zone has its hosts in its own process.
"""

from __future__ import annotations

import json
import secrets
import signal
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.support import forked, service_processes
from tests.support.service_processes import STOP_WITHIN_S, UNLIMITED, Started

COMPUTE = "/compute/v2.1"
HOSTS = "/os-hypervisors"
FLAVOR: Mapping[str, Any] = {"id": "1", "name": "eight", "vcpus": 8, "ram": 8192, "disk": 10}
"""A few of these servers fill a host."""
USER = "demo:demo"
KEY_BYTES = 32
LOOK_AGAIN_S = 0.1
SOON_S = 60.0
FAST = {"zone_poll_interval_s": "0.5", "zone_failures_to_offline": "2"}
"""Settings with which a tree notices soon that a zone is gone, or back."""


@dataclass(slots=True)
class RunningZone:
    """One zone: its present or last process, and the settings with which it starts."""

    name: str
    folder: Path
    settings: dict[str, str]
    options: tuple[str, ...]
    port: int
    service: Started

    @property
    def environment(self) -> dict[str, str]:
        """The environment for other commands with the zone's settings."""
        return service_processes.environment(self.settings)

    @property
    def address(self) -> str:
        """The address without the path of an API."""
        return f"http://127.0.0.1:{self.port}"

    def call(
        self, method: str, path: str, body: Any = None, *, token: str = "admin", **more: Any
    ) -> httpx.Response:
        """Send a request to the zone's Compute API."""
        given = {} if body is None else {"json": body}
        path = COMPUTE + path
        answer: httpx.Response = self.service.call(method, path, token, **given, **more)
        return answer

    def get(self, path: str, token: str = "admin") -> Any:
        """Return the body of a successful answer."""
        answer = self.call("GET", path, token=token)
        assert answer.status_code == httpx.codes.OK, answer.text
        return answer.json()

    def boot(
        self, count: int = 1, *, least: int | None = None, token: str = USER, **server: Any
    ) -> httpx.Response:
        """Ask for servers of one batch."""
        wanted = {
            "name": "some",
            "flavorRef": FLAVOR["id"],
            "imageRef": "",
            "networks": "none",
            "return_reservation_id": True,
            "min_count": count if least is None else least,
            "max_count": count,
            **server,
        }
        return self.call("POST", "/servers", {"server": wanted}, token=token)

    def server_ids(self, token: str = "admin") -> list[str]:
        """Return the ids of the servers that the zone lists for a user."""
        every = "?all_tenants=1" if token == "admin" else ""
        return [each["id"] for each in self.get(f"/servers{every}", token)["servers"]]

    def add_flavor(self) -> None:
        """Add the flavor of all servers. Only the zone where a boot comes in needs it."""
        answer = self.call("POST", "/flavors", {"flavor": FLAVOR})
        assert answer.status_code == httpx.codes.OK, answer.text

    def child(self, name: str) -> Any:
        """Return what this zone knows of a child zone."""
        found = self.get("/zones/detail")["zones"]
        return next(each for each in found if each["name"] == name)


@dataclass(slots=True)
class ZoneTree:
    """The zones of a test, by name."""

    folder: Path
    zones: dict[str, RunningZone] = field(default_factory=dict)

    def __getitem__(self, name: str) -> RunningZone:
        return self.zones[name]

    def start(
        self,
        name: str,
        hosts: int = 2,
        settings: Mapping[str, str] | None = None,
        options: tuple[str, ...] = (),
    ) -> RunningZone:
        """Start a new zone with this number of hosts. A setting replaces that of :data:`FAST`."""
        chosen = {
            "zone_name": name,
            "allow_admin_api": "true",
            "enable_zone_routing": "true",
            "build_plan_encryption_key": secrets.token_hex(KEY_BYTES),
            **UNLIMITED,
            **FAST,
            **(settings or {}),
        }
        words = ("--auth", "none", "--demo-hosts", str(hosts), *options)
        folder = self.folder / name
        service = service_processes.started(folder, chosen, *words)
        zone = RunningZone(name, folder, chosen, words, service.port, service)
        self.zones[name] = zone
        service_processes.wait_until_ready(service)
        wait_for("the hosts register", lambda: len(zone.get(HOSTS)["hypervisors"]) == hosts)
        return zone

    def link(self, parent: str, child: str, **more: Any) -> str:
        """Make a zone the child of another one. Return the id of the child zone.

        ``more`` replaces fields of the child zone.
        """
        wanted = {"zone_parent": {"name": f"up-{parent}"}}
        made = self[child].call("POST", "/zones/parents", wanted)
        assert made.status_code == httpx.codes.CREATED, made.text
        wanted = {
            "zone": {
                "name": child,
                "api_url": self[child].address + COMPUTE,
                "username": f"up-{parent}",
                "password": made.json()["zone_parent"]["password"],
                **more,
            }
        }
        added = self[parent].call("POST", "/zones", wanted)
        assert added.status_code == httpx.codes.OK, added.text
        return str(added.json()["zone"]["id"])

    def stop(self, name: str) -> int:
        """Stop a zone as an operator does. Return its exit status."""
        return self[name].service.stop()

    def kill(self, name: str) -> None:
        """Kill a zone."""
        self[name].service.process.kill()
        self[name].service.process.wait(STOP_WITHIN_S)

    def freeze(self, name: str) -> None:
        """Let a zone accept connections, and answer nothing."""
        self[name].service.process.send_signal(signal.SIGSTOP)

    def thaw(self, name: str) -> None:
        """Let a frozen zone continue."""
        self[name].service.process.send_signal(signal.SIGCONT)

    def restart(self, name: str, settings: Mapping[str, str] | None = None) -> None:
        """Start a stopped or killed zone again, at the same address."""
        zone = self[name]
        zone.service.http.close()
        zone.settings |= settings or {}
        zone.service = service_processes.started(
            zone.folder, zone.settings, *zone.options, port=zone.port
        )
        service_processes.wait_until_ready(zone.service)


def broken(zone: RunningZone, *options: str) -> list[Any]:
    """Return what an audit of the zone's database finds; with ``--repair``, what it leaves."""
    words = ("audit", "--json", "--data-dir", str(zone.folder), *options)
    result = forked.run(*words, within_s=SOON_S, env=zone.environment)
    assert result.stdout, result.stderr
    left: list[Any] = json.loads(result.stdout)["left"]
    return left


@contextmanager
def zone_tree(folder: Path) -> Iterator[ZoneTree]:
    """Run the zones that a test starts, until the block ends."""
    tree = ZoneTree(folder)
    try:
        yield tree
    finally:
        for zone in tree.zones.values():
            service_processes.end(zone.service)


def wait_for(what: str, is_so: Callable[[], bool], within_s: float = SOON_S) -> None:
    """Wait until something is so, and fail otherwise."""
    deadline_s = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < deadline_s, what
        time.sleep(LOOK_AGAIN_S)


def wait_until_none(
    what: str, left: Callable[[], Collection[object]], within_s: float = SOON_S
) -> None:
    """Wait until nothing is left. Otherwise fail, and show what is left."""
    deadline_s = time.monotonic() + within_s
    while rest := left():
        lines = "\n".join(map(str, rest))
        assert time.monotonic() < deadline_s, f"{what}:\n{lines}"
        time.sleep(LOOK_AGAIN_S)
