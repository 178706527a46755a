"""Boots over a tree of real zones with agents.

The root has the children a and b, and a has the child c. Each zone has one host with room for four
servers, in an availability zone of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import httpx
import pytest

from tests.support.zone_hosts import requests_in, wanted
from tests.support.zone_processes import USER, RunningZone, ZoneTree, wait_for, zone_tree

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ZONES = ("root", "a", "b", "c")
ROOM = 4
"""How many servers fit in each zone."""
QUARTER = {"id": "4", "name": "quarter", "vcpus": 8, "ram": 30_000, "disk": 10}
"""The flavor of all servers: a quarter of a host."""
EVERYWHERE = ROOM * len(ZONES)
OTHER = "other:other"
KEY_PAIR = "mine"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZoneTree]:
    with zone_tree(tmp_path_factory.mktemp("tree")) as made:
        for name in ZONES:
            zone = made.start(name, 1, {"zone_poll_interval_s": "3600"})
            place = {"name": name, "availability_zone": f"in-{name}"}
            added = zone.call("POST", "/os-aggregates", {"aggregate": place})
            assert added.is_success, added.text
            path = f"/os-aggregates/{added.json()['aggregate']['id']}/action"
            assert zone.call("POST", path, {"add_host": {"host": "host-1"}}).is_success
        made.link("a", "c")
        made.link("root", "a")
        made.link("root", "b")
        assert made["root"].call("POST", "/flavors", {"flavor": QUARTER}).is_success
        yield made


@pytest.fixture
def tree(running: ZoneTree) -> Iterator[ZoneTree]:
    """The tree without servers."""
    yield running
    root = running["root"]
    for uuid in root.server_ids():
        root.call("DELETE", f"/servers/{uuid}")
        wait_for("the server is gone", partial(is_gone, root, uuid))
    assert not any(map(held, running.zones.values()))
    assert root.server_ids() == []


def is_gone(zone: RunningZone, uuid: str) -> bool:
    """Whether no zone has a server."""
    return zone.call("GET", f"/servers/{uuid}").status_code == httpx.codes.NOT_FOUND


def held(zone: RunningZone) -> list[str]:
    """Return the ids of the servers on the hosts of a zone itself, of all projects."""
    found = zone.get("/servers/detail?all_tenants=1&host=host-1")["servers"]
    return [each["id"] for each in found]


def listed(zone: RunningZone, query: str = "", token: str = USER) -> list[dict[str, Any]]:
    """Return the servers that a user sees."""
    found: list[dict[str, Any]] = zone.get(f"/servers/detail{query}", token)["servers"]
    return found


def in_zone(name: str) -> str:
    """Return the availability zone of the hosts of a zone."""
    return f"in-{name}"


def boot(zone: RunningZone, count: int, **more: Any) -> httpx.Response:
    """Ask for servers of one batch."""
    return zone.boot(count, flavorRef=QUARTER["id"], **more)


def booted(zone: RunningZone, **fields: Any) -> str:
    """Boot one server. Return its id."""
    answer = zone.call(
        "POST", "/servers", {"server": wanted(flavorRef=QUARTER["id"], **fields)}, token=USER
    )
    assert answer.status_code == httpx.codes.ACCEPTED, answer.text
    return str(answer.json()["server"]["id"])


def status(zone: RunningZone, uuid: str) -> str:
    """Return the status of a server, as its user sees it."""
    return str(zone.get(f"/servers/{uuid}", USER)["server"]["status"])


def has_status(zone: RunningZone, uuid: str, wanted: str) -> bool:
    return status(zone, uuid) == wanted


def act(zone: RunningZone, uuid: str, name: str, token: str = USER) -> httpx.Response:
    """Let a server do something."""
    return zone.call("POST", f"/servers/{uuid}/action", {name: None}, token=token)


def used(zone: RunningZone, token: str = USER) -> int:
    """Return how many servers of the project count."""
    return int(zone.get("/limits", token)["limits"]["absolute"]["totalInstancesUsed"])


def parent_row(zone: RunningZone) -> str:
    """Return the id of the only zone parent of a zone."""
    (row,) = zone.get("/zones/parents")["zone_parents"]
    return str(row["id"])


def test_case_7_nothing_is_built_with_hosts_for_too_few(tree: ZoneTree) -> None:
    root = tree["root"]
    answer = boot(root, EVERYWHERE + 4)
    assert answer.status_code == httpx.codes.ACCEPTED, answer.text
    assert {each["status"] for each in listed(root)} == {"ERROR"}
    assert not any(map(held, tree.zones.values()))


def test_case_7_as_many_as_fit_are_built_with_one_reservation_id(tree: ZoneTree) -> None:
    root = tree["root"]
    answer = boot(root, EVERYWHERE + 4, least=EVERYWHERE // 2)
    reservation = answer.json()["reservation_id"]
    found = listed(root, f"?reservation_id={reservation}")
    assert len({each["id"] for each in found}) == len(listed(root)) == EVERYWHERE
    assert {len(held(each)) for each in tree.zones.values()} == {ROOM}
    assert len({each["name"] for each in found}) == EVERYWHERE
    wait_for("all are active", lambda: {e["status"] for e in listed(root)} == {"ACTIVE"})


def test_case_9_a_list_by_reservation_id_is_for_the_project_at_the_root(tree: ZoneTree) -> None:
    root = tree["root"]
    reservation = boot(root, EVERYWHERE).json()["reservation_id"]
    query = f"?reservation_id={reservation}"
    assert len(listed(root, query)) == EVERYWHERE
    assert listed(root, query, OTHER) == []
    assert {each["tenant_id"] for each in listed(root)} == {"demo"}
    for name in ("a", "b", "c"):
        # The child has a project of its own with the same id.
        assert listed(tree[name]) == listed(tree[name], query) == []
    uuid = held(tree["c"])[0]
    assert root.call("GET", f"/servers/{uuid}", token=OTHER).status_code == httpx.codes.NOT_FOUND
    for name in ("a", "b", "c"):
        answer = tree[name].call("GET", f"/servers/{uuid}", token=USER)
        assert answer.status_code == httpx.codes.NOT_FOUND


def test_case_8_quotas_count_once_at_the_root_and_limit_the_batch(tree: ZoneTree) -> None:
    root = tree["root"]
    body = {"quota_set": {"instances": 6, "cores": -1, "ram": -1}}
    assert root.call("PUT", "/os-quota-sets/few", body).is_success
    token = "few:few"
    refused = boot(root, 8, least=7, token=token)
    assert refused.status_code == httpx.codes.FORBIDDEN, refused.text
    assert boot(root, 8, least=2, token=token).status_code == httpx.codes.ACCEPTED
    assert len(listed(root, token=token)) == used(root, token) == 6
    assert boot(root, 1, token=token).status_code == httpx.codes.FORBIDDEN
    assert [used(tree[name], token) for name in ("a", "b", "c")] == [0, 0, 0]
    assert boot(root, 2, least=3, token=token).status_code == httpx.codes.BAD_REQUEST


def test_case_8_a_zone_parent_gets_no_more_than_its_limits(tree: ZoneTree) -> None:
    root, b = tree["root"], tree["b"]
    path = f"/zones/parents/{parent_row(b)}"
    assert b.call("PUT", path, {"zone_parent": {"instances": 1}}).is_success
    answer = boot(root, EVERYWHERE, least=1)
    assert answer.status_code == httpx.codes.ACCEPTED
    assert [len(held(tree[name])) for name in ZONES] == [ROOM, ROOM, 1, ROOM]
    assert len(listed(root)) == used(root) == EVERYWHERE - 3
    assert b.call("PUT", path, {"zone_parent": {"instances": -1}}).is_success


def test_case_10_only_administrators_choose_a_reservation_id(tree: ZoneTree) -> None:
    root = tree["root"]
    chosen = "r-mine0000"
    ignored = boot(root, 1, reservation_id=chosen, availability_zone=in_zone("c"))
    assert ignored.json()["reservation_id"] != chosen
    fields = {"reservation_id": chosen, "availability_zone": in_zone("c")}
    kept = boot(root, 1, token="admin", **fields)
    assert kept.json()["reservation_id"] == chosen
    (found,) = listed(root, f"?all_tenants=1&reservation_id={chosen}", "admin")
    assert found["id"] in held(tree["c"])
    there = tree["c"].get(f"/servers/{found['id']}")["server"]
    assert there["OS-EXT-SRV-ATTR:reservation_id"] == chosen


def test_case_12_requests_for_a_server_go_to_the_one_zone_that_has_it(tree: ZoneTree) -> None:
    root = tree["root"]
    uuid = booted(root, availability_zone=in_zone("c"))
    assert held(tree["c"]) == [uuid]
    wait_for("the server is active", lambda: status(root, uuid) == "ACTIVE")
    steps = {"pause": "PAUSED", "unpause": "ACTIVE", "os-stop": "SHUTOFF", "os-start": "ACTIVE"}
    for name, then in steps.items():
        assert act(root, uuid, name, OTHER).status_code == httpx.codes.NOT_FOUND
        answer = act(root, uuid, name)
        assert answer.status_code == httpx.codes.ACCEPTED, answer.text
        wait_for(f"{name} is done", partial(has_status, root, uuid, then))
    for name in ("a", "c"):
        assert requests_in(tree[name], "POST", f"/compute/v2.1/servers/{uuid}/action") == 4
    assert uuid not in tree["b"].service.log.read_text()
    unknown = uuid[:-4] + "0000"
    assert root.call("GET", f"/servers/{unknown}", token=USER).status_code == 404
    assert unknown not in tree["a"].service.log.read_text()
    assert root.call("DELETE", f"/servers/{uuid}", token=USER).status_code == 204
    wait_for("it is gone", lambda: is_gone(root, uuid))


@pytest.mark.parametrize("version", ["2.1", "2.46", "2.74", "2.100"])
def test_case_9_a_list_shows_servers_of_all_zones_alike_at_each_version(
    tree: ZoneTree, version: str
) -> None:
    root = tree["root"]
    ids = {name: booted(root, availability_zone=in_zone(name)) for name in ("root", "b", "c")}
    for uuid in ids.values():
        wait_for("the server is active", partial(has_status, root, uuid, "ACTIVE"))
    headers = {"openstack-api-version": f"compute {version}"}
    for path in ("/servers/detail", "/servers"):
        answer = root.call("GET", path, token=USER, headers=headers)
        assert answer.status_code == httpx.codes.OK, answer.text
        found = answer.json()["servers"]
        rows = {each["id"]: each for each in found}
        own = rows[ids["root"]]
        for name in ("b", "c"):
            row = rows[ids[name]]
            assert row.keys() == own.keys()
            for key in ("links", "flavor", "tenant_id", "user_id", "status"):
                shown, there = (json.dumps(each.get(key)) for each in (row, own))
                assert shown.replace(ids[name], ids["root"]) == there
    alone = {
        name: root.call("GET", f"/servers/{uuid}", token=USER, headers=headers).json()["server"]
        for name, uuid in ids.items()
    }
    assert alone["root"].keys() == alone["b"].keys() == alone["c"].keys()
    assert alone["root"]["flavor"] == alone["b"]["flavor"] == alone["c"]["flavor"]


def test_case_20_the_full_body_reaches_the_grandchild(tree: ZoneTree) -> None:
    root = tree["root"]
    made = root.call(
        "POST",
        "/os-keypairs",
        {"keypair": {"name": KEY_PAIR, "public_key": PUBLIC_KEY}},
        token=USER,
    )
    assert made.is_success, made.text
    body = {
        "server": wanted(
            flavorRef=QUARTER["id"],
            name="whole",
            availability_zone=in_zone("c"),
            key_name=KEY_PAIR,
            metadata={"role": "web"},
            tags=["green", "red"],
            user_data="aGVsbG8=",
            description="a front door",
            config_drive=True,
            accessIPv4="192.0.2.7",
            hostname="front",
        ),
        "os:scheduler_hints": {"rack": "7"},
    }
    answer = root.call("POST", "/servers", body, token=USER)
    assert answer.status_code == httpx.codes.ACCEPTED, answer.text
    uuid = answer.json()["server"]["id"]
    assert held(tree["c"]) == [uuid]
    seen = root.get(f"/servers/{uuid}", USER)["server"]
    there = tree["c"].get(f"/servers/{uuid}")["server"]
    expected = {
        "name": "whole",
        "key_name": KEY_PAIR,
        "metadata": {"role": "web"},
        "tags": ["green", "red"],
        "description": "a front door",
        "config_drive": "True",
        "accessIPv4": "192.0.2.7",
        "OS-EXT-AZ:availability_zone": in_zone("c"),
    }
    for server in (seen, there):
        assert {name: server[name] for name in expected} == expected
        assert server["flavor"]["original_name"] == QUARTER["name"]
        assert server["scheduler_hints"] == {"rack": "7"}
    assert there["OS-EXT-SRV-ATTR:user_data"] == "aGVsbG8="
    assert there["OS-EXT-SRV-ATTR:hostname"] == "front"
    assert (seen["tenant_id"], seen["user_id"]) == ("demo", "demo")
    assert there["tenant_id"] == "up-a:up-root:demo"


def test_case_21_parallel_boots_fill_the_tree_exactly(tree: ZoneTree) -> None:
    root = tree["root"]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: boot(root, 1), range(EVERYWHERE + 4)))
    assert {each.status_code for each in answers} == {httpx.codes.ACCEPTED}
    assert {len(held(each)) for each in tree.zones.values()} == {ROOM}
    found = [each["status"] for each in listed(root)]
    assert len(found) - found.count("ERROR") == EVERYWHERE
    assert found.count("ERROR") == 4


PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOo6/77apAV0iD/wg+PQlbwUpUdGCEtdwtIPZlZRjpyk a@b"
