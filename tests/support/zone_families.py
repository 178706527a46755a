"""A zone with children that a test plays, and with a host of its own if the test adds one."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx

from innkeeper.wiring import DATABASE_FILE
from tests.support.hostile_zones import (
    BLOB,
    EAST,
    HostileZone,
    Raw,
    SeenRequest,
    hostile_zone,
    http,
)
from tests.support.running import Running, running
from tests.support.zone_parents import Parent

USER = "ann:lab"
NEWEST = {"openstack-api-version": "compute 2.100"}
ROOM = 4
"""How many servers fit in the zone itself, if it has a host."""
SETTINGS: dict[str, Any] = {
    **EAST,
    "zone_poll_interval_s": 3600,
    "zone_select_timeout_s": 5,
    "zone_request_timeout_s": 5,
}


@dataclass(frozen=True, slots=True)
class Family:
    """A zone, and its children by name."""

    zone: Running
    folder: Path
    kids: dict[str, HostileZone]

    def ask(self, method: str, path: str, token: str = "admin", **more: Any) -> httpx.Response:
        """Call the zone's Compute API."""
        path = f"/compute/v2.1{path}"
        answer: httpx.Response = self.zone.call(method, path, token, headers=NEWEST, **more)
        assert answer.status_code != httpx.codes.INTERNAL_SERVER_ERROR, answer.text
        return answer

    def add_host(self) -> None:
        """Give the zone a host of its own."""
        agent = {"agent": {"name": "rack", "driver": "fake"}}
        uuid = self.ask("POST", "/os-agents", json=agent).json()["agent"]["id"]
        totals = {"VCPU": {"total": ROOM}, "MEMORY_MB": {"total": 9999}, "DISK_GB": {"total": 99}}
        hosts = {"hosts": [{"name": "h1", "host_ip": "192.0.2.7", "inventories": totals}]}
        assert self.ask("PUT", f"/os-agents/{uuid}/hosts", json=hosts).is_success

    def link(self, name: str, number: int = 1) -> None:
        """Add a child zone."""
        kid = self.kids[name]
        kid.info = {**kid.info, "id": str(UUID(int=number))}
        fields = {"name": name, "api_url": kid.api_url, "username": "up", "password": name}
        assert self.ask("POST", "/zones", json={"zone": fields}).is_success

    def remove(self, name: str) -> None:
        """Remove a child zone, as another process of the zone does."""
        with closing(sqlite3.connect(self.folder / DATABASE_FILE)) as database:
            database.execute("DELETE FROM child_zones WHERE name = ?", (name,))
            database.commit()

    def remove_in_plans(self, name: str) -> None:
        """Remove a child zone while it makes its offers."""
        self.kids[name].begin = lambda asked: (
            self.remove(name) if asked.path == "/zones/select" else None
        )

    def remove_just_now(self, name: str) -> None:
        """Remove a child zone that this process has looked up a moment ago."""
        self.ask("POST", "/servers", USER, json=body(flavorRef="unknown"))
        self.remove(name)

    def boot(self, count: int = 1, **more: Any) -> httpx.Response:
        """Boot servers."""
        return self.ask("POST", "/servers", USER, json=body(count, **more))

    def statuses(self) -> list[str]:
        """Return the status of each of the user's servers."""
        shown = self.ask("GET", "/servers/detail", USER).json()["servers"]
        return sorted(each["status"] for each in shown)

    def created(self, name: str) -> int:
        """Return how many requests to build servers a child got."""
        asked = self.kids[name].asked
        return sum((each.method, each.path) == ("POST", "/servers") for each in asked)

    def used(self) -> int:
        """Return how many servers count in the quota of the user's project."""
        limits = self.ask("GET", "/limits", USER).json()["limits"]["absolute"]
        return int(limits["totalInstancesUsed"])


def body(count: int = 1, **more: Any) -> dict[str, Any]:
    """Return the body of a boot."""
    server = {"name": "web", "flavorRef": "v1", "networks": "none", "imageRef": ""}
    return {"server": {**server, "min_count": count, "max_count": count, **more}}


@contextmanager
def family_in(folder: Path, **settings: Any) -> Iterator[Family]:
    """Run the zone and its children until the block ends. They are not linked yet."""
    with ExitStack() as stack:
        kids = {name: stack.enter_context(hostile_zone()) for name in ("odd", "even")}
        zone = stack.enter_context(running(folder, **{**SETTINGS, **settings}))
        made = Family(zone, folder, kids)
        flavor = {"name": "v1", "id": "v1", "ram": 64, "vcpus": 1, "disk": 1}
        assert made.ask("POST", "/flavors", json={"flavor": flavor}).is_success
        yield made


def entries_of(parent: Parent, ids: list[str]) -> list[dict[str, Any]]:
    """Return the entries of a plan, with the ids of servers."""
    sealed = [each["blob"] for each in parent.offers(len(ids))]
    return [
        {"id": uuid, "blob": blob, "name": "s", "launch_index": place}
        for place, (uuid, blob) in enumerate(zip(ids, sealed, strict=True))
    ]


def select(asked: SeenRequest, weight: float, count: int | None = None) -> Raw | None:
    """Return a child's offers with this weight; ``None`` for other requests."""
    if asked.path != "/zones/select":
        return None
    wanted_ = asked.body["server"]["max_count"] if count is None else count
    offers = [{"weight": weight, "blob": BLOB, "item": uuid4().hex} for _ in range(wanted_)]
    return http({"weights": offers})
