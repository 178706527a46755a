"""Plans over a tree of real zones: root has the children a and b, and a has the child c."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import httpx
import pytest

from tests.support.zone_hosts import COSTLY, offers, report, requests_in, select, weights
from tests.support.zone_processes import FLAVOR, USER, RunningZone, ZoneTree, wait_for, zone_tree

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PLACES = {"root": (2, 50.0), "a": (2, 20.0), "b": (3, 30.0), "c": (4, 7.0)}
"""How many servers the one host of each zone has room for, and its cost."""
EVERYWHERE = sum(places for places, _ in PLACES.values())
NESTED = 5 + 2 * (10 + 3 * 7.0)
IN_ORDER = [30.0] * 3 + [45.0] * 2 + [50.0] * 2 + [NESTED] * 4
"""The weights of all hosts at the root."""
SMALL = {"id": "2", "name": "small", "vcpus": 1, "ram": 64, "disk": 1}
THOUSAND = 1000


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZoneTree]:
    with zone_tree(tmp_path_factory.mktemp("tree")) as made:
        for name in PLACES:
            made.start(name, 0, {**COSTLY, "zone_poll_interval_s": "3600"})
        made.link("a", "c", weight_offset=10, weight_scale=3)
        made.link("root", "a", weight_offset=5, weight_scale=2)
        made.link("root", "b")
        made["root"].add_flavor()
        assert made["root"].call("POST", "/flavors", {"flavor": SMALL}).is_success
        yield made


@pytest.fixture(scope="module")
def providers(tree: ZoneTree) -> dict[str, list[str]]:
    """The ids of the providers of all hosts."""
    return {
        name: report(tree[name], {f"host-in-{name}": places}) for name, places in PLACES.items()
    }


@pytest.fixture
def root(tree: ZoneTree, providers: dict[str, list[str]]) -> RunningZone:
    assert providers
    return tree["root"]


@contextmanager
def also_linked(tree: ZoneTree, parent: str, child: str) -> Iterator[None]:
    """Add a link to the tree until the block ends."""
    number = tree.link(parent, child)
    row = next(
        each
        for each in tree[child].get("/zones/parents")["zone_parents"]
        if each["name"] == f"up-{parent}"
    )
    try:
        yield
    finally:
        assert tree[parent].call("DELETE", f"/zones/{number}").is_success
        assert tree[child].call("DELETE", f"/zones/parents/{row['id']}").is_success


def change(zone: RunningZone, child: str, **fields: Any) -> httpx.Response:
    """Change a child zone."""
    number = zone.child(child)["id"]
    return zone.call("PUT", f"/zones/{number}", {"zone": fields})


def test_case_1_offers_of_all_zones_in_order_with_only_weight_and_blob(root: RunningZone) -> None:
    found = offers(root, 4)
    assert [each["weight"] for each in found] == IN_ORDER[:4]
    assert all(each.keys() == {"weight", "blob"} for each in found)
    assert select(root, 4).json().keys() == {"weights"}


def test_case_1_as_many_offers_as_wanted_although_no_zone_alone_has_them(root: RunningZone) -> None:
    assert weights(root, EVERYWHERE) == IN_ORDER
    assert weights(root, EVERYWHERE + 5) == IN_ORDER


def test_case_2_a_child_with_an_offset_moves_behind_the_others(root: RunningZone) -> None:
    assert change(root, "b", weight_offset=1000, weight_scale=10).is_success
    assert weights(root, EVERYWHERE) == sorted(IN_ORDER[3:] + [1300.0] * 3)
    assert change(root, "b", weight_offset=0, weight_scale=1).is_success


def test_case_3_offset_and_scale_of_two_levels_make_67_of_7(
    tree: ZoneTree, root: RunningZone
) -> None:
    tree["c"].add_flavor()
    assert weights(tree["c"]) == [7.0]
    assert weights(root, EVERYWHERE)[-1] == NESTED == 67.0


def test_case_22_offset_0_and_scale_1_take_effect_and_other_scales_are_refused(
    root: RunningZone,
) -> None:
    for scale in (0, -1):
        assert change(root, "a", weight_scale=scale).status_code == httpx.codes.BAD_REQUEST
    assert change(root, "a", weight_offset=0, weight_scale=1).is_success
    assert weights(root, 2) == [20.0] * 2
    assert change(root, "a", weight_offset=5, weight_scale=2).is_success
    assert weights(root, EVERYWHERE) == IN_ORDER


def test_case_6_no_answer_and_no_entry_names_a_host(
    tree: ZoneTree, root: RunningZone, providers: dict[str, list[str]]
) -> None:
    texts = [select(root, EVERYWHERE).text]
    texts += [tree[name].call("GET", "/zones/info").text for name in PLACES]
    sealed = b"".join(
        base64.urlsafe_b64decode(each["blob"] + "==") for each in offers(root, EVERYWHERE)
    )
    secrets = [f"host-in-{name}" for name in PLACES]
    secrets += [each for some in providers.values() for each in some]
    for each in (*secrets, "127.0.0.1"):
        assert not any(each in text for text in texts)
        assert each.encode() not in sealed


def test_case_4_no_two_plans_have_an_equal_entry_and_all_have_the_same_length(
    root: RunningZone,
) -> None:
    found = [each["blob"] for _ in range(2) for each in offers(root, EVERYWHERE)]
    assert len(set(found)) == 2 * EVERYWHERE
    assert len({len(each) for each in found}) == 1


def test_case_13_ids_that_name_nothing_are_refused_politely(root: RunningZone) -> None:
    assert root.call("GET", "/zones/999").status_code == httpx.codes.NOT_FOUND
    for path in ("/servers/7", "/servers/no-uuid"):
        for method in ("GET", "DELETE"):
            assert root.call(method, path, token=USER).status_code == httpx.codes.NOT_FOUND
    bodies: tuple[Any, ...] = ({}, {"zone": {}}, {"zone": 7}, [])
    for body in bodies:
        assert root.call("POST", "/zones", body).status_code == httpx.codes.BAD_REQUEST
    bodies = ({}, {"server": 7}, "text")
    for body in bodies:
        assert root.call("POST", "/zones/select", body).status_code == httpx.codes.BAD_REQUEST


def test_case_24_no_password_is_shown_and_only_administrators_manage_zones(
    root: RunningZone,
) -> None:
    number = root.child("a")["id"]
    for path in ("/zones", "/zones/detail", f"/zones/{number}"):
        assert "password" not in root.call("GET", path).text
        assert root.call("GET", path, token=USER).status_code == httpx.codes.FORBIDDEN
    new = {"name": "x", "api_url": "http://x/v2.1", "username": "x", "password": "x"}
    for method, path, body in (
        ("POST", "/zones", {"zone": new}),
        ("PUT", f"/zones/{number}", {"zone": {"weight_scale": 2}}),
        ("DELETE", f"/zones/{number}", None),
        ("GET", "/zones/parents", None),
        ("POST", "/zones/parents", {"zone_parent": {"name": "mine"}}),
    ):
        answer = root.call(method, path, body, token=USER)
        assert answer.status_code == httpx.codes.FORBIDDEN, (method, path)


def test_case_14_each_host_is_counted_once_in_a_cycle_and_in_a_diamond(
    tree: ZoneTree, root: RunningZone
) -> None:
    with also_linked(tree, "c", "root"):
        assert weights(root, 2 * EVERYWHERE) == IN_ORDER
        with also_linked(tree, "b", "c"):
            found = select(root, 2 * EVERYWHERE).json()
            assert [each["weight"] for each in found["weights"]] == [7.0] * 4 + IN_ORDER[:-4]
            assert "is_partial" not in found
    assert weights(root, EVERYWHERE) == IN_ORDER


def test_case_25_a_plan_for_1000_servers_asks_each_child_once(
    tree: ZoneTree, root: RunningZone
) -> None:
    path = "/compute/v2.1/zones/select"
    before = {name: requests_in(tree[name], "POST", path) for name in PLACES}
    found = weights(root, THOUSAND, flavorRef=SMALL["id"])
    each_fits = FLAVOR["ram"] // SMALL["ram"]
    many = {weight: IN_ORDER.count(weight) * each_fits for weight in IN_ORDER}
    assert len(found) == THOUSAND
    assert all(found.count(weight) == many[weight] for weight in (30.0, 45.0, 50.0))

    def has_one_more(name: str) -> bool:
        return requests_in(tree[name], "POST", path) == before[name] + 1

    for name in PLACES:
        wait_for(f"{name} logs its request", partial(has_one_more, name))
