"""Server groups of a door: all servers of a group are in one pod, which enforces its policy."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.pod_processes import GATEWAY, Door, door
from tests.support.pod_relays import two_pods
from tests.support.zone_processes import FLAVOR, wait_for
from tests.support.zone_relays import CREATE, WITHIN_S, Relay

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
COMPUTE, VOLUME = "/compute/v2.1", "/volume/v3"
TINY = {"id": "tiny", "name": "tiny", "vcpus": 1, "ram": 64, "disk": 1}
GROUPS = f"{COMPUTE}/os-server-groups"
HEADERS = {"openstack-api-version": "compute 2.71"}
SSH_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOo6/77apAV0iD/wg+PQlbwUpUdGCEtdwtIPZlZRjpyk a@b"
REFUSAL = b'{"forbidden": {"code": 403, "message": "Quota exceeded for cores."}}'
FULL = (
    b"HTTP/1.1 403 Forbidden\r\ncontent-type: application/json\r\ncontent-length: "
    b"%d\r\nconnection: close\r\n\r\n%s" % (len(REFUSAL), REFUSAL)
)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    """A door over two pods with two hosts each."""
    folder: Path = tmp_path_factory.mktemp("door")
    with door(folder, {**GATEWAY, "pod_request_timeout_s": "10"}) as made:
        for flavor in (FLAVOR, TINY):
            made.ask("POST", f"{COMPUTE}/flavors", {"flavor": flavor}, token="admin")
        for name in ("p1", "p2"):
            made.add(name, made.pods.start(name, 2, {"build_plan_encryption_key": ""}).address)
        yield made


def group(at: Door, token: str, policy: str = "anti-affinity") -> str:
    """Make a group at the door, and return its id."""
    wanted = {"server_group": {"name": "mine", "policy": policy}}
    made = at.send("POST", GROUPS, wanted, token=token, headers=HEADERS)
    assert made.is_success, made.text
    return str(made.json()["server_group"]["id"])


def boot(at: Door, token: str, in_group: str, **server: Any) -> httpx.Response:
    """Ask the door for a server of a group."""
    wanted = {"name": "some", "flavorRef": "1", "imageRef": "", "networks": "none", **server}
    body = {"server": wanted, "os:scheduler_hints": {"group": in_group}}
    return at.send("POST", f"{COMPUTE}/servers", body, token=token, headers=HEADERS)


def booted(at: Door, token: str, in_group: str) -> str:
    """Boot a server of a group, wait until it was built or failed, and return its id."""
    answer = boot(at, token, in_group)
    assert answer.status_code == httpx.codes.ACCEPTED, answer.text
    uuid = str(answer.json()["server"]["id"])
    path = f"{COMPUTE}/servers/{uuid}"
    wait_for("it is built", lambda: at.ask("GET", path, token=token)["server"]["status"] != "BUILD")
    return uuid


def groups_in(at: Door, pod: str) -> list[Any]:
    """Return all server groups of a pod."""
    found: list[Any] = at.pods[pod].get("/os-server-groups?all_projects=1")["server_groups"]
    return found


def named(at: Door, pod: str, uuid: str) -> list[Any]:
    """Return the server groups of a pod that stand for a group of the door."""
    return [each for each in groups_in(at, pod) if each["name"] == uuid]


def bind(at: Door, project: str, pod: str) -> None:
    """Bind a project to a pod."""
    body = {"pod_binding": {"project_id": project, "pod_id": at.ids[pod]}}
    assert at.call("POST", "/bindings", body).is_success


def test_servers_of_a_group_stay_in_one_pod_and_keep_to_the_policy(two: Door) -> None:
    token = "u:apart"
    uuid = group(two, token)
    first = booted(two, token, uuid)
    bind(two, "apart", "p2")
    second = booted(two, token, uuid)
    assert set(two.pods["p1"].server_ids()) >= {first, second}
    assert two.history("apart") == ["p1", "p2"]
    (there,) = groups_in(two, "p1")
    assert (there["name"], there["policy"]) == (uuid, "anti-affinity")
    assert sorted(there["members"]) == sorted([first, second])
    hosts = {
        two.pods["p1"].get(f"/servers/{each}")["server"]["OS-EXT-SRV-ATTR:host"]
        for each in (first, second)
    }
    assert len(hosts) == 2
    shown = two.ask("GET", f"{GROUPS}/{uuid}", token=token)["server_group"]
    assert shown["members"] == [first, second]
    (listed,) = two.ask("GET", GROUPS, token=token)["server_groups"]
    assert listed["members"] == [first, second]
    path = f"{COMPUTE}/servers/{first}"
    server = two.send("GET", path, token=token, headers=HEADERS).json()["server"]
    assert server["server_groups"] == [uuid]
    # The pod has no third host for the group, and the room in the other pod does not help.
    third = booted(two, token, uuid)
    assert two.ask("GET", f"{COMPUTE}/servers/{third}", token=token)["server"]["status"] == "ERROR"
    assert two.send("DELETE", f"{GROUPS}/{uuid}", token=token).status_code == 204
    wait_for("it is gone in the pod too", lambda: groups_in(two, "p1") == [])


def test_groups_that_cannot_be_joined_are_refused(two: Door) -> None:
    token = "u:refused"
    uuid = group(two, "u:other")
    for wanted in (uuid, "01a2175e-a98d-72a6-8460-bfc7707ac272"):
        answer = boot(two, token, wanted)
        assert answer.status_code == httpx.codes.BAD_REQUEST, answer.text
        assert "could not be found" in answer.text
    uuid = group(two, token)
    booted(two, token, uuid)
    bind(two, "refused", "p2")
    made = two.ask("POST", f"{VOLUME}/volumes", {"volume": {"size": 1}}, token=token, status=202)
    disk = {"uuid": made["volume"]["id"], "source_type": "volume", "boot_index": 0}
    disk["destination_type"] = "volume"
    answer = boot(two, token, uuid, block_device_mapping_v2=[disk])
    assert answer.status_code == httpx.codes.BAD_REQUEST, answer.text
    assert "must be in one pod" in answer.text
    quota = {"quota_set": {"server_group_members": 1}}
    two.ask("PUT", f"{COMPUTE}/os-quota-sets/refused", quota, token="admin")
    answer = boot(two, token, uuid)
    assert answer.status_code == httpx.codes.FORBIDDEN
    assert "too many servers in group" in answer.text


def test_first_servers_at_the_same_moment_make_one_group(two: Door) -> None:
    token = "u:crowd"
    uuid = group(two, token, "soft-affinity")
    # Small ones, since the servers of other tests fill the pods.
    with ThreadPoolExecutor(6) as clients:
        answers = list(clients.map(lambda _: boot(two, token, uuid, flavorRef="tiny"), range(6)))
    assert {each.status_code for each in answers} == {httpx.codes.ACCEPTED}
    (made,) = [*named(two, "p1", uuid), *named(two, "p2", uuid)]
    assert sorted(made["members"]) == sorted(each.json()["server"]["id"] for each in answers)


def test_a_group_that_the_pod_lost_is_made_again_once(two: Door) -> None:
    token = "u:lost"
    uuid = group(two, token, "soft-anti-affinity")
    assert boot(two, token, uuid, flavorRef="tiny").status_code == httpx.codes.ACCEPTED
    pod = next(name for name in ("p1", "p2") if named(two, name, uuid))
    (old,) = named(two, pod, uuid)
    assert two.pods[pod].call("DELETE", f"/os-server-groups/{old['id']}").is_success
    with ThreadPoolExecutor(4) as clients:
        answers = list(clients.map(lambda _: boot(two, token, uuid, flavorRef="tiny"), range(4)))
    assert {each.status_code for each in answers} == {httpx.codes.ACCEPTED}, answers[0].text
    (new,) = named(two, pod, uuid)
    assert new["id"] != old["id"]
    assert sorted(new["members"]) == sorted(each.json()["server"]["id"] for each in answers)


@pytest.fixture
def relayed(tmp_path: Path) -> Iterator[tuple[Door, Relay]]:
    """A door over two pods. The Compute API of the first one is behind a relay."""
    with door(tmp_path, {**GATEWAY, "pod_failures_to_offline": "100"}) as made:
        made.ask("POST", f"{COMPUTE}/flavors", {"flavor": FLAVOR}, token="admin")
        with two_pods(made, "compute", COMPUTE) as relay:
            yield made, relay


def keypair(at: Door, token: str) -> str:
    """Make a key pair at the door, and return its name."""
    wanted = {"name": "mine", "public_key": SSH_KEY, "type": "ssh"}
    at.ask("POST", f"{COMPUTE}/os-keypairs", {"keypair": wanted}, token=token, status=201)
    return "mine"


def test_a_first_server_follows_one_that_is_not_made_yet(relayed: tuple[Door, Relay]) -> None:
    at, relay = relayed
    token = "u:quick"
    uuid, key = group(at, token), keypair(at, token)
    came = relay.hold(f"{COMPUTE}/os-keypairs", passes=True, answers=True)
    with ThreadPoolExecutor() as clients:
        slow = clients.submit(boot, at, token, uuid, key_name=key)
        # The first boot has chosen the first pod, and makes its key pair there. The next boot
        # follows it, although the project moves meanwhile.
        assert came.wait(WITHIN_S)
        bind(at, "quick", "p2")
        quick = boot(at, token, uuid)
        relay.release()
        answers = [quick, slow.result()]
    assert [each.status_code for each in answers] == [httpx.codes.ACCEPTED] * 2, slow.result().text
    made = sorted(each.json()["server"]["id"] for each in answers)
    assert sorted(at.pods["p1"].server_ids()) == made
    assert at.pods["p2"].server_ids() == []


def test_first_servers_that_a_pod_refuses_go_on_to_the_next_one_together(
    relayed: tuple[Door, Relay],
) -> None:
    at, relay = relayed
    token = "u:refused"
    uuid = group(at, token)
    relay.answer("POST", CREATE, FULL)
    with ThreadPoolExecutor(4) as clients:
        answers = list(clients.map(lambda _: boot(at, token, uuid), range(4)))
    assert {each.status_code for each in answers} == {httpx.codes.ACCEPTED}, answers[0].text
    made = sorted(each.json()["server"]["id"] for each in answers)
    assert sorted(at.pods["p2"].server_ids()) == made
    assert at.history("refused") == ["p2"]
