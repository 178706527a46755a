"""Lists of servers over a root and two children, whose pages are shorter than those of the root."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import httpx
import pytest

from innkeeper.engine.zones.listing import FEW
from tests.support.zone_processes import USER, RunningZone, ZoneTree, wait_for, zone_tree

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

SIZES = {"short": FEW + 4, "tiny": 2}
"""The ``page_size_max`` of each child."""
BOOTS = (("short", FEW), ("root", 1), ("tiny", FEW + 2), ("root", 1), ("short", FEW))
"""The zone and the number of servers of each boot."""
SMALL = {"id": "2", "name": "small", "vcpus": 1, "ram": 16, "disk": 0}
MANY = "ann:many"
EVER = "changes-since=2020-01-01T00:00:00Z"
SYSTEM = {"openstack-system-scope": "all"}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZoneTree]:
    with zone_tree(tmp_path_factory.mktemp("tree")) as made:
        made.start("root", 2)
        for name, size in SIZES.items():
            made.start(name, 2, {"page_size_max": str(size)})
            made.link("root", name)
        assert made["root"].call("POST", "/flavors", {"flavor": SMALL}).is_success
        yield made


def prefer(root: RunningZone, name: str) -> None:
    """Let a zone get the next servers."""
    for child in SIZES:
        offset = {"weight_offset": -1e9 if child == name else 1e9}
        path = f"/zones/{root.child(child)['id']}"
        assert root.call("PUT", path, {"zone": offset}).is_success


def booted(tree: ZoneTree, name: str, count: int, token: str = USER) -> list[str]:
    """Boot servers in a zone. Return their ids."""
    prefer(tree["root"], name)
    answer = tree["root"].boot(count, token=token, flavorRef=SMALL["id"])
    assert answer.status_code == httpx.codes.ACCEPTED, answer.text
    query = f"/servers?reservation_id={answer.json()['reservation_id']}&limit={FEW}"
    found = [each["id"] for page in pages(tree["root"], query, token) for each in page["servers"]]
    assert len(found) == count
    if name in SIZES:
        assert set(found) <= {each["id"] for each in every(tree[name])}
    return found


def every(zone: RunningZone) -> list[Any]:
    """Return all servers that the administrator of a zone sees."""
    found = pages(zone, "/servers?all_tenants=1", "admin")
    return [each for page in found for each in page["servers"]]


def pages(zone: RunningZone, path: str, token: str = USER) -> list[Any]:
    """Return all pages of a list."""
    found = [zone.get(path, token)]
    while "servers_links" in found[-1]:
        (link,) = found[-1]["servers_links"]
        found.append(zone.get(link["href"].partition("/v2.1")[2], token))
    return found


def deleted(tree: ZoneTree, name: str, uuid: str, token: str) -> None:
    """Delete a server of a child, and wait until the root has no record of it."""
    root = tree["root"]
    before = root.child(name)["servers"]
    assert root.call("DELETE", f"/servers/{uuid}", token=token).is_success
    wait_for("it is forgotten", lambda: root.child(name)["servers"] < before)


@pytest.fixture(scope="module")
def many(tree: ZoneTree) -> list[str]:
    """The ids of a project's servers, which are in all zones."""
    return [each for name, count in BOOTS for each in booted(tree, name, count, MANY)]


@pytest.mark.parametrize("query", ["", f"?limit={2 * FEW}", f"?limit={FEW + 4}", "?limit=7"])
def test_no_server_is_missing_however_short_the_pages_of_children_are(
    tree: ZoneTree, many: list[str], query: str
) -> None:
    for path in ("/servers", "/servers/detail"):
        found = pages(tree["root"], path + query, MANY)
        assert not any("is_partial" in page for page in found)
        ids = [each["id"] for page in found for each in page["servers"]]
        assert sorted(ids) == sorted(many)


def test_lists_of_changes_have_deleted_servers_of_children(tree: ZoneTree) -> None:
    root, token = tree["root"], "eve:gone"
    ids = booted(tree, "short", 2, token) + booted(tree, "tiny", 1, token)
    for name, uuid in zip(("short", "short", "tiny"), ids, strict=True):
        deleted(tree, name, uuid, token)
    assert root.get("/servers", token)["servers"] == []
    for query in (EVER, f"{EVER}&limit=1"):
        found = pages(root, f"/servers?{query}", token)
        assert not any("is_partial" in page for page in found)
        shown = [each["id"] for page in found for each in page["servers"]]
        assert sorted(shown) == sorted(ids)
    assert root.get(f"/servers?{EVER}", "eve:other")["servers"] == []


def test_a_deleted_server_of_a_child_is_a_marker_for_its_project(tree: ZoneTree) -> None:
    root, token = tree["root"], "eve:marked"
    booted(tree, "tiny", 3, token)
    first, second, third = (each["id"] for each in root.get("/servers", token)["servers"])
    deleted(tree, "tiny", first, token)
    path = f"/servers?limit=1&marker={first}"
    assert [each["id"] for each in root.get(path, token)["servers"]] == [second]
    assert [each["id"] for each in root.get(f"/servers?marker={second}", token)["servers"]] == [
        third
    ]
    status = root.call("GET", path, token="eve:other").status_code
    assert status == httpx.codes.BAD_REQUEST


def test_an_administrator_lists_deleted_servers_of_children_by_status(tree: ZoneTree) -> None:
    root, token = tree["root"], "eve:status"
    (uuid,) = booted(tree, "short", 1, token)
    deleted(tree, "short", uuid, token)
    found = {
        query: pages(root, f"/servers?all_tenants=1&{query}", "admin")
        for query in ("deleted=true", "status=DELETED", "vm_state=deleted")
    }
    for query, shown in found.items():
        assert not any("is_partial" in page for page in shown), query
        assert uuid in [each["id"] for page in shown for each in page["servers"]], query
    refused = root.call("GET", "/servers?status=DELETED", token=token)
    assert refused.status_code == httpx.codes.FORBIDDEN


def test_a_system_administrator_lists_servers_of_children(tree: ZoneTree) -> None:
    root = tree["root"]
    (uuid,) = booted(tree, "short", 1)
    ask = partial(root.call, "GET", headers=SYSTEM)
    listed = ask("/servers/detail?all_tenants=1&limit=1").json()
    assert [each["id"] for each in listed["servers"]] == [uuid]
    assert "is_partial" not in listed
    after = ask(f"/servers?all_tenants=1&marker={uuid}")
    assert after.status_code == httpx.codes.OK, after.text
