"""Filters of lists at a door: by things whose names or ids differ in pods, and by hosts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.pod_processes import GATEWAY, Door, door
from tests.support.zone_processes import FLAVOR, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
COMPUTE, VOLUME, IMAGE = "/compute/v2.1", "/volume/v3", "/image/v2/images"
PUBLIC = {"disk_format": "raw", "container_format": "bare", "visibility": "public"}
ANN, BOB, NAME = "ann:acme", "bob:acme", "mine"
HEADERS = {"openstack-api-version": "compute 2.37"}
NEW_VOLUMES = {"openstack-api-version": "volume 3.60"}
KEYS = {
    ANN: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOo6/77apAV0iD/wg+PQlbwUpUdGCEtdwtIPZlZRjpyk a@b",
    BOB: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHUcZ7f8g6o8k7C2m4r1o0Z4vM4y8b6c2o2y3p4q5r6s b@b",
}
HOSTS = 4


@dataclass(frozen=True, slots=True)
class Furnished:
    """A door over two pods, where two users of one project have servers and volumes.

    ``servers`` has their ids, by user and pod. Ann's servers have an image.
    """

    at: Door
    servers: dict[tuple[str, str], str]
    volumes: dict[tuple[str, str], str]
    image: str
    types: dict[str, str]

    def listed(self, path: str, token: str = ANN) -> set[str]:
        """Return the ids in a list."""
        (rows,) = (
            rows
            for key, rows in self.at.ask("GET", path, token=token).items()
            if key in ("servers", "volumes")
        )
        return {each["id"] for each in rows}

    def of(self, token: str) -> set[str]:
        """Return the ids of a user's servers."""
        return {uuid for (user, _), uuid in self.servers.items() if user == token}


def image(at: Any) -> str:
    """Make a public image, and return its id."""
    answer = at.call("POST", IMAGE, "admin", json={"name": "cirros", **PUBLIC})
    assert answer.status_code == httpx.codes.CREATED, answer.text
    uuid = str(answer.json()["id"])
    headers = {"content-type": "application/octet-stream"}
    assert at.call("PUT", f"{IMAGE}/{uuid}/file", "admin", content=b"x", headers=headers).is_success
    return uuid


def boot(at: Door, token: str, **server: Any) -> str:
    """Boot a server, and return its id."""
    body = {"server": {"name": "some", "flavorRef": "1", "networks": "none", **server}}
    answer = at.send("POST", f"{COMPUTE}/servers", body, token=token, headers=HEADERS)
    assert answer.status_code == httpx.codes.ACCEPTED, answer.text
    return str(answer.json()["server"]["id"])


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Furnished]:
    folder: Path = tmp_path_factory.mktemp("door")
    with door(folder, {**GATEWAY, "pod_request_timeout_s": "10"}) as at:
        at.ask("POST", f"{COMPUTE}/flavors", {"flavor": FLAVOR}, token="admin")
        for name in ("p1", "p2"):
            pod = at.pods.start(name, HOSTS, {"build_plan_encryption_key": ""})
            at.add(name, pod.address)
            image(pod.service)
        ours = image(at.processes[0])
        kinds = {}
        for name in ("slow", "fast"):
            made = at.ask("POST", f"{VOLUME}/types", {"volume_type": {"name": name}}, token="admin")
            kinds[name] = str(made["volume_type"]["id"])
        for token, public_key in KEYS.items():
            wanted = {"name": NAME, "public_key": public_key, "type": "ssh"}
            at.ask("POST", f"{COMPUTE}/os-keypairs", {"keypair": wanted}, token=token, status=201)
        servers, volumes = {}, {}
        for pod_name in ("p1", "p2"):
            binding = {"pod_binding": {"project_id": "acme", "pod_id": at.ids[pod_name]}}
            assert at.call("POST", "/bindings", binding).is_success
            servers[ANN, pod_name] = boot(at, ANN, imageRef=ours, key_name=NAME)
            servers[BOB, pod_name] = boot(at, BOB, imageRef="", key_name=NAME)
            for kind in kinds:
                body = {"volume": {"size": 1, "volume_type": kind}}
                token = ANN if kind == "slow" else BOB
                made = at.ask("POST", f"{VOLUME}/volumes", body, token=token, status=202)
                volumes[kind, pod_name] = str(made["volume"]["id"])
        found = Furnished(at, servers, volumes, ours, kinds)
        for uuid in servers.values():
            wait_for("it runs", lambda uuid=uuid: shown(at, uuid)["status"] == "ACTIVE")  # type: ignore[misc]
        yield found


def shown(at: Door, uuid: str) -> Any:
    """Return a server as its administrator sees it."""
    return at.ask("GET", f"{COMPUTE}/servers/{uuid}", token="admin")["server"]


@pytest.mark.parametrize("place", ["servers", "servers/detail"])
def test_servers_are_found_by_their_key_pair_user_image_and_flavor(
    two: Furnished, place: str
) -> None:
    every = set(two.servers.values())
    path = f"{COMPUTE}/{place}"
    assert two.listed(f"{path}?key_name={NAME}") == every
    assert two.listed(f"{path}?key_name=other") == set()
    assert two.listed(f"{path}?user_id=ann&key_name={NAME}") == two.of(ANN)
    assert two.listed(f"{path}?user_id=bob") == two.of(BOB)
    assert two.listed(f"{path}?user_id=nobody") == set()
    assert two.listed(f"{path}?image={two.image}") == two.of(ANN)
    assert two.listed(f"{path}?flavor=1") == every
    assert two.listed(f"{path}?flavor=2") == set()
    everywhere = f"{path}?all_tenants=1&user_id=ann"
    assert two.listed(f"{everywhere}&project_id=acme", "admin") == two.of(ANN)
    assert two.listed(f"{everywhere}&project_id=other", "admin") == set()


