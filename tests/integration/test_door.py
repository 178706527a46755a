"""A door over two real zones as its pods: servers and volumes are made, listed and deleted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.pod_processes import CAD, GATEWAY, Door, door
from tests.support.zone_processes import FLAVOR, USER, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
COMPUTE, VOLUME, IMAGE = "/compute/v2.1", "/volume/v3", "/image/v2"
SSH_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOo6/77apAV0iD/wg+PQlbwUpUdGCEtdwtIPZlZRjpyk a@b"
PROJECT = USER.partition(":")[2]


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Door]:
    """A door over two pods; neither pod has the door's flavors."""
    with door(tmp_path, GATEWAY) as made:
        made.ask("POST", f"{COMPUTE}/flavors", {"flavor": FLAVOR}, token="admin")
        for name in ("p1", "p2"):
            made.add(name, made.pods.start(name, 1, {"build_plan_encryption_key": ""}).address)
        yield made


def boot(at: Door, name: str = "some", token: str = USER, **server: Any) -> httpx.Response:
    """Ask the door for a server."""
    wanted = {"name": name, "flavorRef": "1", "imageRef": "", "networks": "none", **server}
    headers = {"openstack-api-version": "compute 2.37"}
    return at.send("POST", f"{COMPUTE}/servers", {"server": wanted}, token=token, headers=headers)


def booted(at: Door, name: str = "some", **server: Any) -> str:
    """Boot a server through the door, and return its id."""
    answer = boot(at, name, **server)
    assert answer.status_code == httpx.codes.ACCEPTED, answer.text
    return str(answer.json()["server"]["id"])


def names(at: Door, query: str = "", token: str = USER) -> list[str]:
    """Return the names of the servers that the door lists."""
    told = at.ask("GET", f"{COMPUTE}/servers/detail{query}", token=token)
    return [each["name"] for each in told["servers"]]


def routings(at: Door) -> list[Any]:
    """Return all routings."""
    found: list[Any] = at.get("/routings")["routings"]
    return found


def test_a_server_is_made_shown_listed_changed_and_deleted(two: Door) -> None:
    wanted = {"name": "mine", "public_key": SSH_KEY, "type": "ssh"}
    key = two.ask("POST", f"{COMPUTE}/os-keypairs", {"keypair": wanted}, status=201)["keypair"]
    uuid = booted(two, metadata={"a": "b"}, key_name=key["name"], availability_zone="az1")
    assert two.history(PROJECT) == ["p1"]
    shown = two.ask("GET", f"{COMPUTE}/servers/{uuid}")["server"]
    assert (shown["tenant_id"], shown["user_id"]) == (PROJECT, "demo")
    assert shown["metadata"] == {"a": "b"}
    assert shown["key_name"] == "mine"
    assert shown["OS-EXT-AZ:availability_zone"] == "az1"
    links = {each["rel"]: each["href"] for each in shown["links"]}
    assert links["self"].startswith(two.processes[0].http.base_url.__str__().rstrip("/"))
    assert "OS-EXT-SRV-ATTR:host" not in shown
    assert uuid in two.pods["p1"].server_ids()
    assert names(two) == ["some"]
    put = two.ask("PUT", f"{COMPUTE}/servers/{uuid}", {"server": {"name": "other"}})
    assert put["server"]["name"] == "other"
    stop = two.send("POST", f"{COMPUTE}/servers/{uuid}/action", {"os-stop": None})
    assert stop.status_code == httpx.codes.ACCEPTED, stop.text
    stranger = two.send("GET", f"{COMPUTE}/servers/{uuid}", token="x:y")
    assert stranger.status_code == httpx.codes.NOT_FOUND
    assert names(two, token="x:y") == []
    gone = two.send("DELETE", f"{COMPUTE}/servers/{uuid}")
    assert gone.status_code == httpx.codes.NO_CONTENT, gone.text
    wait_for("the routing is gone", lambda: not routings(two))
    assert two.send("GET", f"{COMPUTE}/servers/{uuid}").status_code == httpx.codes.NOT_FOUND
    assert two.pods["p1"].server_ids() == []


def test_lists_merge_over_pods_in_pages_and_tell_of_a_pod_that_is_away(two: Door) -> None:
    for number in range(6):
        pod = ("p1", "p2")[number % 2]
        body = {"pod_binding": {"project_id": PROJECT, "pod_id": two.ids[pod]}}
        assert two.call("POST", "/bindings", body).status_code == httpx.codes.CREATED
        booted(two, f"s{number}")
    newest_first = [f"s{number}" for number in reversed(range(6))]
    assert names(two) == newest_first
    assert names(two, "?sort_key=display_name&sort_dir=asc") == newest_first[::-1]
    seen: list[str] = []
    path = f"{COMPUTE}/servers/detail?limit=2"
    while path:
        told = two.ask("GET", path)
        seen += [each["name"] for each in told["servers"]]
        path = next((each["href"] for each in told.get("servers_links", [])), "")
    assert seen == newest_first
    two.pods.freeze("p2")
    told = two.ask("GET", f"{COMPUTE}/servers/detail")
    two.pods.thaw("p2")
    assert [each["name"] for each in told["servers"]] == ["s4", "s2", "s0"]
    two.pods.kill("p2")
    two.wait_for_state("p2", "down")
    told = two.ask("GET", f"{COMPUTE}/servers/detail?all_tenants=1", token="admin")
    assert [each["name"] for each in told["servers"]] == ["s4", "s2", "s0"]
    assert (told["is_partial"], told["missing_pods"]) == (True, ["p2"])
    told = two.ask("GET", f"{COMPUTE}/servers")
    assert "missing_pods" not in told and told["is_partial"]
    away = next(each["top_id"] for each in routings(two) if each["pod_id"] == two.ids["p2"])
    answer = two.send("GET", f"{COMPUTE}/servers/{away}")
    assert answer.status_code == httpx.codes.SERVICE_UNAVAILABLE
    assert int(answer.headers["retry-after"]) > 0


