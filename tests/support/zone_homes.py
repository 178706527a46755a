"""A tree of three zones with agents, and on which host of which zone a server is.

The root has the child a, and a has the child c. The hosts of each zone are in an availability zone
of their own, and each host has room for four servers of the flavor. Names of hosts are the same in
all zones, so a host is named with its zone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from tests.support.zone_hosts import wanted
from tests.support.zone_processes import USER, RunningZone, ZoneTree, wait_for, zone_tree

HOSTS: Mapping[str, int] = {"root": 1, "a": 2, "c": 2}
"""How many hosts each zone has."""
EVERYWHERE = sum(HOSTS.values())
ROOM = 4
QUARTER: Mapping[str, Any] = {"id": "4", "name": "quarter", "vcpus": 8, "ram": 30_000, "disk": 10}
Home = tuple[str, str]
"""A zone and a host."""


@contextmanager
def three_zones(folder: Path) -> Iterator[ZoneTree]:
    """Run the zones until the block ends."""
    with zone_tree(folder) as made:
        for name, hosts in HOSTS.items():
            zone = made.start(name, hosts)
            place = {"name": name, "availability_zone": az(name)}
            added = zone.call("POST", "/os-aggregates", {"aggregate": place})
            assert added.is_success, added.text
            path = f"/os-aggregates/{added.json()['aggregate']['id']}/action"
            for host in host_names(name):
                assert zone.call("POST", path, {"add_host": {"host": host}}).is_success
        made.link("a", "c")
        made.link("root", "a")
        assert made["root"].call("POST", "/flavors", {"flavor": QUARTER}).is_success
        yield made


def empty(tree: ZoneTree) -> None:
    """Delete all servers of the tree, as users do."""
    root = tree["root"]
    for uuid in root.server_ids():
        root.call("DELETE", f"/servers/{uuid}")
        wait_for("the server is gone", partial(is_gone, root, uuid))
    assert homes(tree) == {}


def is_gone(zone: RunningZone, uuid: str) -> bool:
    """Whether a zone and the zones below it have no such server."""
    return zone.call("GET", f"/servers/{uuid}").status_code == httpx.codes.NOT_FOUND


def host_names(zone: str) -> list[str]:
    """Return the names of the hosts of a zone."""
    return [f"host-{number}" for number in range(1, HOSTS[zone] + 1)]


def az(zone: str) -> str:
    """Return the availability zone of a zone's hosts."""
    return f"in-{zone}"


def homes(tree: ZoneTree) -> dict[str, Home]:
    """Return the zone and the host of each server in the tree."""
    return {
        each["id"]: (name, host)
        for name in HOSTS
        for host in host_names(name)
        for each in tree[name].get(f"/servers/detail?all_tenants=1&host={host}")["servers"]
    }


def boot(
    zone: RunningZone, count: int = 1, hints: Mapping[str, Any] | None = None, **more: Any
) -> httpx.Response:
    """Ask for servers with hints."""
    token, least = more.pop("token", USER), more.pop("least", count)
    fields = {
        "flavorRef": QUARTER["id"],
        "min_count": least,
        "max_count": count,
        "return_reservation_id": True,
        **more,
    }
    return zone.call("POST", "/servers", body(hints, **fields), token=token)


def body(hints: Mapping[str, Any] | None, **fields: Any) -> dict[str, Any]:
    """Return the body of a boot, a plan or an explanation."""
    return {
        "server": wanted(**{"flavorRef": QUARTER["id"], **fields}),
        "os:scheduler_hints": dict(hints or {}),
    }


def booted(
    zone: RunningZone, count: int = 1, hints: Mapping[str, Any] | None = None, **more: Any
) -> list[str]:
    """Boot servers. Return the ids of those that did not fail."""
    answer = boot(zone, count, hints, **more)
    assert answer.status_code == httpx.codes.ACCEPTED, answer.text
    path = f"/servers/detail?reservation_id={answer.json()['reservation_id']}"
    found = zone.get(path, more.get("token", USER))["servers"]
    return [each["id"] for each in found if each["status"] != "ERROR"]


def one(zone: RunningZone, hints: Mapping[str, Any] | None = None, **more: Any) -> str:
    """Boot one server. Return its id."""
    (uuid,) = booted(zone, 1, hints, **more)
    return uuid


def status(zone: RunningZone, uuid: str) -> str:
    """Return the status of a server, as its user sees it."""
    return str(zone.get(f"/servers/{uuid}", USER)["server"]["status"])


def wait_until(zone: RunningZone, uuid: str, wanted_status: str) -> None:
    """Wait until a server has a status."""
    wait_for(f"{uuid} is {wanted_status}", lambda: status(zone, uuid) == wanted_status)
