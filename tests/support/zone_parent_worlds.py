"""A zone with two hosts, for tests that stand for its parents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx

from innkeeper.wiring import now
from tests.support.running import Running, running
from tests.support.zone_parents import COMPUTE, FLAVOR, NEWEST, Parent, Send, parent_of

KEY = "c286696d887c9aa0611bbb3e2025a45b"
HOSTS = ("rack-17-blue", "rack-17-red")
SETTINGS: dict[str, Any] = {
    "zone_name": "kid",
    "allow_admin_api": True,
    "enable_zone_routing": True,
    "build_plan_encryption_key": [KEY],
    "zone_poll_interval_s": 3600,
    "service_down_time_s": 86_400,
    "quota_instances": -1,
    "quota_cores": -1,
    "quota_ram": -1,
}


@dataclass(slots=True)
class Clock:
    """The clock of the zone. A test may move it."""

    moved: timedelta = field(default_factory=timedelta)

    def __call__(self) -> datetime:
        return now() + self.moved


@dataclass(slots=True)
class World:
    """A zone with two hosts, and two parents of it."""

    kid: Running
    clock: Clock
    up: Parent
    other: Parent

    def parent(self, **fields: Any) -> Parent:
        """Make a zone parent for one test."""
        return parent_of(self.kid.call, f"p{uuid4().hex}", **fields)

    def seen(self, uuid: str) -> bool:
        """Whether the zone itself has a server."""
        return bool(self.kid.call("GET", f"{COMPUTE}/servers/{uuid}").status_code == httpx.codes.OK)

    def shown(self, uuid: str) -> Any:
        """Return a server as the zone's administrator sees it."""
        headers = {"openstack-api-version": NEWEST}
        answer = self.kid.call("GET", f"{COMPUTE}/servers/{uuid}", headers=headers)
        assert answer.status_code == httpx.codes.OK, answer.text
        return answer.json()["server"]


def furnish(send: Send, hosts: Sequence[str] = HOSTS, memory_mb: int = 65_536) -> None:
    """Report hosts, and add a flavor."""
    body: dict[str, Any] = {"agent": {"name": "rack", "driver": "fake"}}
    agent = send("POST", f"{COMPUTE}/os-agents", "admin", json=body).json()["agent"]["id"]
    totals = {"VCPU": {"total": 640}, "MEMORY_MB": {"total": memory_mb}, "DISK_GB": {"total": 999}}
    body = {"hosts": [{"name": name, "inventories": totals} for name in hosts]}
    assert send("PUT", f"{COMPUTE}/os-agents/{agent}/hosts", "admin", json=body).is_success
    made = send("POST", f"{COMPUTE}/flavors", "admin", json={"flavor": FLAVOR})
    assert made.is_success, made.text


@contextmanager
def world_in(folder: Path) -> Iterator[World]:
    """Run the zone until the block ends."""
    clock = Clock()
    with running(folder, clock=clock, **SETTINGS) as kid:
        furnish(kid.call)
        yield World(kid, clock, parent_of(kid.call, "up"), parent_of(kid.call, "other"))


def built(parent: Parent, count: int = 1, **claims: Any) -> list[str]:
    """Let the child build servers. Return their ids."""
    ids = [str(uuid4()) for _ in range(count)]
    sealed = [each["blob"] for each in parent.offers(count, **claims)]
    answer = parent.build(sealed, ids, **claims)
    assert answer.status_code == httpx.codes.ACCEPTED, answer.text
    assert answer.json()["zone"]["outcomes"] == dict.fromkeys(ids, "built")
    return ids


def act(parent: Parent, uuid: str, name: str, value: Any = None, **claims: Any) -> httpx.Response:
    """Ask for an action on a server."""
    return parent.ask("POST", f"/servers/{uuid}/action", {name: value}, **claims)
