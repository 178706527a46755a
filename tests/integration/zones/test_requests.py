"""Resizes and explanations over a tree of real zones: root, its child a, and a's child c."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import pytest

from tests.support.zone_homes import (
    HOSTS,
    QUARTER,
    az,
    body,
    boot,
    booted,
    empty,
    homes,
    one,
    status,
    three_zones,
    wait_until,
)
from tests.support.zone_processes import USER, RunningZone, ZoneTree, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

EXPLAIN = "/os-explain"
HALF: Mapping[str, Any] = {"id": "5", "name": "half", "vcpus": 16, "ram": 60_000, "disk": 10}
PRIVATE = {**HALF, "id": "6", "name": "private", "os-flavor-access:is_public": False}
TIMES = 2
"""How much larger the flavor half is."""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZoneTree]:
    with three_zones(tmp_path_factory.mktemp("requests")) as made:
        for flavor in (HALF, PRIVATE):
            assert made["root"].call("POST", "/flavors", {"flavor": flavor}).is_success
        yield made


@pytest.fixture
def tree(running: ZoneTree) -> Iterator[ZoneTree]:
    """The tree without servers."""
    yield running
    empty(running)


def resize(zone: RunningZone, uuid: str, flavor: str, token: str = USER) -> httpx.Response:
    """Resize a server."""
    wanted = {"resize": {"flavorRef": flavor}}
    return zone.call("POST", f"/servers/{uuid}/action", wanted, token=token)


def act(zone: RunningZone, uuid: str, name: str) -> None:
    """Let a server do something."""
    answer = zone.call("POST", f"/servers/{uuid}/action", {name: None}, token=USER)
    assert answer.is_success, answer.text


def used(zone: RunningZone, token: str = USER) -> int:
    """Return how many vcpus of the project count."""
    return int(zone.get("/limits", token)["limits"]["absolute"]["totalCoresUsed"])


def test_users_and_projects_of_all_zones_are_those_of_the_root(tree: ZoneTree) -> None:
    root = tree["root"]
    tokens = ("zoe:apes", "ann:bees")
    made = {
        one(root, availability_zone=az(name), token=token): tuple(token.split(":"))
        for token in tokens
        for name in HOSTS
    }
    of_ann = sorted(uuid for uuid, (user, _) in made.items() if user == "ann")
    for owner in ("user_id=ann", "project_id=bees", "tenant_id=bees"):
        found = root.get(f"/servers/detail?all_tenants=1&{owner}")["servers"]
        assert sorted(each["id"] for each in found) == of_ann, owner
    mine = root.get("/servers?user_id=ann", "ann:bees")["servers"]
    assert sorted(each["id"] for each in mine) == of_ann
    assert root.get("/servers?user_id=zoe", "ann:bees")["servers"] == []
    for column, place in (("user_id", 0), ("project_id", 1)):
        path = f"/servers?all_tenants=1&sort_key={column}&sort_dir=asc&limit=1"
        listed: list[str] = []
        while len(listed) <= len(made):
            marker = f"&marker={listed[-1]}" if listed else ""
            page = root.get(path + marker)["servers"]
            if not page:
                break
            listed += [each["id"] for each in page]
        assert sorted(listed) == sorted(made)
        owners = [made[each][place] for each in listed]
        assert owners == sorted(owners), column


@pytest.mark.parametrize("name", ["a", "c"])
def test_a_resize_takes_its_flavor_along(tree: ZoneTree, name: str) -> None:
    root = tree["root"]
    uuid = one(root, availability_zone=az(name))
    wait_until(root, uuid, "ACTIVE")
    small = used(root)
    assert resize(root, uuid, HALF["id"]).status_code == 202
    assert used(root) == TIMES * small, "the larger flavor counts from the beginning"
    wait_until(root, uuid, "VERIFY_RESIZE")
    act(root, uuid, "revertResize")
    wait_until(root, uuid, "ACTIVE")
    wait_for("the old flavor counts", lambda: used(root) == small)
    assert resize(root, uuid, HALF["id"]).status_code == 202
    wait_until(root, uuid, "VERIFY_RESIZE")
    act(root, uuid, "confirmResize")
    wait_until(root, uuid, "ACTIVE")
    headers = {"openstack-api-version": "compute 2.47"}
    shown = root.call("GET", f"/servers/{uuid}", token=USER, headers=headers).json()["server"]
    assert shown["flavor"]["original_name"] == HALF["name"]
    assert resize(root, uuid, QUARTER["id"]).status_code == 202
    assert used(root) == TIMES * small
    wait_until(root, uuid, "VERIFY_RESIZE")
    act(root, uuid, "confirmResize")
    wait_for("the smaller flavor counts", lambda: used(root) == small)
    assert homes(tree)[uuid][0] == name


def test_the_quota_of_a_resize_counts_at_the_root(tree: ZoneTree) -> None:
    root, c = tree["root"], tree["c"]
    token = "narrow:narrow"
    body = {"quota_set": {"cores": 12, "instances": -1, "ram": -1}}
    assert root.call("PUT", "/os-quota-sets/narrow", body).is_success
    uuid = one(root, availability_zone=az("c"), token=token)
    wait_for("it is active", lambda: c.get(f"/servers/{uuid}")["server"]["status"] == "ACTIVE")
    refused = resize(root, uuid, HALF["id"], token)
    assert refused.status_code == httpx.codes.FORBIDDEN, refused.text
    assert "Quota exceeded for cores" in refused.text
    assert used(root, token) == QUARTER["vcpus"]
    assert c.get(f"/servers/{uuid}")["server"]["status"] == "ACTIVE"


def test_a_child_limits_what_its_parent_resizes_to(tree: ZoneTree) -> None:
    root, a = tree["root"], tree["a"]
    (parent,) = a.get("/zones/parents")["zone_parents"]
    path = f"/zones/parents/{parent['id']}"
    uuid = one(root, availability_zone=az("c"))
    wait_until(root, uuid, "ACTIVE")
    assert a.call("PUT", path, {"zone_parent": {"cores": 12}}).is_success
    before = used(root)
    assert resize(root, uuid, HALF["id"]).status_code == httpx.codes.FORBIDDEN
    assert used(root) == before
    assert a.call("PUT", path, {"zone_parent": {"cores": -1}}).is_success
    assert status(root, uuid) == "ACTIVE"


@pytest.mark.parametrize("name", ["a", "c"])
def test_the_quota_of_metadata_items_is_that_of_the_root(tree: ZoneTree, name: str) -> None:
    root, token = tree["root"], "labels:labels"
    limit = {"quota_set": {"metadata_items": 2}}
    assert root.call("PUT", "/os-quota-sets/labels", limit).is_success
    path = f"/servers/{one(root, availability_zone=az(name), token=token)}/metadata"

    def change(method: str, below: str = "", **items: str) -> int:
        wanted = {"meta" if below else "metadata": items}
        return root.call(method, path + below, wanted, token=token).status_code

    ok, full = httpx.codes.OK, httpx.codes.FORBIDDEN
    assert change("POST", a="1", b="2", c="3") == full
    assert change("PUT", a="1", b="2", c="3") == full
    assert change("POST", a="1") == ok
    assert change("PUT", "/b", b="2") == ok
    assert change("PUT", "/c", c="3") == full
    assert change("POST", c="3") == full
    assert change("PUT", "/b", b="4") == ok
    assert root.get(path, token) == {"metadata": {"a": "1", "b": "4"}}
    own = {"metadata": {"a": "1"}, "zone": {"metadata_items": 9}}
    assert root.call("POST", path, own, token=token).status_code == httpx.codes.BAD_REQUEST


def test_a_flavor_that_cannot_be_used_is_refused_at_the_root(tree: ZoneTree) -> None:
    root = tree["root"]
    uuid = one(root, availability_zone=az("c"))
    wait_until(root, uuid, "ACTIVE")
    before = used(root)
    for flavor in ("unknown", PRIVATE["id"], QUARTER["id"]):
        answer = resize(root, uuid, str(flavor))
        assert answer.status_code == httpx.codes.BAD_REQUEST, answer.text
    told = {"resize": {"flavorRef": HALF["id"], "zone": {"flavor": {}}}}
    forged = root.call("POST", f"/servers/{uuid}/action", told, token=USER)
    assert forged.status_code == httpx.codes.BAD_REQUEST
    own = one(root, availability_zone=az("root"))
    assert root.call("POST", f"/servers/{own}/action", told, token=USER).status_code == 400
    assert used(root) == before + QUARTER["vcpus"]
    admin = root.call("POST", f"/servers/{uuid}/action", {"resize": {"flavorRef": PRIVATE["id"]}})
    assert admin.status_code == 202, admin.text
    wait_until(root, uuid, "VERIFY_RESIZE")


def explained(zone: RunningZone, token: str = "admin", **fields: Any) -> dict[str, Any]:
    """Return the explanation of a boot."""
    answer = zone.call("POST", EXPLAIN, body(None, **fields), token=token)
    assert answer.status_code == httpx.codes.OK, answer.text
    found: dict[str, Any] = answer.json()["explanation"]
    return found


def test_an_explanation_names_the_zones_of_candidates(tree: ZoneTree) -> None:
    root = tree["root"]
    told = explained(root, min_count=1, max_count=1000)
    assert told["hosts"] == HOSTS["root"]
    (a,) = told["tree"]["zones"]
    (c,) = a["zones"]
    assert [(a["zone"], a["hosts"]), (c["zone"], c["hosts"])] == [
        ("a", HOSTS["a"]),
        ("c", HOSTS["c"]),
    ]
    assert a["answer"] == c["answer"] == "explained"
    ways = [tuple(each["zones"]) for each in told["tree"]["chosen"]]
    assert {ways.count(()), ways.count(("a",)), ways.count(("a", "c"))} == {4, 8}
    assert told["tree"]["servers"] == told["tree"]["room"] == 20
    for zone in (a, c):
        assert zone.keys() <= {
            *("zone", "answer", "hosts", "candidates", "room", "removed", "zones")
        }
    assert "host-2" not in str(told), "the root has no such host"


def test_a_user_learns_no_names_of_zones(tree: ZoneTree) -> None:
    root = tree["root"]
    told = explained(root, USER, max_count=2)
    assert told["tree"]["servers"] == 2
    (a,) = told["tree"]["zones"]
    assert "zone" not in a and "zone" not in a["zones"][0]
    assert all(each.keys() == {"weight"} for each in told["tree"]["chosen"])


def test_an_explanation_knows_the_availability_zones_of_children(tree: ZoneTree) -> None:
    root = tree["root"]
    told = explained(root, availability_zone=az("c"), max_count=3)
    assert told["candidates"] == 0
    assert told["removed"][0]["filter"] == "AvailabilityZoneFilter"
    assert [each["zones"] for each in told["tree"]["chosen"]] == [["a", "c"]] * 3
    unknown = root.call("POST", EXPLAIN, body(None, availability_zone="nowhere"))
    assert unknown.status_code == httpx.codes.BAD_REQUEST
    assert boot(root, availability_zone="nowhere").status_code == httpx.codes.BAD_REQUEST


def test_a_place_that_is_full_is_no_unknown_place(tree: ZoneTree) -> None:
    root = tree["root"]
    assert len(booted(root, 8, availability_zone=az("c"))) == 8
    assert booted(root, 1, availability_zone=az("c")) == []
    told = explained(root, availability_zone=az("c"))
    assert told["tree"]["servers"] == 0


def test_a_child_that_forbids_explanations_or_is_away(tree: ZoneTree) -> None:
    root, a = tree["root"], tree["a"]
    rules = a.folder / "policy.yaml"
    rules.write_text('"os_compute_api:os-explain:explain": "role:admin"\n')
    tree.stop("a")
    tree.restart("a", {"policy_file": str(rules)})
    wait_for("a is back", lambda: root.child("a")["is_active"])
    (told,) = explained(root, USER)["tree"]["zones"]
    assert told == {"answer": "refused"}
    tree.freeze("a")
    try:
        (told,) = explained(root)["tree"]["zones"]
        assert told == {"zone": "a", "answer": "silent"}
    finally:
        tree.thaw("a")
    wait_for("a is back", lambda: root.child("a")["is_active"])