def test_filtered_lists_have_pages(two: Furnished) -> None:
    path = f"{COMPUTE}/servers?user_id=bob&limit=1"
    first = two.at.ask("GET", path, token=ANN)
    (one,) = first["servers"]
    assert first["servers_links"][0]["rel"] == "next"
    rest = two.listed(f"{path}&marker={one['id']}")
    assert {one["id"], *rest} == two.of(BOB)


def test_servers_of_an_image_that_the_pod_lost_are_still_found(two: Furnished) -> None:
    pod = two.at.pods["p2"].service
    (there,) = pod.call("GET", IMAGE, "admin").json()["images"]
    assert pod.call("DELETE", f"{IMAGE}/{there['id']}", "admin").is_success
    alone = f"{COMPUTE}/servers?image={two.image}&key_name={NAME}"
    assert two.listed(alone) == two.of(ANN)


def test_only_administrators_filter_by_hosts(two: Furnished) -> None:
    uuid = two.servers[ANN, "p1"]
    host = shown(two.at, uuid)["OS-EXT-SRV-ATTR:host"]
    every = set(two.servers.values())
    assert two.listed(f"{COMPUTE}/servers?host={host}") == every
    admin = "admin:acme"
    for path in (
        f"{COMPUTE}/servers?host={host}&all_tenants=1",
        f"{COMPUTE}/servers?host={host}&all_tenants=1&project_id=acme",
    ):
        found = two.listed(path, "admin")
        assert uuid in found
        assert {shown(two.at, each)["OS-EXT-SRV-ATTR:host"] for each in found} == {host}
    assert two.listed(f"{COMPUTE}/servers?host=nowhere&all_tenants=1", "admin") == set()
    assert two.listed(f"{COMPUTE}/servers?host=nowhere", admin) == set()


def test_volumes_are_found_by_their_type_and_user(two: Furnished) -> None:
    path = f"{VOLUME}/volumes"
    slow = {two.volumes["slow", pod] for pod in ("p1", "p2")}
    fast = {two.volumes["fast", pod] for pod in ("p1", "p2")}
    assert two.listed(f"{path}?volume_type=slow") == slow
    assert two.listed(f"{path}?volume_type={two.types['fast']}") == fast
    assert two.listed(f"{path}/detail?volume_type_id={two.types['slow']}") == slow
    assert two.listed(f"{path}?volume_type=none") == set()
    assert two.listed(f"{path}?user_id=bob") == fast
    assert two.listed(f"{path}?user_id=bob&volume_type=slow") == set()
    assert two.listed(f"{path}?host=nowhere") == slow | fast


def test_volumes_are_found_by_the_new_name_of_their_type(two: Furnished) -> None:
    path = f"{VOLUME}/types/{two.types['slow']}"
    slow = {two.volumes["slow", pod] for pod in ("p1", "p2")}
    for name in ("slower", "slow"):
        body = {"volume_type": {"name": name}}
        two.at.ask("PUT", path, body, token="admin")
        assert two.listed(f"{VOLUME}/volumes?volume_type={name}") == slow


def test_filters_by_what_only_pods_know_are_refused(two: Furnished) -> None:
    for path in (
        f"{COMPUTE}/servers?all_tenants=1&instance_type_id=7",
        f"{VOLUME}/volumes?encryption_key_id=7",
    ):
        answer = two.at.send("GET", path, token="admin")
        assert answer.status_code == httpx.codes.BAD_REQUEST, answer.text
        assert "does not filter by" in answer.text


def test_summaries_of_volumes_have_filters(two: Furnished) -> None:
    def summed(query: str, token: str = ANN) -> tuple[int, Any]:
        path = f"{VOLUME}/volumes/summary{query}"
        answer = two.at.send("GET", path, token=token, headers=NEW_VOLUMES)
        return answer.status_code, answer.json().get("volume-summary", {}).get("total_count")

    uuid = two.volumes["slow", "p1"]
    assert summed("") == (httpx.codes.OK, 4)
    assert summed(f"?id={uuid}") == (httpx.codes.OK, 1)
    assert summed("?host=nowhere&all_tenants=1") == (httpx.codes.OK, 4)
    assert summed("?all_tenants=1", "admin") == (httpx.codes.OK, 4)
    assert summed("?availability_zone=nowhere") == (httpx.codes.OK, 0)
    for query in ("?user_id=ann", "?volume_type=slow", "?encryption_key_id=7", "?offset=1"):
        assert summed(query) == (httpx.codes.BAD_REQUEST, None)
    assert summed("?host=nowhere", "admin:acme") == (httpx.codes.BAD_REQUEST, None)


@pytest.mark.parametrize(
    ("query", "is_served"),
    [
        ("offset=0&with_count=false", True),
        ("all_tenants=1", True),
        ("offset=1", False),
        ("with_count=true", False),
    ],
)
def test_lists_of_volumes_ignore_no_parameter_that_changes_them(
    two: Furnished, query: str, is_served: bool
) -> None:
    path = f"{VOLUME}/volumes?{query}"
    answer = two.at.send("GET", path, token=ANN, headers=NEW_VOLUMES)
    expected = httpx.codes.OK if is_served else httpx.codes.BAD_REQUEST
    assert answer.status_code == expected, answer.text
    if is_served:
        assert two.listed(path) == set(two.volumes.values())
