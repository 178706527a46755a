"""Attachments and transfers of volumes through a door, and volumes whose create is in doubt."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from tests.support.pod_processes import GATEWAY, Door, door
from tests.support.pod_relays import two_pods
from tests.support.zone_processes import FLAVOR, wait_for
from tests.support.zone_relays import Relay

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
COMPUTE, VOLUME = "/compute/v2.1", "/volume/v3"
VOLUMES, ATTACHMENTS = f"{VOLUME}/volumes", f"{VOLUME}/attachments"
TRANSFERS = f"{VOLUME}/volume-transfers"
HEADERS = {"openstack-api-version": "volume 3.60"}
PATIENT = {"pod_failures_to_offline": "1000", "pod_request_timeout_s": "4"}
"""On a busy machine, answers take their time."""
LOST = b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Door, Relay]]:
    """A door over two pods. The volumes of the first one are behind a relay."""
    folder: Path = tmp_path_factory.mktemp("door")
    with door(folder, {**GATEWAY, **PATIENT}) as made:
        made.ask("POST", f"{COMPUTE}/flavors", {"flavor": FLAVOR}, token="admin")
        with two_pods(made, "block-storage", VOLUME) as relay:
            yield made, relay


@pytest.fixture
def two(served: tuple[Door, Relay]) -> Iterator[tuple[Door, Relay]]:
    """The door and the relay, which passes everything after the test."""
    yield served
    served[1].release()


def ask(at: Door, token: str, method: str, path: str, body: Any = None) -> httpx.Response:
    """Send a request to the Block Storage API of the door."""
    return at.send(method, path, body, token=token, headers=HEADERS)


def told(answer: httpx.Response) -> Any:
    """Return the body of a successful answer."""
    assert answer.is_success, answer.text
    return answer.json()


def volume(at: Door, token: str) -> str:
    """Make a volume, wait until it is available, and return its id."""
    made = told(ask(at, token, "POST", VOLUMES, {"volume": {"size": 1, "name": "v"}}))
    path = f"{VOLUMES}/{made['volume']['id']}"
    wait_for(
        "it is available",
        lambda: told(ask(at, token, "GET", path))["volume"]["status"] == "available",
    )
    return str(made["volume"]["id"])


def server(at: Door, token: str) -> str:
    """Boot a server, wait until it runs, and return its id."""
    body = {"server": {"name": "s", "flavorRef": "1", "imageRef": "", "networks": "none"}}
    made = at.ask("POST", f"{COMPUTE}/servers", body, token=token, status=202)
    path = f"{COMPUTE}/servers/{made['server']['id']}"
    wait_for("it runs", lambda: at.ask("GET", path, token=token)["server"]["status"] == "ACTIVE")
    return str(made["server"]["id"])


def bind(at: Door, project: str, pod: str) -> None:
    """Bind a project to a pod."""
    body = {"pod_binding": {"project_id": project, "pod_id": at.ids[pod]}}
    assert at.call("POST", "/bindings", body).is_success


def ids(at: Door, token: str, path: str = VOLUMES) -> set[str]:
    """Return the ids in a list of the door."""
    body = told(ask(at, token, "GET", path))
    return {each["id"] for each in body[path.rpartition("/")[2].removeprefix("volume-")]}


def used(at: Door, token: str) -> int:
    """Return the number of volumes that count for a project."""
    absolute = told(ask(at, token, "GET", f"{VOLUME}/limits"))["limits"]["absolute"]
    return int(absolute["totalVolumesUsed"])


def test_attachments_are_made_in_the_pod_of_the_volume(two: tuple[Door, Relay]) -> None:
    at, _ = two
    token = "u:attaching"
    near, beside = volume(at, token), server(at, token)
    bind(at, "attaching", "p2")
    far = volume(at, token)
    wanted = {"volume_uuid": far, "instance_uuid": beside}
    apart = ask(at, token, "POST", ATTACHMENTS, {"attachment": wanted})
    assert apart.status_code == httpx.codes.BAD_REQUEST
    assert "not in the same pod" in apart.text
    strange = {"volume_uuid": near, "instance_uuid": near}
    answer = ask(at, token, "POST", ATTACHMENTS, {"attachment": strange})
    assert answer.status_code == httpx.codes.BAD_REQUEST
    wanted = {"volume_uuid": near, "instance_uuid": beside}
    assert ask(at, "u:b", "POST", ATTACHMENTS, {"attachment": wanted}).status_code == 404
    made = told(ask(at, token, "POST", ATTACHMENTS, {"attachment": wanted}))["attachment"]
    other = told(ask(at, token, "POST", ATTACHMENTS, {"attachment": {"volume_uuid": far}}))
    assert ids(at, token, ATTACHMENTS) == {made["id"], other["attachment"]["id"]}
    assert ids(at, "u:b", ATTACHMENTS) == set()
    path = f"{ATTACHMENTS}/{made['id']}"
    assert told(ask(at, token, "GET", path))["attachment"]["volume_id"] == near
    assert ask(at, "u:b", "GET", path).status_code == httpx.codes.NOT_FOUND
    connector = {"attachment": {"connector": {"host": "h", "mountpoint": "/dev/vdb"}}}
    assert told(ask(at, token, "PUT", path, connector))["attachment"]["status"] == "attaching"
    assert ask(at, token, "POST", f"{path}/action", {"os-complete": {}}).status_code == 204
    assert told(ask(at, token, "GET", f"{VOLUMES}/{near}"))["volume"]["status"] == "in-use"
    first = told(ask(at, token, "GET", f"{ATTACHMENTS}?limit=1"))
    assert len(first["attachments"]) == len(first["attachments_links"]) == 1
    marker = first["attachments"][0]["id"]
    rest = told(ask(at, token, "GET", f"{ATTACHMENTS}?limit=1&marker={marker}"))
    assert rest["attachments"][0]["id"] != marker
    assert "attachments_links" not in rest
    at.pods.freeze("p2")
    try:
        partial = told(ask(at, token, "GET", ATTACHMENTS))
        assert [each["id"] for each in partial["attachments"]] == [made["id"]]
        assert partial["is_partial"]
        away = ask(at, token, "GET", f"{ATTACHMENTS}/{other['attachment']['id']}")
        assert away.status_code == httpx.codes.SERVICE_UNAVAILABLE
    finally:
        at.pods.thaw("p2")
    assert told(ask(at, token, "DELETE", path)) == {"attachments": []}
    assert told(ask(at, token, "GET", f"{VOLUMES}/{near}"))["volume"]["status"] == "available"


def offered(at: Door, token: str, uuid: str) -> tuple[str, dict[str, Any]]:
    """Offer a volume. Return the path of the transfer, and the body that accepts it."""
    body = {"transfer": {"volume_id": uuid, "name": "t"}}
    made = told(ask(at, token, "POST", TRANSFERS, body))["transfer"]
    return f"{TRANSFERS}/{made['id']}", {"accept": {"auth_key": made["auth_key"]}}


def test_volumes_are_transferred_between_projects_of_the_door(two: tuple[Door, Relay]) -> None:
    at, _ = two
    uuid = volume(at, "u:giver")
    path, key = offered(at, "u:giver", uuid)
    shown = told(ask(at, "u:giver", "GET", path))["transfer"]
    assert (shown["volume_id"], shown["source_project_id"]) == (uuid, "giver")
    assert len(ids(at, "u:giver", TRANSFERS)) == 1
    assert ids(at, "u:taker", TRANSFERS) == set()
    assert ask(at, "u:taker", "GET", path).status_code == httpx.codes.NOT_FOUND
    wrong = ask(at, "u:taker", "POST", f"{path}/accept", {"accept": {"auth_key": "wrong"}})
    assert httpx.codes.is_client_error(wrong.status_code), wrong.text
    quota = {"quota_set": {"volumes": 0}}
    at.ask("PUT", f"{VOLUME}/os-quota-sets/taker", quota, token="admin")
    full = ask(at, "u:taker", "POST", f"{path}/accept", key)
    assert full.status_code == httpx.codes.REQUEST_ENTITY_TOO_LARGE, full.text
    assert (used(at, "u:giver"), used(at, "u:taker")) == (1, 0)
    at.ask("PUT", f"{VOLUME}/os-quota-sets/taker", {"quota_set": {"volumes": 1}}, token="admin")
    assert ask(at, "u:taker", "POST", f"{path}/accept", key).status_code == 202
    assert (used(at, "u:giver"), used(at, "u:taker")) == (0, 1)
    assert (ids(at, "u:giver"), ids(at, "u:taker")) == (set(), {uuid})
    shown = told(ask(at, "u:taker", "GET", f"{VOLUMES}/{uuid}"))["volume"]
    assert shown["os-vol-tenant-attr:tenant_id"] == "taker"
    assert ask(at, "u:giver", "GET", f"{VOLUMES}/{uuid}").status_code == 404
    assert ask(at, "u:taker", "POST", f"{path}/accept", key).status_code == 404


def test_a_project_takes_back_what_it_offered_without_more_quota(two: tuple[Door, Relay]) -> None:
    at, _ = two
    uuid = volume(at, "u:back")
    quota = {"quota_set": {"volumes": 1, "gigabytes": 1}}
    at.ask("PUT", f"{VOLUME}/os-quota-sets/back", quota, token="admin")
    path, key = offered(at, "u:back", uuid)
    assert ask(at, "u:back", "POST", f"{path}/accept", key).status_code == 202
    assert (used(at, "u:back"), ids(at, "u:back")) == (1, {uuid})


def test_an_offer_can_be_withdrawn(two: tuple[Door, Relay]) -> None:
    at, _ = two
    uuid = volume(at, "u:shy")
    path, key = offered(at, "u:shy", uuid)
    assert ask(at, "u:other", "DELETE", path).status_code == httpx.codes.NOT_FOUND
    assert ask(at, "u:shy", "DELETE", path).status_code == httpx.codes.ACCEPTED
    assert ask(at, "u:other", "POST", f"{path}/accept", key).status_code == 404
    assert ids(at, "u:shy") == {uuid}


def test_a_transfer_whose_answer_is_lost_is_settled(two: tuple[Door, Relay]) -> None:
    at, relay = two
    uuid = volume(at, "u:from")
    path, key = offered(at, "u:from", uuid)
    relay.answer("POST", f"{path}/accept", LOST, passes=True)
    answer = ask(at, "u:to", "POST", f"{path}/accept", key)
    assert answer.status_code == httpx.codes.SERVICE_UNAVAILABLE
    assert "not known whether" in answer.text
    assert used(at, "u:to") == 1
    wait_for("it has the new project", lambda: ids(at, "u:to") == {uuid})
    assert (used(at, "u:from"), used(at, "u:to")) == (0, 1)


def test_a_transfer_that_never_arrived_changes_nothing(two: tuple[Door, Relay]) -> None:
    at, relay = two
    uuid = volume(at, "u:holder")
    path, key = offered(at, "u:holder", uuid)
    relay.answer("POST", f"{path}/accept", LOST)
    assert ask(at, "u:late", "POST", f"{path}/accept", key).status_code == 503
    wait_for("it is forgotten", lambda: used(at, "u:late") == 0)
    assert ids(at, "u:holder") == {uuid}
    relay.release()
    assert ask(at, "u:late", "POST", f"{path}/accept", key).status_code == 202
    assert ids(at, "u:late") == {uuid}


def test_a_retype_names_the_type_of_the_pod_and_keeps_to_its_quota(two: tuple[Door, Relay]) -> None:
    at, relay = two
    kinds = {}
    for name in ("slow", "fast"):
        body = {"volume_type": {"name": name}}
        made = at.ask("POST", f"{VOLUME}/types", body, token="admin")["volume_type"]
        kinds[name] = made["id"]
    wanted = {"volume": {"size": 1, "volume_type": "slow"}}
    uuid = told(ask(at, "u:retypes", "POST", VOLUMES, wanted))["volume"]["id"]
    path, body = f"{VOLUMES}/{uuid}/action", {"os-retype": {"new_type": kinds["fast"]}}
    quota = {"quota_set": {"volumes_fast": 0}}
    at.ask("PUT", f"{VOLUME}/os-quota-sets/retypes", quota, token="admin")
    assert ask(at, "u:retypes", "POST", path, body).status_code == 413
    assert at.send("DELETE", f"{VOLUME}/os-quota-sets/retypes", token="admin").is_success
    # This pod cannot change types, so the old type counts again.
    refused = ask(at, "u:retypes", "POST", path, body)
    assert refused.status_code == httpx.codes.BAD_REQUEST, refused.text
    sent = [msgspec.json.decode(each) for _, where, each in relay.requests if where == path]
    assert sent == [{"os-retype": {"new_type": "fast"}}]
    usage = f"{VOLUME}/os-quota-sets/retypes?usage=true"
    used_now = at.ask("GET", usage, token="admin")["quota_set"]
    assert used_now["volumes_slow"]["in_use"] == 1
    assert used_now["volumes_fast"]["in_use"] == 0
    deleted = [
        at.send("DELETE", f"{VOLUME}/types/{each}", token="admin") for each in kinds.values()
    ]
    assert [each.status_code for each in deleted] == [400, 202]
    assert "still in use" in deleted[0].text


def test_actions_with_bad_arguments_are_refused_at_the_door(two: tuple[Door, Relay]) -> None:
    at, relay = two
    path = f"{VOLUMES}/{volume(at, 'u:bad')}/action"
    for arguments in ({"new_size": "many"}, {"new_size": [1]}, {"new_size": 10**30}, {}, None):
        answer = ask(at, "u:bad", "POST", path, {"os-extend": arguments})
        assert answer.status_code == httpx.codes.BAD_REQUEST, answer.text
    answer = ask(at, "u:bad", "POST", path, {"os-reset_status": {"status": "error"}})
    assert answer.status_code == httpx.codes.FORBIDDEN
    assert [body for _, where, body in relay.requests if where == path] == []


@pytest.mark.parametrize("passes", [True, False])
def test_a_volume_whose_answer_is_lost_is_looked_for(two: tuple[Door, Relay], passes: bool) -> None:
    at, relay = two
    project = "made" if passes else "lost"
    token = f"u:{project}"
    relay.answer("POST", VOLUMES, LOST, passes=passes)
    answer = ask(at, token, "POST", VOLUMES, {"volume": {"size": 1, "name": "v"}})
    relay.release()
    there = at.pods["p1"].service.call("GET", f"{VOLUMES}/detail?all_tenants=1", "admin").json()
    made = [each["id"] for each in there["volumes"] if each["id"] in ids(at, token)]
    if passes:
        assert told(answer)["volume"]["id"] in ids(at, token)
        assert len(made) == 1
        assert at.history(project) == ["p1"]
    else:
        assert answer.status_code == httpx.codes.SERVICE_UNAVAILABLE
        wait_for("it is forgotten", lambda: used(at, token) == 0)
        assert (made, at.history(project)) == ([], [])