def test_volumes_meet_servers_only_in_their_pod(two: Door) -> None:
    server = booted(two)
    made = two.ask("POST", f"{VOLUME}/volumes", {"volume": {"size": 1, "name": "v"}}, status=202)
    volume = made["volume"]["id"]
    wait_for(
        "the volume is there",
        lambda: two.ask("GET", f"{VOLUME}/volumes/{volume}")["volume"]["status"] == "available",
    )
    shown = two.ask("GET", f"{VOLUME}/volumes/{volume}")["volume"]
    assert shown["availability_zone"] == "az1"
    assert shown["metadata"] == {}
    listed = two.ask("GET", f"{VOLUME}/volumes/detail")["volumes"]
    assert [each["id"] for each in listed] == [volume]
    body = {"pod_binding": {"project_id": PROJECT, "pod_id": two.ids["p2"]}}
    assert two.call("POST", "/bindings", body).status_code == httpx.codes.CREATED
    far = two.ask("POST", f"{VOLUME}/volumes", {"volume": {"size": 1}}, status=202)["volume"]["id"]
    path = f"{COMPUTE}/servers/{server}/os-volume_attachments"
    apart = two.send("POST", path, {"volumeAttachment": {"volumeId": far}})
    assert apart.status_code == httpx.codes.BAD_REQUEST
    assert "not in the same pod" in apart.text
    wait_for(
        "the server runs",
        lambda: two.ask("GET", f"{COMPUTE}/servers/{server}")["server"]["status"] == "ACTIVE",
    )
    near = two.send("POST", path, {"volumeAttachment": {"volumeId": volume}})
    assert near.status_code == httpx.codes.OK, near.text
    wait_for(
        "the volume is attached",
        lambda: two.ask("GET", f"{VOLUME}/volumes/{volume}")["volume"]["status"] == "in-use",
    )
    told = two.ask("GET", f"{VOLUME}/limits")["limits"]["absolute"]
    assert (told["totalVolumesUsed"], told["totalGigabytesUsed"]) == (2, 2)
    gone = two.send("DELETE", f"{VOLUME}/volumes/{far}")
    assert gone.status_code == httpx.codes.ACCEPTED, gone.text


def test_quotas_count_over_all_pods_and_refusals_leave_nothing(two: Door) -> None:
    quota = {"quota_set": {"instances": 2}}
    two.ask("PUT", f"{COMPUTE}/os-quota-sets/{PROJECT}", quota, token="admin")
    first = booted(two)
    body = {"pod_binding": {"project_id": PROJECT, "pod_id": two.ids["p2"]}}
    assert two.call("POST", "/bindings", body).status_code == httpx.codes.CREATED
    booted(two)
    told = two.ask("GET", f"{COMPUTE}/limits")["limits"]["absolute"]
    assert (told["totalInstancesUsed"], told["totalCoresUsed"]) == (2, 2 * FLAVOR["vcpus"])
    over = boot(two)
    assert over.status_code == httpx.codes.FORBIDDEN
    assert "Quota exceeded for instances" in over.text
    assert two.send("DELETE", f"{COMPUTE}/servers/{first}").status_code == httpx.codes.NO_CONTENT
    wait_for("the quota is free", lambda: len(routings(two)) == 1)
    booted(two)
    assert len(routings(two)) == 2
    assert boot(two, availability_zone="az9").status_code == httpx.codes.BAD_REQUEST
    bad = boot(two, flavorRef="no-such")
    assert bad.status_code == httpx.codes.BAD_REQUEST
    two.ask(
        "POST", f"{COMPUTE}/flavors/1/os-extra_specs", {"extra_specs": dict(CAD)}, token="admin"
    )
    none = boot(two, token="x:y")
    assert none.status_code == httpx.codes.CONFLICT
    assert len(routings(two)) == 2
    assert two.history("y") == []


def test_what_vanished_in_a_pod_that_was_away_is_forgotten(tmp_path: Path) -> None:
    with door(tmp_path, {**GATEWAY, "pod_recheck_interval_s": "1"}) as at:
        at.ask("POST", f"{COMPUTE}/flavors", {"flavor": FLAVOR}, token="admin")
        pod = at.pods.start("p1", 1, {"build_plan_encryption_key": ""})
        at.add("p1", pod.address)
        kept, lost = booted(at), booted(at)
        assert pod.call("DELETE", f"/servers/{lost}").status_code == httpx.codes.NO_CONTENT
        at.pods.kill("p1")
        at.wait_for_state("p1", "down")
        at.pods.restart("p1")
        wait_for("the other one is forgotten", lambda: len(routings(at)) == 1)
        assert at.ask("GET", f"{COMPUTE}/servers/{kept}")["server"]["id"] == kept
