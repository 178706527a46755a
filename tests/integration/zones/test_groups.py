"""Server groups and hints over a tree of real zones: root, its child a, and a's child c."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.support.zone_homes import (
    EVERYWHERE,
    HOSTS,
    ROOM,
    az,
    body,
    boot,
    booted,
    empty,
    homes,
    is_gone,
    one,
    three_zones,
    wait_until,
)
from tests.support.zone_processes import USER, RunningZone, ZoneTree, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

GROUPS = "/os-server-groups"
WITH_RULES = {"openstack-api-version": "compute 2.71"}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZoneTree]:
    with three_zones(tmp_path_factory.mktemp("groups")) as made:
        yield made


@pytest.fixture
def tree(running: ZoneTree) -> Iterator[ZoneTree]:
    """The tree without servers."""
    yield running
    empty(running)
    root = running["root"]
    for each in root.get(f"{GROUPS}?all_projects=1")["server_groups"]:
        assert root.call("DELETE", f"{GROUPS}/{each['id']}").is_success


def group(zone: RunningZone, policy: str, token: str = USER, **rules: int) -> dict[str, str]:
    """Create a server group. Return the hint for it."""
    wanted: dict[str, Any] = {"name": "some", "policy": policy}
    if rules:
        wanted["rules"] = rules
    made = zone.call("POST", GROUPS, {"server_group": wanted}, token=token, headers=WITH_RULES)
    assert made.is_success, made.text
    return {"group": made.json()["server_group"]["id"]}


def members(zone: RunningZone, hint: dict[str, str]) -> set[str]:
    """Return the members of a group, as its user sees them."""
    found = zone.get(GROUPS, USER)["server_groups"]
    (shown,) = (each for each in found if each["id"] == hint["group"])
    return set(shown["members"])


def test_anti_affinity_gives_each_member_of_the_tree_its_own_host(tree: ZoneTree) -> None:
    root = tree["root"]
    hint = group(root, "anti-affinity")
    ids = booted(root, EVERYWHERE, hint)
    assert len(set(homes(tree).values())) == len(ids) == EVERYWHERE
    assert members(root, hint) == set(ids)
    assert booted(root, 1, hint) == [], "every host has a member"
    lost = next(uuid for uuid, home in homes(tree).items() if home[0] == "c")
    home = homes(tree)[lost]
    assert root.call("DELETE", f"/servers/{lost}", token=USER).status_code == 204
    wait_for("the server is gone", lambda: is_gone(root, lost))
    assert lost not in members(root, hint)
    (again,) = booted(root, 1, hint)
    assert homes(tree)[again] == home


def test_anti_affinity_allows_as_many_on_a_host_as_its_rule(tree: ZoneTree) -> None:
    root = tree["root"]
    hint = group(root, "anti-affinity", max_server_per_host=2)
    ids = booted(root, 2 * EVERYWHERE, hint)
    found = list(homes(tree).values())
    assert len(ids) == 2 * EVERYWHERE
    assert {found.count(each) for each in found} == {2}


def test_a_batch_with_affinity_is_on_one_host_and_later_members_too(tree: ZoneTree) -> None:
    root = tree["root"]
    hint = group(root, "affinity")
    first = booted(root, 2, hint, availability_zone=az("c"))
    (home,) = set(homes(tree).values())
    assert home[0] == "c"
    rest = booted(root, ROOM - 2, hint)
    assert set(homes(tree).values()) == {home}
    assert members(root, hint) == {*first, *rest}
    assert booted(root, 1, hint) == [], "the host is full"


@pytest.mark.parametrize("home", HOSTS)
def test_affinity_and_a_place_of_another_zone_have_no_valid_host(tree: ZoneTree, home: str) -> None:
    root = tree["root"]
    hint = group(root, "affinity")
    (first,) = booted(root, 1, hint, availability_zone=az(home))
    for other in HOSTS:
        if other != home:
            assert booted(root, 1, hint, availability_zone=az(other)) == [], other
    (second,) = booted(root, 1, hint, availability_zone=az(home))
    assert homes(tree)[second] == homes(tree)[first]


def test_a_batch_with_affinity_gets_one_host_of_any_zone(tree: ZoneTree) -> None:
    root = tree["root"]
    for _ in HOSTS:
        ids = booted(root, ROOM, group(root, "affinity"))
        found = homes(tree)
        assert len({found[each] for each in ids}) == 1
    assert len(set(homes(tree).values())) == len(HOSTS)


def test_batches_of_one_group_at_once_keep_its_policy(tree: ZoneTree) -> None:
    root = tree["root"]
    apart, near = group(root, "anti-affinity"), group(root, "affinity")
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: booted(root, 1, apart), range(EVERYWHERE)))
        together = list(pool.map(lambda _: booted(root, 1, near), range(ROOM - 1)))
    found = homes(tree)
    ids = [each for some in made for each in some]
    assert len({found[each] for each in ids}) == len(ids) == EVERYWHERE
    assert len({found[each] for some in together for each in some}) == 1


@pytest.mark.parametrize("policy", ["soft-anti-affinity", "soft-affinity"])
def test_soft_policies_are_kept_as_far_as_possible(tree: ZoneTree, policy: str) -> None:
    root = tree["root"]
    ids = booted(root, ROOM, group(root, policy))
    hosts = {homes(tree)[each] for each in ids}
    assert len(hosts) == (1 if policy == "soft-affinity" else ROOM)


def test_entries_presented_later_keep_the_policy(tree: ZoneTree) -> None:
    root = tree["root"]
    hint = group(root, "anti-affinity")
    wanted = body(hint, max_count=1, availability_zone=az("c"))
    plans = [root.call("POST", "/zones/select", wanted, token=USER) for _ in range(6)]
    entries = [each.json()["weights"][0]["blob"] for each in plans]
    with ThreadPoolExecutor(3) as pool:
        answers = list(
            pool.map(
                lambda entry: root.call(
                    "POST",
                    "/servers",
                    body(hint, blob=entry, availability_zone=az("c")),
                    token=USER,
                ),
                entries,
            )
        )
    statuses = [each.status_code for each in answers]
    assert set(statuses) <= {202, 409}
    found = homes(tree)
    assert 1 <= len(found) == len(set(found.values())) == statuses.count(202)


def test_a_move_in_a_child_keeps_the_policy(tree: ZoneTree) -> None:
    root, c = tree["root"], tree["c"]
    hint = group(root, "anti-affinity")
    ids = booted(root, HOSTS["c"], hint, availability_zone=az("c"))
    before = homes(tree)
    for uuid in ids:
        wait_until(root, uuid, "ACTIVE")
    moved = c.call("POST", f"/servers/{ids[0]}/action", {"migrate": None})
    assert moved.status_code == 202, moved.text
    actions = c.get(f"/servers/{ids[0]}/os-instance-actions")["instanceActions"]
    messages = {each["action"]: each["message"] for each in actions}
    assert messages["migrate"].startswith("No valid host was found.")
    assert homes(tree) == before


def test_the_quota_of_members_counts_those_in_children(tree: ZoneTree) -> None:
    root = tree["root"]
    token = "grouped:grouped"
    body = {"quota_set": {"server_group_members": 3}}
    assert root.call("PUT", "/os-quota-sets/grouped", body).is_success
    hint = group(root, "anti-affinity", token)
    assert len(booted(root, 5, hint, least=1, availability_zone=az("a"), token=token)) == 2
    assert len(booted(root, 2, hint, least=1, token=token)) == 1
    assert boot(root, 1, hint, token=token).status_code == httpx.codes.FORBIDDEN
    assert boot(root, 1, hint, token=token, availability_zone=az("c")).status_code == 403


def test_a_server_shows_its_group_and_only_its_project_sees_it(tree: ZoneTree) -> None:
    root, c = tree["root"], tree["c"]
    hint = group(root, "anti-affinity")
    uuid = one(root, hint, availability_zone=az("c"))
    shown = root.call("GET", f"/servers/{uuid}", token=USER, headers=WITH_RULES).json()["server"]
    assert shown["server_groups"] == [hint["group"]]
    assert c.get(GROUPS, USER)["server_groups"] == [], "the project of the child is another one"
    below = c.get(f"{GROUPS}?all_projects=1")["server_groups"]
    assert hint["group"] not in {each["id"] for each in below}
    unknown = boot(root, 1, hint, token="other:other")
    assert unknown.status_code == httpx.codes.BAD_REQUEST
    # For users of the child itself, the parent's group does not exist.
    for known in (hint["group"], *(each["id"] for each in below)):
        assert boot(c, 1, {"group": known}).status_code == httpx.codes.BAD_REQUEST


def test_servers_near_or_far_from_a_server_in_a_child(tree: ZoneTree) -> None:
    root = tree["root"]
    there = one(root, availability_zone=az("c"))
    home = homes(tree)[there]
    near = one(root, {"same_host": there})
    assert homes(tree)[near] == home
    far = booted(root, EVERYWHERE * ROOM, {"different_host": [there, near]}, least=1)
    found = homes(tree)
    assert len(far) == (EVERYWHERE - 1) * ROOM
    assert home not in {found[each] for each in far}


def test_a_hint_with_a_server_of_nobody_or_of_others_is_refused(tree: ZoneTree) -> None:
    root = tree["root"]
    there = one(root, availability_zone=az("c"))
    for name in ("same_host", "different_host"):
        for uuid, token in ((there[:-4] + "0000", USER), (there, "other:other")):
            answer = boot(root, 1, {name: uuid}, token=token)
            assert answer.status_code == httpx.codes.BAD_REQUEST, answer.text
            assert "could not be found" in answer.text


def test_hints_about_hosts_of_this_zone_go_to_no_other_zone(tree: ZoneTree) -> None:
    root = tree["root"]
    before = len(tree["a"].service.log.read_text().split("zones/select"))
    by_name = {"query": '["=","$hypervisor_hostname","host-9"]', "filters": ["JsonFilter"]}
    for hints in ({"build_near_host_ip": "192.0.2.77"}, by_name):
        answer = root.call("POST", "/zones/select", body(hints, max_count=1))
        assert answer.status_code == httpx.codes.OK, answer.text
    forced = root.call("POST", "/zones/select", body(None, max_count=1, host="host-1"))
    assert len(forced.json()["weights"]) == 1
    assert len(tree["a"].service.log.read_text().split("zones/select")) == before
