"""Images and volume types, which a door translates; resizes and extensions, which it counts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from innkeeper.domain.door import MARK
from tests.support.pod_processes import GATEWAY, Door, door
from tests.support.pod_relays import two_pods
from tests.support.zone_processes import FLAVOR, wait_for
from tests.support.zone_relays import Relay

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
COMPUTE, VOLUME, IMAGE = "/compute/v2.1", "/volume/v3", "/image/v2/images"
LARGE = {**FLAVOR, "id": "2", "name": "sixteen", "vcpus": 16}
PUBLIC = {"disk_format": "raw", "container_format": "bare", "visibility": "public"}
REFUSED = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}"
LOST = b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
ACCEPTED = b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Door, Relay]]:
    """A door over two pods. The Compute API of the first one is behind a relay."""
    folder: Path = tmp_path_factory.mktemp("door")
    with door(folder, {**GATEWAY, "pod_request_timeout_s": "4"}) as made:
        for flavor in (FLAVOR, LARGE):
            made.ask("POST", f"{COMPUTE}/flavors", {"flavor": flavor}, token="admin")
        with two_pods(made, "compute", COMPUTE, hosts=8) as relay:
            yield made, relay


def image(at: Any, name: str) -> str:
    """Make a public image in a service, and return its id."""
    answer = at.call("POST", IMAGE, "admin", json={"name": name, **PUBLIC})
    assert answer.status_code == httpx.codes.CREATED, answer.text
    uuid = str(answer.json()["id"])
    headers = {"content-type": "application/octet-stream"}
    assert at.call("PUT", f"{IMAGE}/{uuid}/file", "admin", content=b"x", headers=headers).is_success
    return uuid


def boot(at: Door, token: str, **server: Any) -> httpx.Response:
    """Ask the door for a server."""
    wanted = {"name": "some", "flavorRef": "1", "imageRef": "", "networks": "none", **server}
    headers = {"openstack-api-version": "compute 2.37"}
    return at.send("POST", f"{COMPUTE}/servers", {"server": wanted}, token=token, headers=headers)


def booted(at: Door, token: str, **server: Any) -> str:
    """Boot a server, wait until it runs, and return its id."""
    answer = boot(at, token, **server)
    assert answer.status_code == httpx.codes.ACCEPTED, answer.text
    uuid = str(answer.json()["server"]["id"])
    wait_for("it runs", lambda: status(at, uuid, token) == "ACTIVE")
    return uuid


def status(at: Door, uuid: str, token: str) -> str:
    """Return the status of a server."""
    shown = at.ask("GET", f"{COMPUTE}/servers/{uuid}", token=token)["server"]
    return str(shown["status"])


def act(at: Door, uuid: str, token: str, **action: Any) -> httpx.Response:
    """Carry out an action on a server."""
    return at.send("POST", f"{COMPUTE}/servers/{uuid}/action", action, token=token)


def accepted(answer: httpx.Response) -> None:
    """Check that an action was accepted."""
    assert answer.is_success, answer.text


def cores(at: Door, token: str) -> int:
    """Return the cores that a project uses at the door."""
    told = at.ask("GET", f"{COMPUTE}/limits", token=token)["limits"]["absolute"]
    return int(told["totalCoresUsed"])


def volume(at: Door, token: str, **fields: Any) -> str:
    """Make a volume through the door, wait until it is available, and return its id."""
    answer = at.send("POST", f"{VOLUME}/volumes", {"volume": {"size": 1, **fields}}, token=token)
    assert answer.status_code == httpx.codes.ACCEPTED, answer.text
    path = f"{VOLUME}/volumes/{answer.json()['volume']['id']}"
    wait_for(
        "it is available",
        lambda: at.ask("GET", path, token=token)["volume"]["status"] == "available",
    )
    return path.rpartition("/")[2]


def bind(at: Door, project: str, pod: str) -> None:
    """Bind a project to a pod."""
    body = {"pod_binding": {"project_id": project, "pod_id": at.ids[pod]}}
    assert at.call("POST", "/bindings", body).is_success


def routings(at: Door, project: str) -> list[Any]:
    """Return the routings of a project."""
    found = at.get("/routings")["routings"]
    return [each for each in found if each["project_id"] == project]


def with_image(at: Door, image_id: str) -> list[str]:
    """Return the ids of the servers that were booted from an image of the door."""
    query = f"{COMPUTE}/servers?image={image_id}"
    return [each["id"] for each in at.ask("GET", query, token="u:images")["servers"]]


def test_images_are_those_of_the_door_and_are_found_by_name(two: tuple[Door, Relay]) -> None:
    at, relay = two
    top, there = image(at.processes[0], "linux"), image(at.pods["p1"].service, "linux")
    second = image(at.pods["p1"].service, "other")
    other = image(at.processes[0], "other")
    uuid = booted(at, "u:images", imageRef=top)
    assert at.pods["p1"].get(f"/servers/{uuid}")["server"]["image"]["id"] == there
    path = f"{COMPUTE}/servers/{uuid}"
    assert at.ask("GET", path, token="u:images")["server"]["image"]["id"] == top
    assert with_image(at, top) == [uuid]
    assert with_image(at, other) == with_image(at, there) == []
    relay.answer("POST", f"{path}/action", ACCEPTED)
    accepted(act(at, uuid, "u:images", rebuild={"imageRef": other, "name": "new"}))
    accepted(act(at, uuid, "u:images", rescue={"rescue_image_ref": other}))
    accepted(act(at, uuid, "u:images", unrescue=None))
    relay.release()
    sent = [body for _, where, body in relay.requests if where == f"{path}/action"]
    assert [msgspec.json.decode(each) for each in sent] == [
        {"rebuild": {"imageRef": second, "name": "new"}},
        {"rescue": {"rescue_image_ref": second}},
        {"unrescue": None},
    ]
    assert at.ask("GET", path, token="u:images")["server"]["image"]["id"] == other
    disk = {"source_type": "image", "destination_type": "local", "boot_index": 0}
    booted(at, "u:images", imageRef=top, block_device_mapping_v2=[{**disk, "uuid": top}])
    sent = [body for _, where, body in relay.requests if where == f"{COMPUTE}/servers"]
    last = msgspec.json.decode(sent[-1])["server"]
    assert (last["imageRef"], last["block_device_mapping_v2"][0]["uuid"]) == (there, there)
    answer = boot(at, "u:images", block_device_mapping_v2=[disk])
    assert answer.status_code == httpx.codes.BAD_REQUEST, answer.text
    bootable = {**disk, "destination_type": "volume", "volume_size": 1, "uuid": other}
    relay.answer("POST", f"{COMPUTE}/servers", REFUSED)
    answer = boot(at, "u:images", block_device_mapping_v2=[bootable])
    assert answer.status_code == httpx.codes.BAD_REQUEST, answer.text
    relay.release()
    sent = [body for _, where, body in relay.requests if where == f"{COMPUTE}/servers"]
    last = msgspec.json.decode(sent[-1])["server"]
    assert (last["imageRef"], last["block_device_mapping_v2"][0]["uuid"]) == ("", second)
    missing = image(at.processes[0], "only here")
    answer = boot(at, "u:none", imageRef=missing)
    assert answer.status_code == httpx.codes.CONFLICT
    assert "no image with the name only here" in answer.text
    answer = act(at, uuid, "u:images", rebuild={"imageRef": missing})
    assert answer.status_code == httpx.codes.CONFLICT, answer.text
    assert at.history("none") == [] == routings(at, "none")


def answered(body: Any) -> bytes:
    """Return the answer of a pod that accepts something."""
    content = msgspec.json.encode(body)
    head = f"HTTP/1.1 202 Accepted\r\nconnection: close\r\ncontent-length: {len(content)}\r\n\r\n"
    return head.encode() + content


def test_a_rebuild_shows_the_new_image_unless_the_pod_refuses_it(two: tuple[Door, Relay]) -> None:
    at, relay = two
    old, new = image(at.processes[0], "old"), image(at.processes[0], "new")
    there = {name: image(at.pods["p1"].service, name) for name in ("old", "new")}
    token = "u:rebuilds"
    uuid = booted(at, token, imageRef=old)
    path = f"{COMPUTE}/servers/{uuid}"

    def shown() -> str:
        return str(at.ask("GET", path, token=token)["server"]["image"]["id"])

    relay.answer("POST", f"{path}/action", REFUSED)
    answer = act(at, uuid, token, rebuild={"imageRef": new})
    assert answer.status_code == httpx.codes.BAD_REQUEST, answer.text
    assert shown() == old
    relay.release()
    told = answered({"server": {"id": uuid, "image": {"id": there["new"]}}})
    relay.answer("POST", f"{path}/action", told)
    answer = act(at, uuid, token, rebuild={"imageRef": new})
    relay.release()
    assert answer.json()["server"]["image"]["id"] == new == shown()
    strange = act(at, uuid, token, rebuild={"imageRef": new, "key_name": {"a": "b"}})
    assert strange.status_code == httpx.codes.BAD_REQUEST, strange.text


def test_a_create_may_ask_for_the_id_of_its_batch(two: tuple[Door, Relay]) -> None:
    at, _ = two
    answer = boot(at, "u:batch", return_reservation_id=True)
    assert answer.json().keys() == {"reservation_id"}, answer.text
    assert len(routings(at, "batch")) == 1
    assert len(at.ask("GET", f"{COMPUTE}/servers", token="u:batch")["servers"]) == 1


def test_what_only_the_pod_serves_is_forwarded(two: tuple[Door, Relay]) -> None:
    at, relay = two
    token = "u:parts"
    path = f"{COMPUTE}/servers/{booted(at, token)}"
    console = {"remote_console": {"protocol": "vnc", "type": "novnc"}}
    shown = b'{"remote_console": {"protocol": "vnc", "url": "http://console.example"}}'
    head = f"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {len(shown)}\r\n\r\n"
    relay.answer("POST", f"{path}/remote-consoles", head.encode() + shown)
    relay.answer("DELETE", f"{path}/os-interface/a", ACCEPTED)
    made = at.ask("POST", f"{path}/remote-consoles", console, token=token)
    assert made == msgspec.json.decode(shown)
    assert at.send("DELETE", f"{path}/os-interface/a", token=token).status_code == 202
    relay.release()
    sent = [each for each in relay.requests if each[1].startswith(f"{path}/")]
    assert [(method, where.removeprefix(path)) for method, where, _ in sent] == [
        ("POST", "/remote-consoles"),
        ("DELETE", "/os-interface/a"),
    ]
    assert msgspec.json.decode(sent[0][2]) == console
    strange = at.send("POST", f"{path}/remote-consoles", console, token="u:other")
    assert strange.status_code == httpx.codes.NOT_FOUND
    # This pod has no diagnostics, and says so in its own words.
    missing = at.send("GET", f"{path}/diagnostics", token=token)
    assert missing.status_code == httpx.codes.NOT_FOUND


def test_actions_that_make_images_are_refused(two: tuple[Door, Relay]) -> None:
    at, _ = two
    uuid = booted(at, "u:making")
    answer = act(at, uuid, "u:making", createImage={"name": "i"})
    assert answer.status_code == httpx.codes.BAD_REQUEST
    assert "createImage" in answer.text


def test_private_volume_types_are_made_in_the_pod_for_the_project(two: tuple[Door, Relay]) -> None:
    at, _ = two
    kind = {"name": "fast", "os-volume-type-access:is_public": False}
    made = at.ask("POST", f"{VOLUME}/types", {"volume_type": kind}, token="admin")["volume_type"]
    wanted = {"volume": {"size": 1, "volume_type": "fast"}}
    answer = at.send("POST", f"{VOLUME}/volumes", wanted, token="u:types")
    assert answer.status_code == httpx.codes.NOT_FOUND
    share = {"addProjectAccess": {"project": "types"}}
    path = f"{VOLUME}/types/{made['id']}/action"
    assert at.send("POST", path, share, token="admin").is_success
    uuid = volume(at, "u:types", volume_type="fast")
    shown = at.ask("GET", f"{VOLUME}/volumes/{uuid}", token="u:types")["volume"]
    assert shown["volume_type"] == "fast"
    pod = at.pods["p1"].service
    there = pod.call("GET", f"{VOLUME}/types?is_public=None", "admin").json()["volume_types"]
    (fast,) = [each for each in there if each["name"] == "fast"]
    assert fast["os-volume-type-access:is_public"] is False
    access = pod.call("GET", f"{VOLUME}/types/{fast['id']}/os-volume-type-access", "admin").json()
    assert [each["project_id"] for each in access["volume_type_access"]] == ["types"]


def test_a_server_on_a_volume_goes_to_its_pod_and_does_not_move_the_project(
    two: tuple[Door, Relay],
) -> None:
    at, _ = two
    near = volume(at, "u:disks")
    bootable = {"os-set_bootable": {"bootable": True}}
    accepted(at.send("POST", f"{VOLUME}/volumes/{near}/action", bootable, token="u:disks"))
    bind(at, "disks", "p2")
    far = volume(at, "u:disks")

    def disk(uuid: str, index: int) -> dict[str, Any]:
        return {
            "uuid": uuid, "source_type": "volume", "destination_type": "volume",
            "boot_index": index,
        }  # fmt: skip

    both = [disk(near, 0), disk(far, -1)]
    answer = boot(at, "u:disks", block_device_mapping_v2=both)
    assert answer.status_code == httpx.codes.BAD_REQUEST
    assert "not all in the same pod" in answer.text
    answer = boot(at, "u:disks", block_device_mapping_v2=[disk(near, 0)])
    assert answer.status_code == httpx.codes.ACCEPTED, answer.text
    (server,) = [each for each in routings(at, "disks") if each["resource_type"] == "server"]
    assert server["pod_id"] == at.ids["p1"]
    assert at.history("disks") == ["p1", "p2"]
    at.set("p1", maintenance=True)
    answer = boot(at, "u:disks", block_device_mapping_v2=[disk(near, 0)])
    at.set("p1", maintenance=False)
    assert answer.status_code == httpx.codes.CONFLICT, answer.text


def test_resizes_are_counted_in_both_directions(two: tuple[Door, Relay]) -> None:
    at, _ = two
    token = "u:resizes"
    quota = {"quota_set": {"cores": 16}}
    at.ask("PUT", f"{COMPUTE}/os-quota-sets/resizes", quota, token="admin")
    uuid = booted(at, token)
    assert cores(at, token) == 8
    accepted(act(at, uuid, token, resize={"flavorRef": "2"}))
    assert cores(at, token) == 16
    assert boot(at, token).status_code == httpx.codes.FORBIDDEN
    wait_for("it is resized", lambda: status(at, uuid, token) == "VERIFY_RESIZE")
    accepted(act(at, uuid, token, revertResize=None))
    wait_for("the small flavor counts", lambda: cores(at, token) == 8)
    assert status(at, uuid, token) == "ACTIVE"
    accepted(act(at, uuid, token, resize={"flavorRef": "2"}))
    wait_for("it is resized", lambda: status(at, uuid, token) == "VERIFY_RESIZE")
    accepted(act(at, uuid, token, confirmResize=None))
    wait_for("it runs", lambda: status(at, uuid, token) == "ACTIVE")
    assert cores(at, token) == 16
    accepted(act(at, uuid, token, resize={"flavorRef": "1"}))
    wait_for("it is resized", lambda: status(at, uuid, token) == "VERIFY_RESIZE")
    assert cores(at, token) == 16
    accepted(act(at, uuid, token, confirmResize=None))
    wait_for("the small flavor counts", lambda: cores(at, token) == 8)
    assert boot(at, token).status_code == httpx.codes.ACCEPTED
    over = act(at, uuid, token, resize={"flavorRef": "2"})
    assert over.status_code == httpx.codes.FORBIDDEN
    assert "Quota exceeded for cores" in over.text


def test_a_resize_is_counted_although_a_lost_delete_is_still_looked_after(
    two: tuple[Door, Relay],
) -> None:
    at, relay = two
    token = "u:undeleted"
    bind(at, "undeleted", "p1")
    uuid = booted(at, token, flavorRef="2")
    relay.answer("DELETE", f"{COMPUTE}/servers/{uuid}", LOST)
    lost = at.send("DELETE", f"{COMPUTE}/servers/{uuid}", token=token)
    assert lost.status_code == httpx.codes.SERVICE_UNAVAILABLE
    relay.release()
    accepted(act(at, uuid, token, resize={"flavorRef": "1"}))
    wait_for("it is resized", lambda: status(at, uuid, token) == "VERIFY_RESIZE")
    accepted(act(at, uuid, token, confirmResize=None))
    wait_for("the small flavor counts", lambda: cores(at, token) == 8)


def test_a_resize_that_the_pod_refuses_does_not_count(two: tuple[Door, Relay]) -> None:
    at, _ = two
    token = "u:refused"
    uuid = booted(at, token)
    accepted(act(at, uuid, token, pause=None))
    wait_for("it pauses", lambda: status(at, uuid, token) == "PAUSED")
    answer = act(at, uuid, token, resize={"flavorRef": "2"})
    assert answer.status_code == httpx.codes.CONFLICT, answer.text
    assert cores(at, token) == 8


def test_extensions_of_volumes_are_counted(two: tuple[Door, Relay]) -> None:
    at, _ = two
    token = "u:extends"

    def used() -> int:
        told = at.ask("GET", f"{VOLUME}/limits", token=token)["limits"]["absolute"]
        return int(told["totalGigabytesUsed"])

    quota = {"quota_set": {"gigabytes": 5}}
    at.ask("PUT", f"{VOLUME}/os-quota-sets/extends", quota, token="admin")
    uuid = volume(at, token)
    path = f"{VOLUME}/volumes/{uuid}/action"
    over = at.send("POST", path, {"os-extend": {"new_size": 6}}, token=token)
    assert over.status_code == httpx.codes.REQUEST_ENTITY_TOO_LARGE, over.text
    accepted(at.send("POST", path, {"os-extend": {"new_size": 3}}, token=token))
    assert used() == 3
    smaller = at.send("POST", path, {"os-extend": {"new_size": 2}}, token=token)
    assert smaller.status_code == httpx.codes.BAD_REQUEST, smaller.text
    assert used() == 3


def test_what_is_deleted_by_force_counts_no_more(two: tuple[Door, Relay]) -> None:
    at, _ = two
    token = "u:forces"
    uuid, stored = booted(at, token), volume(at, token)
    accepted(act(at, uuid, token, forceDelete={}))
    path = f"{VOLUME}/volumes/{stored}/action"
    accepted(at.send("POST", path, {"os-force_delete": {}}, token="admin"))
    wait_for("nothing is left", lambda: routings(at, "forces") == [])
    assert cores(at, token) == 0


def test_the_mark_stays_when_all_metadata_are_replaced(two: tuple[Door, Relay]) -> None:
    at, relay = two
    token, new = "u:marks", {"a": "b"}
    uuid, stored = booted(at, token), volume(at, token, metadata={"old": "1"})
    pod = at.pods["p1"]

    def there() -> list[Any]:
        held = pod.service.call("GET", f"{VOLUME}/volumes/{stored}", "admin").json()
        return [pod.get(f"/servers/{uuid}")["server"]["metadata"], held["volume"]["metadata"]]

    paths = f"{COMPUTE}/servers/{uuid}", f"{VOLUME}/volumes/{stored}"
    for path in paths:
        shown = at.ask("PUT", f"{path}/metadata", {"metadata": new}, token=token)
        assert shown == {"metadata": new}
    assert there() == [{**new, MARK: uuid}, {**new, MARK: stored}]
    shown = at.ask("PUT", paths[1], {"volume": {"metadata": {}, "name": "n"}}, token=token)
    assert (shown["volume"]["metadata"], shown["volume"]["name"]) == ({}, "n")
    assert there()[1] == {MARK: stored}
    for path in paths:
        more = {"metadata": {"c": "d", MARK: "of a user"}}
        assert MARK not in at.ask("POST", f"{path}/metadata", more, token=token)["metadata"]
        for method, body in (("GET", None), ("PUT", {"meta": {MARK: "x"}}), ("DELETE", None)):
            answer = at.send(method, f"{path}/metadata/{MARK}", body, token=token)
            assert answer.status_code == httpx.codes.NOT_FOUND, answer.text
    assert there() == [{**new, "c": "d", MARK: uuid}, {"c": "d", MARK: stored}]
    relay.answer("POST", f"{paths[0]}/action", ACCEPTED)
    accepted(act(at, uuid, token, rebuild={"metadata": new}))
    relay.release()
    sent = [body for _, where, body in relay.requests if where == f"{paths[0]}/action"]
    assert msgspec.json.decode(sent[-1]) == {"rebuild": {"metadata": {**new, MARK: uuid}}}
