"""Scheduler hints at a door: they choose the pod, and the pod follows them. Also summaries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.door_users import COMPUTE, VOLUME, WITH_NETWORKS, DoorUser, furnish
from tests.support.pod_processes import GATEWAY, Door, door
from tests.support.zone_processes import wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
UNKNOWN = "9bbff1cc-0d2a-4b60-8a55-2ea3e0e5c3b7"
HINTS = "OS-SCH-HNT:scheduler_hints"
WITH_SUMMARY = {"openstack-api-version": "volume 3.36"}


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    """A door over two pods."""
    folder: Path = tmp_path_factory.mktemp("door")
    with door(folder, {**GATEWAY, "pod_request_timeout_s": "10"}) as made:
        furnish(made)
        for name in ("p1", "p2"):
            made.add(name, made.pods.start(name, 2, {"build_plan_encryption_key": ""}).address)
        yield made


def moved(user: DoorUser, pod: str) -> None:
    """Bind the project of a user to a pod."""
    body = {"pod_binding": {"project_id": user.project, "pod_id": user.at.ids[pod]}}
    assert user.at.call("POST", "/bindings", body).is_success


def boot(user: DoorUser, **hints: Any) -> httpx.Response:
    """Ask for a server with hints."""
    fields = {"name": "some", "flavorRef": "g", "imageRef": "", "networks": "none"}
    body = {"server": fields, "os:scheduler_hints": hints}
    path, token = f"{COMPUTE}/servers", user.token
    return user.at.send("POST", path, body, token=token, headers=WITH_NETWORKS)


def store(user: DoorUser, **hints: Any) -> httpx.Response:
    """Ask for a volume with hints."""
    body = {"volume": {"size": 1, "volume_type": "std"}, HINTS: hints}
    return user.send("POST", f"{VOLUME}/volumes", body)


def place(user: DoorUser, answer: httpx.Response, kind: str) -> str:
    """Return the name of the pod where a server or volume was made."""
    assert answer.status_code == httpx.codes.ACCEPTED, answer.text
    return user.places()[answer.json()[kind]["id"]]


def test_a_volume_for_a_server_is_made_beside_it_after_the_project_moved(two: Door) -> None:
    user = DoorUser(two, "beside")
    server = user.booted()
    wait_for("it runs", lambda: user.is_active(server))
    moved(user, "p2")
    assert place(user, store(user), "volume") == "p2"
    answer = store(user, local_to_instance=server)
    assert place(user, answer, "volume") == "p1"
    volume = answer.json()["volume"]["id"]
    wait_for("it is there", lambda: user.volume(volume)["status"] == "available")
    assert user.attach(server, volume).is_success
    assert place(user, store(user, same_host=[volume]), "volume") == "p1"
    assert two.history("beside") == ["p1", "p2"]


def test_hints_that_name_too_much_are_refused_before_anything_is_looked_up(two: Door) -> None:
    user = DoorUser(two, "many")
    for answer in (boot(user, different_host=[UNKNOWN] * 101), store(user, same_host=["x"] * 101)):
        assert answer.status_code == httpx.codes.BAD_REQUEST, answer.text
        assert "more than 100" in answer.text


def test_servers_are_beside_and_apart_from_others_of_any_pod(two: Door) -> None:
    user = DoorUser(two, "apart")
    first = user.booted()
    wait_for("it runs", lambda: user.is_active(first))
    moved(user, "p2")
    second = boot(user, different_host=[first, UNKNOWN])
    assert place(user, second, "server") == "p2"
    beside = boot(user, same_host=first)
    assert place(user, beside, "server") == "p1"
    wait_for("it runs", lambda: user.is_active(beside.json()["server"]["id"]))
    there = [
        two.pods["p1"].get(f"/servers/{each}")["server"]["OS-EXT-SRV-ATTR:host"]
        for each in (first, beside.json()["server"]["id"])
    ]
    assert there[0] == there[1]
    both = boot(user, same_host=[first, second.json()["server"]["id"]])
    assert both.status_code == httpx.codes.BAD_REQUEST
    assert "not all in the same pod" in both.text


def test_hints_that_name_nothing_of_the_project_are_refused(two: Door) -> None:
    owner, other = DoorUser(two, "owner"), DoorUser(two, "other")
    server = owner.booted()
    for uuid in (UNKNOWN, server):
        for answer in (
            boot(other, same_host=[uuid]),
            store(other, local_to_instance=uuid),
            store(other, same_host=uuid),
        ):
            assert answer.status_code == httpx.codes.BAD_REQUEST
            assert "in the scheduler hints could not be found" in answer.text
    assert other.routings() == []


def test_a_group_may_be_named_in_a_list(two: Door) -> None:
    user = DoorUser(two, "listed")
    headers = {"openstack-api-version": "compute 2.64"}
    wanted = {"server_group": {"name": "mine", "policy": "affinity"}}
    path = f"{COMPUTE}/os-server-groups"
    made = two.send("POST", path, wanted, token=user.token, headers=headers)
    uuid = made.json()["server_group"]["id"]
    answer = boot(user, group=[uuid])
    assert answer.status_code == httpx.codes.ACCEPTED, answer.text
    members = user.ask("GET", f"{path}/{uuid}")["server_group"]["members"]
    assert members == [answer.json()["server"]["id"]]


def test_a_summary_adds_up_all_pods(two: Door) -> None:
    user = DoorUser(two, "sums")
    path = f"{VOLUME}/volumes/summary"

    def summary() -> Any:
        answer = two.send("GET", path, token=user.token, headers=WITH_SUMMARY)
        assert answer.status_code == httpx.codes.OK, answer.text
        return answer.json()

    nothing = {"total_count": 0, "total_size": 0, "metadata": {}}
    assert summary() == {"volume-summary": nothing}
    user.stored(size=1, metadata={"a": "b"})
    moved(user, "p2")
    user.stored(size=2, metadata={"a": "c"})
    both = {"total_count": 2, "total_size": 3, "metadata": {"a": ["b", "c"]}}
    assert summary() == {"volume-summary": both}
    assert two.send("GET", f"{path}?all_tenants=1", token=user.token).is_client_error
    two.pods.freeze("p2")
    try:
        found = summary()
        assert (found["volume-summary"]["total_count"], found["is_partial"]) == (1, True)
    finally:
        two.pods.thaw("p2")
