"""Hosts that tests report to a zone of a tree, as an agent would, and plans for them.

No agent builds on these hosts, so their servers stay in ``BUILD``. The weight of a host on the wire
is its capability ``cost``, which tests choose.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx

from tests.support.zone_processes import FLAVOR, USER, RunningZone

SELECT = "/zones/select"
COSTLY = {
    "default_host_weighers": "CapabilityWeigher",
    "capability_multipliers": '{"cost": -1.0}',
    "capabilities_max_age_s": "3600",
    "service_down_time_s": "3600",
}
"""Settings with which the weight of a host is its cost, and hosts stay up without an agent."""
PLENTY = 1_000_000


def report(zone: RunningZone, hosts: Mapping[str, tuple[int, float]]) -> list[str]:
    """Report hosts to a zone. Return the ids of their providers.

    ``hosts`` maps each name to the number of servers that fit, by memory, and the host's cost.
    """
    made = zone.call("POST", "/os-agents", {"agent": {"name": "rack", "driver": "fake"}})
    assert made.is_success, made.text
    rows = [
        {
            "name": name,
            "inventories": {
                "VCPU": {"total": PLENTY},
                "MEMORY_MB": {"total": FLAVOR["ram"] * places},
                "DISK_GB": {"total": PLENTY},
            },
            "capabilities": {"cost": cost},
        }
        for name, (places, cost) in hosts.items()
    ]
    path = f"/os-agents/{made.json()['agent']['id']}/hosts"
    told = zone.call("PUT", path, {"hosts": rows})
    assert told.is_success, told.text
    return [each["provider_uuid"] for each in told.json()["hosts"]]


def select(
    zone: RunningZone, count: int = 1, *, token: str = USER, **server: Any
) -> httpx.Response:
    """Ask for a plan for servers."""
    return zone.call("POST", SELECT, {"server": wanted(max_count=count, **server)}, token=token)


def offers(zone: RunningZone, count: int = 1, **more: Any) -> list[dict[str, Any]]:
    """Return the weights and entries of a plan that must succeed."""
    answer = select(zone, count, **more)
    assert answer.status_code == httpx.codes.OK, answer.text
    found: list[dict[str, Any]] = answer.json()["weights"]
    return found


def weights(zone: RunningZone, count: int = 1, **more: Any) -> list[float]:
    """Return the weights of a plan."""
    return [each["weight"] for each in offers(zone, count, **more)]


def wanted(**more: Any) -> dict[str, Any]:
    """Return the fields of a server."""
    return {"name": "some", "flavorRef": FLAVOR["id"], "imageRef": "", "networks": "none", **more}


def bring(zone: RunningZone, entry: str, *, token: str = USER, **server: Any) -> httpx.Response:
    """Boot the server of an entry."""
    return zone.call("POST", "/servers", {"server": wanted(blob=entry, **server)}, token=token)


def requests_in(zone: RunningZone, method: str, path: str) -> int:
    """Return how many requests of this form the zone's log has so far."""
    lines = zone.service.log.read_text().splitlines()
    return sum(
        f"method={method} " in each and each.rstrip().find(f"path={path} ") >= 0 for each in lines
    )
