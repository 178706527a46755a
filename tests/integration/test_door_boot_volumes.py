"""Volumes that pods make for servers: a door counts them beforehand, and learns their ids later."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.pod_processes import GATEWAY, Door, door
from tests.support.zone_processes import FLAVOR, wait_for
from tests.support.zone_relays import CREATE, Relay, relay_to

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
COMPUTE, VOLUME, IMAGE = "/compute/v2.1", "/volume/v3", "/image/v2/images"
VOLUMES = f"{VOLUME}/volumes"
PUBLIC = {"disk_format": "raw", "container_format": "bare", "visibility": "public"}
HEADERS = {"openstack-api-version": "compute 2.67"}
LOST = b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
SIZE_GB = 2


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Door, Relay]]:
    """A door over two pods. The Compute API of the first one is behind a relay."""
    folder: Path = tmp_path_factory.mktemp("door")
    settings = {"pod_failures_to_offline": "1000", "pod_request_timeout_s": "4"}
    with door(folder, {**GATEWAY, **settings}) as made:
        made.ask("POST", f"{COMPUTE}/flavors", {"flavor": FLAVOR}, token="admin")
        for name in ("slow", "fast"):
            kind = {"volume_type": {"name": name}}
            made.ask("POST", f"{VOLUME}/types", kind, token="admin")
        first, second = (
            made.pods.start(name, 4, {"build_plan_encryption_key": ""}) for name in ("p1", "p2")
        )
        for each in (made.processes[0], first.service, second.service):
            image(each)
        with relay_to(first.address) as relay:
            made.add("p1", first.address, endpoints={"compute": relay.address + COMPUTE})
            made.add("p2", second.address)
            yield made, relay


@pytest.fixture
def at(served: tuple[Door, Relay]) -> Iterator[Door]:
    """The door. Its relay passes everything after the test."""
    yield served[0]
    served[1].release()


def image(service: Any) -> None:
    """Make a public image."""
    answer = service.call("POST", IMAGE, "admin", json={"name": "cirros", **PUBLIC})
    assert answer.status_code == httpx.codes.CREATED, answer.text
    uuid = str(answer.json()["id"])
    headers = {"content-type": "application/octet-stream"}
    path = f"{IMAGE}/{uuid}/file"
    assert service.call("PUT", path, "admin", content=b"x", headers=headers).is_success


def ours(at: Door) -> str:
    """Return the id of the image at the door."""
    return str(at.ask("GET", IMAGE, token="admin")["images"][0]["id"])


def blank(**more: Any) -> dict[str, Any]:
    """Return a block device that is a new volume."""
    usual = {"source_type": "blank", "destination_type": "volume", "volume_size": SIZE_GB}
    return {**usual, "boot_index": -1, **more}


def boot(at: Door, token: str, *devices: dict[str, Any], **server: Any) -> httpx.Response:
    """Ask for a server with these block devices."""
    wanted = {"name": "some", "flavorRef": "1", "imageRef": ours(at), "networks": "none", **server}
    body = {"server": {**wanted, "block_device_mapping_v2": list(devices)}}
    return at.send("POST", f"{COMPUTE}/servers", body, token=token, headers=HEADERS)


def booted(at: Door, token: str, *devices: dict[str, Any], **server: Any) -> str:
    """Boot a server, and return its id."""
    answer = boot(at, token, *devices, **server)
    assert answer.status_code == httpx.codes.ACCEPTED, answer.text
    return str(answer.json()["server"]["id"])


def volumes(at: Door, token: str, query: str = "") -> list[Any]:
    """Return the volumes that the door lists."""
    found: list[Any] = at.ask("GET", f"{VOLUMES}/detail{query}", token=token)["volumes"]
    return found


def used(at: Door, token: str) -> tuple[int, int]:
    """Return the number of volumes that count for a project, and their size."""
    absolute = at.ask("GET", f"{VOLUME}/limits", token=token)["limits"]["absolute"]
    return absolute["totalVolumesUsed"], absolute["totalGigabytesUsed"]


def is_settled(at: Door, token: str) -> bool:
    """Whether no routing of a project is open."""
    found = at.get(f"/routings?project_id={token.partition(':')[2]}")["routings"]
    return all(each["bottom_id"] for each in found)


def are_attached(at: Door, token: str) -> bool:
    """Whether all volumes of a project are attached. A pod shows attachments before that."""
    return all(each["attachments"] for each in volumes(at, token))


def gone(at: Door, token: str, uuid: str) -> bool:
    """Whether a server is gone."""
    return at.send("GET", f"{COMPUTE}/servers/{uuid}", token=token).status_code == 404


def test_new_volumes_of_servers_count_at_once_and_are_found(at: Door) -> None:
    token = "u:boots"
    root = {**blank(source_type="image", uuid=ours(at), boot_index=0), "volume_type": "fast"}
    uuid = booted(at, token, root, blank(delete_on_termination=True, volume_size=1), imageRef="")
    assert used(at, token) == (2, SIZE_GB + 1)
    wait_for("the volumes are known", lambda: is_settled(at, token))
    assert used(at, token) == (2, SIZE_GB + 1)
    server = at.ask("GET", f"{COMPUTE}/servers/{uuid}", token=token)["server"]
    attached = {each["id"] for each in server["os-extended-volumes:volumes_attached"]}
    assert {each["id"] for each in volumes(at, token)} == attached
    (fast,) = volumes(at, token, f"?volume_type=fast&image_id={ours(at)}")
    assert (fast["size"], fast["os-vol-tenant-attr:tenant_id"]) == (SIZE_GB, "boots")
    assert fast["user_id"] == "u"
    usage = at.ask("GET", f"{VOLUME}/os-quota-sets/boots?usage=true", token="admin")["quota_set"]
    assert usage["gigabytes_fast"]["in_use"] == SIZE_GB
    wait_for("the volumes are attached", lambda: are_attached(at, token))
    for each in attached:
        shown = at.ask("GET", f"{VOLUMES}/{each}", token=token)["volume"]
        assert shown["attachments"][0]["server_id"] == uuid
        assert at.send("GET", f"{VOLUMES}/{each}", token="u:other").status_code == 404
    assert at.send("DELETE", f"{COMPUTE}/servers/{uuid}", token=token).is_success
    wait_for("the server is gone", lambda: gone(at, token, uuid))
    # The pod deletes one of them with the server.
    wait_for("one volume is left", lambda: used(at, token) == (1, SIZE_GB))
    assert [each["id"] for each in volumes(at, token)] == [fast["id"]]
    assert at.send("DELETE", f"{VOLUMES}/{fast['id']}", token=token).is_success
    wait_for("no volume is left", lambda: used(at, token) == (0, 0))


def test_new_volumes_of_several_servers_are_told_apart(at: Door) -> None:
    token = "u:several"
    answer = boot(at, token, blank(), blank(volume_size=1), min_count=2, max_count=2)
    assert answer.status_code == httpx.codes.ACCEPTED, answer.text
    assert used(at, token) == (4, 2 * (SIZE_GB + 1))
    wait_for("the volumes are known", lambda: is_settled(at, token))
    assert sorted(each["size"] for each in volumes(at, token)) == [1, 1, SIZE_GB, SIZE_GB]
    wait_for("the volumes are attached", lambda: are_attached(at, token))
    servers = {each["attachments"][0]["server_id"] for each in volumes(at, token)}
    listed = at.ask("GET", f"{COMPUTE}/servers", token=token)["servers"]
    assert servers == {each["id"] for each in listed}


def test_new_volumes_that_exceed_a_quota_are_refused_and_nothing_counts(at: Door) -> None:
    token = "u:full"
    quota = {"quota_set": {"gigabytes": SIZE_GB, "volumes": 1}}
    at.ask("PUT", f"{VOLUME}/os-quota-sets/full", quota, token="admin")
    for devices in ((blank(volume_size=SIZE_GB + 1),), (blank(), blank())):
        answer = boot(at, token, *devices)
        assert answer.status_code == httpx.codes.FORBIDDEN, answer.text
        assert "olume" in answer.json()["forbidden"]["message"]
    assert at.get("/routings?project_id=full")["routings"] == []
    assert boot(at, token, blank()).status_code == httpx.codes.ACCEPTED


@pytest.mark.parametrize(
    "device",
    [
        {"volume_size": None},
        {"volume_size": "x"},
        {"volume_size": 0},
        {"source_type": "snapshot", "uuid": "9bbff1cc-0d2a-4b60-8a55-2ea3e0e5c3b7"},
        {"source_type": "image"},
        {"source_type": "image", "uuid": "9bbff1cc-0d2a-4b60-8a55-2ea3e0e5c3b7"},
        {"volume_type": "none"},
        {"source_type": "volume", "uuid": "9bbff1cc-0d2a-4b60-8a55-2ea3e0e5c3b7"},
    ],
)
def test_devices_that_cannot_be_made_are_refused(at: Door, device: dict[str, Any]) -> None:
    answer = boot(at, "u:bad", blank(**device))
    assert answer.status_code in (400, 404), answer.text
    assert at.get("/routings?project_id=bad")["routings"] == []


def test_old_devices_keep_to_the_pod_of_their_volume(at: Door) -> None:
    token = "u:old"
    body = {"volume": {"size": 1}}
    made = at.ask("POST", VOLUMES, body, token=token, status=202)["volume"]["id"]
    binding = {"pod_binding": {"project_id": "old", "pod_id": at.ids["p2"]}}
    assert at.call("POST", "/bindings", binding).is_success
    old = [{"device_name": "vdb", "volume_id": made}]
    # Innkeeper, as a pod, accepts only the new form, and says so.
    answer = boot(at, token, block_device_mapping=old)
    assert answer.status_code == httpx.codes.BAD_REQUEST
    assert "block_device_mapping_v2" in answer.text
    old = [{"device_name": "vdb", "snapshot_id": made}]
    assert "snapshots" in boot(at, token, block_device_mapping=old).text


def test_volumes_of_a_create_whose_answer_is_lost_are_found_later(
    at: Door, served: tuple[Door, Relay]
) -> None:
    token, relay = "u:lost", served[1]
    relay.answer("POST", CREATE, LOST, passes=True)
    answer = boot(at, token, blank())
    relay.release()
    assert answer.status_code == httpx.codes.ACCEPTED, answer.text
    wait_for("the volume is known", lambda: is_settled(at, token))
    assert used(at, token) == (1, SIZE_GB) and len(volumes(at, token)) == 1
    relay.answer("POST", CREATE, LOST)
    assert boot(at, token, blank()).status_code == httpx.codes.SERVICE_UNAVAILABLE
    relay.release()
    assert used(at, token) == (2, 2 * SIZE_GB)
    wait_for("nothing is expected any more", lambda: is_settled(at, token))
    assert used(at, token) == (1, SIZE_GB)


def test_a_volume_that_is_deleted_with_its_server_counts_no_more(at: Door) -> None:
    token = "u:attaches"
    uuid = booted(at, token)
    path = f"{COMPUTE}/servers/{uuid}"
    wait_for("it runs", lambda: at.ask("GET", path, token=token)["server"]["status"] == "ACTIVE")
    made = at.ask("POST", VOLUMES, {"volume": {"size": 1}}, token=token, status=202)["volume"]
    one = f"{VOLUMES}/{made['id']}"
    wait_for(
        "it is there", lambda: at.ask("GET", one, token=token)["volume"]["status"] != "creating"
    )
    body = {"volumeAttachment": {"volumeId": made["id"], "delete_on_termination": True}}
    headers = {"openstack-api-version": "compute 2.79"}
    place = f"{path}/os-volume_attachments"
    assert at.send("POST", place, body, token=token, headers=headers).is_success
    wait_for("in use", lambda: at.ask("GET", one, token=token)["volume"]["status"] == "in-use")
    assert at.send("DELETE", path, token=token).is_success
    wait_for("the volume is gone, too", lambda: used(at, token) == (0, 0))
