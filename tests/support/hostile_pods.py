"""A pod that answers as a test wants, on the server of hostile zones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from innkeeper.clients.pod_logins import PodLogin
from tests.support.hostile_zones import HostileZone, Raw, SeenRequest, hostile_zone, http
from tests.support.pod_processes import PODS
from tests.support.running import Running

GATEWAY: dict[str, Any] = {
    "role": "gateway",
    "region_name": "Top",
    "apis": ["identity", "compute", "image", "volume", "pods"],
}
"""The settings of a door in the process of a test."""

EXPIRES = "2099-01-01T00:00:00.000000Z"
STATISTICS = {
    "count": 2,
    "vcpus": 16,
    "vcpus_used": 4,
    "memory_mb": 4096,
    "memory_mb_used": 1024,
    "local_gb": 100,
    "local_gb_used": 10,
    "running_vms": 3,
}
POOL = {"total_capacity_gb": 50.0, "free_capacity_gb": 20.0, "allocated_capacity_gb": 25.0}


@dataclass(slots=True)
class HostilePod:
    """A pod. ``answers`` overrides its answers by path, with bytes or a function of the request."""

    zone: HostileZone
    answers: dict[str, Raw | Callable[[SeenRequest], Raw]] = field(default_factory=dict)
    types: tuple[str, ...] = ("compute", "volumev3")
    logins: int = 0

    @property
    def url(self) -> str:
        """The address of all services."""
        return self.zone.api_url

    def login(self, **more: Any) -> PodLogin:
        """Return a login for the pod."""
        usual = {
            "uuid": "one",
            "name": "one",
            "auth_url": self.url,
            "username": "door",
            "password": "hush",
            "user_domain": "Default",
            "project_name": "door",
            "project_domain": "Default",
            "region_name": "",
        }
        return PodLogin(**{**usual, **more})

    def answer(self, asked: SeenRequest) -> Raw:
        """Answer a request."""
        wanted = self.answers.get(asked.path)
        if wanted is not None:
            return wanted(asked) if callable(wanted) else wanted
        if asked.path == "/auth/tokens":
            return self.token()
        return http(
            {
                "/os-hypervisors/statistics": {"hypervisor_statistics": STATISTICS},
                "/scheduler-stats/get_pools": {"pools": [{"name": "a", "capabilities": POOL}]},
                "/flavors": {"flavors": []},
            }.get(asked.path, {})
        )

    def token(self, **more: Any) -> Raw:
        """Return the answer to a login."""
        self.logins += 1
        endpoint = {"url": self.url, "interface": "public", "region": "one", "region_id": "one"}
        catalog = [{"type": each, "endpoints": [endpoint]} for each in self.types]
        token = {"expires_at": EXPIRES, "catalog": catalog, **more}
        return http({"token": token}, 201, f"x-subject-token: token-{self.logins}")


@contextmanager
def hostile_pod() -> Iterator[HostilePod]:
    """Serve a pod until the block ends."""
    with hostile_zone() as zone:
        pod = HostilePod(zone)
        zone.answers = pod.answer
        yield pod


def add_pod(door: Running, name: str, pod: HostilePod) -> None:
    """Let a door know a pod."""
    login = {"username": "door", "password": "any", "project_name": "door"}
    body = {"pod": {"pod_name": name, "az_name": "az1", "auth_url": pod.url, **login}}
    answer = door.call("POST", f"{PODS}/pods", json=body)
    assert answer.status_code == httpx.codes.CREATED, answer.text
