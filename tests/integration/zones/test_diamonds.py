"""A zone with two parents: the root has the children a and b, and both have the child c.

Only c has hosts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.zone_hosts import wanted
from tests.support.zone_processes import USER, RunningZone, ZoneTree, zone_tree

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]
HOSTS = 4


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZoneTree]:
    with zone_tree(tmp_path_factory.mktemp("diamond")) as made:
        for name, hosts in (("c", HOSTS), ("a", 0), ("b", 0), ("root", 0)):
            made.start(name, hosts)
        for parent, child in (("a", "c"), ("b", "c"), ("root", "a"), ("root", "b")):
            made.link(parent, child)
        made["root"].add_flavor()
        yield made


def boot(zone: RunningZone, hints: dict[str, Any]) -> str:
    """Boot one server. Return its id."""
    body = {"server": wanted(), "os:scheduler_hints": hints}
    answer = zone.call("POST", "/servers", body, token=USER)
    assert answer.status_code == httpx.codes.ACCEPTED, answer.text
    return str(answer.json()["server"]["id"])


def drained(tree: ZoneTree, name: str, *, is_so: bool) -> None:
    """Set whether the root uses a child for new servers."""
    root = tree["root"]
    path = f"/zones/{root.child(name)['id']}"
    assert root.call("PUT", path, {"zone": {"draining": is_so}}).is_success


def homes(tree: ZoneTree) -> dict[str, tuple[str, str]]:
    """Return the host of each server in c, and the zone parent that brought it."""
    found = tree["c"].get("/servers/detail?all_tenants=1")["servers"]
    host, owner = "OS-EXT-SRV-ATTR:host", "tenant_id"
    return {each["id"]: (each[host], each[owner].partition(":")[0]) for each in found}


def test_a_group_is_one_group_on_all_ways(tree: ZoneTree) -> None:
    root = tree["root"]
    body = {"server_group": {"name": "g", "policy": "anti-affinity"}}
    headers = {"openstack-api-version": "compute 2.71"}
    made = root.call("POST", "/os-server-groups", body, token=USER, headers=headers)
    hint = {"group": made.json()["server_group"]["id"]}
    ids = []
    for name in ("a", "b", "a", "b"):
        drained(tree, name, is_so=True)
        ids.append(boot(root, hint))
        drained(tree, name, is_so=False)
    found = homes(tree)
    assert {owner for _, owner in found.values()} == {"up-a", "up-b"}
    assert len({found[each][0] for each in ids}) == HOSTS
    full = boot(root, hint)
    assert root.get(f"/servers/{full}", USER)["server"]["status"] == "ERROR"


def test_servers_that_came_on_another_way_are_avoided_too(tree: ZoneTree) -> None:
    root = tree["root"]
    for uuid, (host, owner) in homes(tree).items():
        name = owner.removeprefix("up-")
        drained(tree, name, is_so=True)
        for _ in range(HOSTS):
            far = boot(root, {"different_host": uuid})
            assert homes(tree)[far][0] != host
        drained(tree, name, is_so=False)
        near = boot(root, {"same_host": uuid})
        assert homes(tree)[near] == (host, owner)
