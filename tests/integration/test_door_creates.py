"""Creates through a door: their outcome is unknown, or a pod refuses them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.pod_processes import GATEWAY, Door, door
from tests.support.zone_processes import FLAVOR, USER, wait_for
from tests.support.zone_relays import CREATE, Relay, relay_to

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
COMPUTE = "/compute/v2.1"
PROJECT = USER.partition(":")[2]
SSH_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOo6/77apAV0iD/wg+PQlbwUpUdGCEtdwtIPZlZRjpyk a@b"
UNKNOWN_ID = "9bbff1cc-0d2a-4b60-8a55-2ea3e0e5c3b7"
HOSTS = 8
"""There are so many hosts that no measurement finds a pod full."""
ALONE = {"build_plan_encryption_key": ""}
SPECIAL = {**FLAVOR, "id": "special", "name": "special"}
SPECS = {"extra_specs": {"hw:cpu_policy": "dedicated"}}
REFUSED = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}"
LOST = b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Door, Relay]]:
    """A door over two pods. The Compute API of the first one is behind a relay."""
    with door(tmp_path, {**GATEWAY, "pod_failures_to_offline": "100"}) as made:
        made.ask("POST", f"{COMPUTE}/flavors", {"flavor": FLAVOR}, token="admin")
        first, second = (made.pods.start(name, HOSTS, ALONE) for name in ("p1", "p2"))
        with relay_to(first.address) as relay:
            made.add("p1", first.address, endpoints={"compute": relay.address + COMPUTE})
            made.add("p2", second.address)
            yield made, relay


def boot(at: Door, **server: Any) -> httpx.Response:
    """Ask the door for a server."""
    wanted = {"name": "some", "flavorRef": "1", "imageRef": "", "networks": "none", **server}
    headers = {"openstack-api-version": "compute 2.37"}
    return at.send("POST", f"{COMPUTE}/servers", {"server": wanted}, headers=headers)


def routings(at: Door) -> list[Any]:
    """Return all routings."""
    found: list[Any] = at.get("/routings")["routings"]
    return found


def _is_background(asked: str) -> bool:
    """Return whether a door sends this request when it polls or measures its pods."""
    method, path = asked.split()
    return method == "GET" and path.endswith(("/flavors", "/statistics", "/get_pools"))


def creates(relay: Relay) -> int:
    """Return how many creates a relay received."""
    return sum((method, path) == ("POST", CREATE) for method, path, _ in relay.requests)


def test_a_later_create_is_one_request_and_what_the_pod_lost_is_made_again(
    pair: tuple[Door, Relay],
) -> None:
    at, relay = pair
    wanted = {"name": "mine", "public_key": SSH_KEY, "type": "ssh"}
    at.ask("POST", f"{COMPUTE}/os-keypairs", {"keypair": wanted}, status=201)
    made = [boot(at, key_name="mine").json()["server"]["id"]]
    relay.requests.clear()
    made.append(boot(at, key_name="mine").json()["server"]["id"])
    asked = [f"{method} {path}" for method, path, _ in relay.requests]
    assert [each for each in asked if not _is_background(each)] == [f"POST {CREATE}"]
    pod = at.pods["p1"]
    assert pod.call("DELETE", f"/flavors/{FLAVOR['id']}").is_success
    for each in pod.get("/os-keypairs")["keypairs"]:
        name = each["keypair"]["name"]
        assert pod.call("DELETE", f"/os-keypairs/{name}").is_success
    relay.requests.clear()
    made.append(boot(at, key_name="mine").json()["server"]["id"])
    assert creates(relay) == 2
    assert sorted(pod.server_ids()) == sorted(made)
    assert sorted(each["top_id"] for each in routings(at)) == sorted(made)
    refused = boot(at, networks=[{"uuid": UNKNOWN_ID}])
    assert refused.status_code == httpx.codes.BAD_REQUEST
    assert creates(relay) == 3
    assert at.history(PROJECT) == ["p1"]


def test_a_create_whose_answer_is_lost_is_looked_for_and_not_sent_again(
    pair: tuple[Door, Relay],
) -> None:
    at, relay = pair
    relay.hold(CREATE, passes=True)
    answer = boot(at)
    assert answer.status_code == httpx.codes.ACCEPTED, answer.text
    relay.release()
    uuid = answer.json()["server"]["id"]
    assert at.pods["p1"].server_ids() == [uuid]
    assert at.pods["p2"].server_ids() == []
    assert [each["top_id"] for each in routings(at)] == [uuid]
    assert at.history(PROJECT) == ["p1"]
    shown = at.ask("GET", f"{COMPUTE}/servers/{uuid}")["server"]
    assert shown["metadata"] == {}


def test_a_create_that_never_arrived_is_forgotten_after_a_while(pair: tuple[Door, Relay]) -> None:
    at, relay = pair
    relay.hold(CREATE, passes=False)
    answer = boot(at)
    assert answer.status_code == httpx.codes.SERVICE_UNAVAILABLE
    assert "Check the list" in answer.text
    relay.release()
    (open_one,) = routings(at)
    assert open_one["bottom_id"] is None
    assert at.history(PROJECT) == []
    wait_for("the routing is settled", lambda: routings(at) == [])
    assert at.pods["p1"].server_ids() == at.pods["p2"].server_ids() == []


def test_a_create_that_cannot_be_sent_counts_no_more(pair: tuple[Door, Relay]) -> None:
    at, relay = pair
    for name, key in (("k" * 250, SSH_KEY), ("mine", SSH_KEY)):
        wanted = {"name": name, "public_key": key, "type": "ssh"}
        at.ask("POST", f"{COMPUTE}/os-keypairs", {"keypair": wanted}, status=201)
    assert boot(at, key_name="k" * 250).status_code == httpx.codes.BAD_REQUEST
    relay.hold(f"{COMPUTE}/os-keypairs", passes=False)
    assert boot(at, key_name="mine").status_code == httpx.codes.SERVICE_UNAVAILABLE
    relay.release()
    assert creates(relay) == 0
    assert routings(at) == []
    assert at.history(PROJECT) == []


def test_a_create_that_arrives_late_is_adopted(pair: tuple[Door, Relay]) -> None:
    at, relay = pair
    at.pods.freeze("p1")
    try:
        answer = boot(at)
    finally:
        at.pods.thaw("p1")
    assert answer.status_code == httpx.codes.SERVICE_UNAVAILABLE
    relay.release()
    wait_for("nothing is open", lambda: all(each["bottom_id"] for each in routings(at)))
    assert [each["top_id"] for each in routings(at)] == at.pods["p1"].server_ids()
    # A create that is settled later binds the project, as any other.
    assert at.history(PROJECT) == (["p1"] if routings(at) else [])


def test_a_pod_that_refuses_is_skipped_and_the_binding_follows(pair: tuple[Door, Relay]) -> None:
    at, _ = pair
    other = {**FLAVOR, "vcpus": 3}
    assert at.pods["p1"].call("POST", "/flavors", {"flavor": other}).status_code == httpx.codes.OK
    answer = boot(at, min_count=2, max_count=2)
    assert answer.status_code == httpx.codes.ACCEPTED, answer.text
    assert at.history(PROJECT) == ["p2"]
    assert at.pods["p1"].server_ids() == []
    found = sorted(each["top_id"] for each in routings(at))
    assert found == sorted(at.pods["p2"].server_ids())
    assert len(found) == 2


def test_a_flavor_without_its_extra_specs_does_not_stay_in_a_pod(pair: tuple[Door, Relay]) -> None:
    at, relay = pair
    path = f"{COMPUTE}/flavors"
    at.ask("POST", path, {"flavor": SPECIAL}, token="admin")
    at.ask("POST", f"{path}/special/os-extra_specs", SPECS, token="admin")
    relay.answer("POST", f"{path}/special/", LOST)
    assert boot(at, flavorRef="special").status_code == httpx.codes.SERVICE_UNAVAILABLE
    assert at.pods["p1"].call("GET", "/flavors/special").status_code == httpx.codes.NOT_FOUND
    relay.release()
    relay.answer("POST", f"{path}/special/", REFUSED)
    # A refusal is final, so the next pod is asked.
    assert boot(at, flavorRef="special").status_code == httpx.codes.ACCEPTED
    assert at.history(PROJECT) == ["p2"]
    assert at.pods["p1"].call("GET", "/flavors/special").status_code == httpx.codes.NOT_FOUND
    relay.release()
    assert at.pods["p2"].get("/flavors/special/os-extra_specs") == SPECS


def test_a_pod_that_refuses_a_key_pair_is_skipped(pair: tuple[Door, Relay]) -> None:
    at, relay = pair
    wanted = {"name": "mine", "public_key": SSH_KEY, "type": "ssh"}
    at.ask("POST", f"{COMPUTE}/os-keypairs", {"keypair": wanted}, status=201)
    relay.answer("POST", f"{COMPUTE}/os-keypairs", REFUSED)
    assert boot(at, key_name="mine").status_code == httpx.codes.ACCEPTED
    assert at.history(PROJECT) == ["p2"]
    assert at.set("p2", maintenance=True).is_success
    told = boot(at, key_name="mine")
    assert told.status_code == httpx.codes.CONFLICT
    assert "key pair mine cannot be made" in told.text
