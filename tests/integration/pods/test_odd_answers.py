"""Ids that cannot be stored, lists that change between pages, and paths that lead elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import httpx
import pytest

from tests.support.hostile_pods import GATEWAY, HostilePod, add_pod, hostile_pod
from tests.support.hostile_zones import Raw, SeenRequest, http
from tests.support.pod_processes import PODS
from tests.support.running import Running, running

pytestmark = pytest.mark.timeout(300)

COMPUTE = "/compute/v2.1"
SMALL = {"vcpus": 1, "ram": 64, "disk": 1}
USER = "user:acme"


@pytest.fixture
def pod() -> Iterator[HostilePod]:
    with hostile_pod() as made:
        project = {"id": "0a", "name": "acme", "domain_id": "default"}
        flavor = {**SMALL, "id": "g", "os-flavor-access:is_public": True}
        made.answers |= {
            "/v3/auth/tokens": lambda _: made.token(),
            "/v3/projects": http({"projects": [project]}),
            "/os-quota-sets/0a": http({"quota_set": {}}),
            "/flavors/g": http({"flavor": flavor}),
        }
        yield made


@pytest.fixture
def door(tmp_path: Path, pod: HostilePod) -> Iterator[Running]:
    with running(tmp_path, **GATEWAY) as made:
        add_pod(made, "p1", pod)
        flavor = {"flavor": {"id": "g", "name": "g", **SMALL}}
        made.call("POST", f"{COMPUTE}/flavors", json=flavor)
        yield made


def remember(door: Running, uuid: str) -> None:
    """Record a server of a project in the pod."""
    pod_id = door.call("GET", f"{PODS}/pods").json()["pods"][0]["pod_id"]
    routing = {"top_id": uuid, "bottom_id": uuid, "pod_id": pod_id, "project_id": "acme"}
    body = {"routing": {**routing, "resource_type": "server"}}
    assert door.call("POST", f"{PODS}/routings", json=body).status_code == httpx.codes.CREATED


@pytest.mark.parametrize("uuid", ["a\0b", "x" * 300])
def test_a_server_group_with_an_odd_id_is_not_used(
    door: Running, pod: HostilePod, uuid: str
) -> None:
    creates: list[SeenRequest] = []

    def takes(asked: SeenRequest) -> Raw:
        creates.append(asked)
        return http({"forbidden": {"message": "full", "code": 403}}, 403)

    pod.answers["/servers"] = takes
    pod.answers["/os-server-groups"] = http({"server_group": {"id": uuid}})
    headers = {"openstack-api-version": "compute 2.64"}
    wanted: dict[str, Any] = {"server_group": {"name": "near", "policy": "affinity"}}
    path = f"{COMPUTE}/os-server-groups"
    group = door.call("POST", path, USER, json=wanted, headers=headers).json()["server_group"]
    server = {"name": "s", "flavorRef": "g", "imageRef": "", "networks": "none"}
    body = {"server": server, "os:scheduler_hints": {"group": group["id"]}}
    answer = door.call("POST", f"{COMPUTE}/servers", USER, json=body, headers=headers)
    assert answer.status_code == httpx.codes.SERVICE_UNAVAILABLE, answer.text
    assert creates == []


def test_a_row_that_vanishes_between_two_pages_makes_the_list_partial(
    door: Running, pod: HostilePod
) -> None:
    known, other = (f"11111111-1111-4111-8111-11111111111{number}" for number in range(2))
    remember(door, known)

    def page(asked: SeenRequest) -> Raw:
        if f"marker={other}" in asked.query:
            return http(
                {"badRequest": {"message": f"marker [{other}] not found", "code": 400}}, 400
            )
        return http({"servers": [{"id": other, "name": "s"}], "servers_links": [{"rel": "next"}]})

    pod.answers |= {"/servers": page, "/servers/detail": page}
    answer = door.call("GET", f"{COMPUTE}/servers", USER)
    assert (answer.status_code, answer.json()) == (200, {"servers": [], "is_partial": True})


def test_a_short_page_is_found_behind_many_rows_that_are_not_of_the_door(
    door: Running, pod: HostilePod
) -> None:
    ids = [f"11111111-1111-4111-8111-{number:012d}" for number in range(300)]
    remember(door, ids[-1])
    asked_for: list[int] = []

    def page(asked: SeenRequest) -> Raw:
        query = parse_qs(asked.query)
        limit = int(query["limit"][0])
        asked_for.append(limit)
        start = ids.index(query["marker"][0]) + 1 if "marker" in query else 0
        rows = [{"id": each, "name": "s"} for each in ids[start : start + limit]]
        links = {"servers_links": [{"rel": "next"}]} if start + limit < len(ids) else {}
        return http({"servers": rows, **links})

    pod.answers |= {"/servers": page, "/servers/detail": page}
    answer = door.call("GET", f"{COMPUTE}/servers?limit=1", USER).json()
    assert [each["id"] for each in answer["servers"]] == [ids[-1]]
    assert asked_for == [1, 2, 4, 8, 16, 32, 64, 128, 256]


@pytest.mark.parametrize("part", ["%2e%2e", "%2e", "..%2f..%2fos-hypervisors", "a%2fb"])
def test_a_part_of_a_path_cannot_lead_elsewhere_in_the_pod(
    door: Running, pod: HostilePod, part: str
) -> None:
    uuid = "11111111-1111-4111-8111-111111111111"
    remember(door, uuid)
    pod.zone.asked.clear()
    for below in ("os-interface", "metadata"):
        answer = door.call("DELETE", f"{COMPUTE}/servers/{uuid}/{below}/{part}", USER)
        assert answer.status_code in (400, 404), answer.text
    assert [each.path for each in pod.zone.asked if "/servers/" in each.path] == []
