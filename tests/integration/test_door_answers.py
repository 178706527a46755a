"""How a door treats answers of a pod that no cloud should give: one rule for each.

The pod is real, behind a relay that changes its answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from innkeeper.clients.kept_connections import ANSWER_BYTES_MAX
from tests.support.pod_processes import GATEWAY, Door, door
from tests.support.zone_processes import FLAVOR, USER, wait_for
from tests.support.zone_relays import UNFINISHED, Relay, relay_to

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
COMPUTE = "/compute/v2.1"
SERVERS = f"{COMPUTE}/servers"
PROJECT = USER.partition(":")[2]
BODY = {"server": {"name": "s", "flavorRef": "1", "imageRef": "", "networks": "none"}}
RETRY = "17"
PATIENT = {"pod_failures_to_offline": "1000", "pod_request_timeout_s": "4"}
"""On a busy machine, honest answers take their time."""


def raw(status: int, body: Any, *headers: str) -> bytes:
    """Return an answer."""
    content = body if isinstance(body, bytes) else msgspec.json.encode(body)
    lines = [f"HTTP/1.1 {status} Any", "content-type: application/json", *headers]
    lines += [f"content-length: {len(content)}", "connection: close", "", ""]
    return "\r\n".join(lines).encode() + content


LIES = {
    "error 500": raw(500, {"computeFault": {"code": 500, "message": "secret"}}),
    "bad gateway": raw(502, b"<html>secret</html>"),
    "redirect": raw(302, {}, "location: http://pod.example/secret"),
    "unauthorized": raw(401, {"error": {"message": "secret"}}),
    "no JSON": raw(200, b"<html>secret</html>"),
    "a list": raw(200, ["secret"]),
    "deep": raw(200, b'{"server":' + b"[" * 60 + b"]" * 60 + b"}"),
    "huge": raw(200, b'"' + b"x" * (ANSWER_BYTES_MAX + 1) + b'"'),
    "cut": raw(200, b"{}" * 100)[:-50],
    "a 404 of a proxy": raw(404, b"<html>secret</html>"),
    "a 404 of another API": raw(404, {"error": "secret"}),
    "slow": raw(200, b"{" + b" " * 100)[:-99] + UNFINISHED,
    "nothing": b"",
}
"""Answers that count as no answer."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Door, Relay]]:
    """A door over one pod, whose Compute API is behind a relay."""
    folder: Path = tmp_path_factory.mktemp("door")
    with door(folder, {**GATEWAY, **PATIENT}) as made:
        made.ask("POST", f"{COMPUTE}/flavors", {"flavor": FLAVOR}, token="admin")
        quota = {"quota_set": {"instances": -1}}
        made.ask("PUT", f"{COMPUTE}/os-quota-sets/{PROJECT}", quota, token="admin")
        pod = made.pods.start("p1", 12, {"build_plan_encryption_key": ""})
        with relay_to(pod.address) as relay:
            more = {"endpoints": {"compute": relay.address + COMPUTE}, "threshold_percent": 100}
            made.add("p1", pod.address, **more)
            yield made, relay


@pytest.fixture
def lying(served: tuple[Door, Relay]) -> Iterator[tuple[Door, Relay]]:
    """The door and the relay, which no longer lies after the test."""
    yield served
    served[1].release()


def routings(at: Door) -> list[Any]:
    """Return all routings."""
    found: list[Any] = at.get("/routings")["routings"]
    return found


def refused(answer: httpx.Response) -> str:
    """Return the message of an answer that says that the pod is away, and reveals nothing else."""
    assert answer.status_code == httpx.codes.SERVICE_UNAVAILABLE, answer.text
    assert int(answer.headers["retry-after"]) > 0
    assert "secret" not in answer.text
    return str(answer.json()["serviceUnavailable"]["message"])


def booted(at: Door) -> str:
    """Boot a server, and return its id."""
    return str(at.ask("POST", SERVERS, BODY, status=202)["server"]["id"])


@pytest.mark.parametrize(
    "lie", [*sorted(LIES.keys() - {"unauthorized"}), "no id", "an id that is none"]
)
def test_a_server_that_was_made_is_found_whatever_the_pod_answers(
    lying: tuple[Door, Relay], lie: str
) -> None:
    at, relay = lying
    strange = {"no id": {}, "an id that is none": {"server": {"id": "../secret"}}}
    answer = raw(202, strange[lie]) if lie in strange else LIES[lie]
    before = len(at.pods["p1"].server_ids())
    relay.answer("POST", SERVERS, answer, passes=True)
    told = at.ask("POST", SERVERS, BODY, status=202)
    relay.release()
    there = at.pods["p1"].server_ids()
    assert told["server"]["id"] in there
    assert len(there) == before + 1
    assert all(each["bottom_id"] for each in routings(at))


def test_a_server_that_was_not_made_is_forgotten_after_a_while(lying: tuple[Door, Relay]) -> None:
    at, relay = lying
    before = sorted(each["top_id"] for each in routings(at))
    for answer in LIES.values():
        relay.answer("POST", SERVERS, answer)
        told = at.send("POST", SERVERS, BODY)
        relay.release()
        assert "not known whether the resource was created" in refused(told)
    wait_for("all are forgotten", lambda: sorted(each["top_id"] for each in routings(at)) == before)
    assert sorted(at.pods["p1"].server_ids()) == before


@pytest.mark.parametrize("lie", ["a 404 of a proxy", "a 404 of another API"])
def test_a_create_is_not_sent_again_after_a_refusal_of_another_service(
    lying: tuple[Door, Relay], lie: str
) -> None:
    at, relay = lying
    booted(at)
    at.pods["p1"].service.call("DELETE", f"{COMPUTE}/flavors/{FLAVOR['id']}", "admin")
    before = len(relay.requests)
    relay.answer("POST", SERVERS, LIES[lie], passes=True)
    refused(at.send("POST", SERVERS, BODY))
    sent = [path for method, path, _ in relay.requests[before:] if method == "POST"]
    assert sent == [SERVERS]
    relay.release()
    # The pod itself says what it lacks.
    booted(at)


@pytest.mark.parametrize("lie", LIES)
def test_requests_for_one_server_get_a_503_and_change_nothing(
    lying: tuple[Door, Relay], lie: str
) -> None:
    at, relay = lying
    uuid = booted(at)
    path, answer = f"{SERVERS}/{uuid}", LIES[lie]
    for method in ("GET", "PUT", "POST", "DELETE"):
        relay.answer(method, SERVERS, answer)
    assert "does not answer" in refused(at.send("GET", path))
    for method, place, body in (
        ("PUT", path, {"server": {"name": "other"}}),
        ("POST", f"{path}/action", {"os-stop": None}),
        ("DELETE", path, None),
    ):
        assert "whether the request was carried out" in refused(at.send(method, place, body))
    listed = at.ask("GET", SERVERS)
    assert listed["servers"] == []
    assert listed["is_partial"]
    relay.release()
    # Nothing was done, so the server is still there.
    assert at.ask("GET", path)["server"]["name"] == "s"
    assert uuid in [each["id"] for each in at.ask("GET", SERVERS)["servers"]]


def test_a_delete_whose_answer_is_lost_ends_the_routing(lying: tuple[Door, Relay]) -> None:
    at, relay = lying
    uuid = booted(at)
    relay.answer("DELETE", SERVERS, LIES["bad gateway"], passes=True)
    assert "not known whether" in refused(at.send("DELETE", f"{SERVERS}/{uuid}"))
    relay.release()
    wait_for("it is gone", lambda: uuid not in [each["top_id"] for each in routings(at)])


def test_too_many_requests_are_passed_on_and_nothing_is_made(lying: tuple[Door, Relay]) -> None:
    at, relay = lying
    uuid, before = booted(at), len(routings(at))
    answer = raw(429, {"overLimit": {"code": 429, "message": "slowly"}}, f"retry-after: {RETRY}")
    for method in ("GET", "POST", "DELETE"):
        relay.answer(method, SERVERS, answer)
    for method, path, body in (
        ("POST", SERVERS, BODY),
        ("GET", f"{SERVERS}/{uuid}", None),
        ("POST", f"{SERVERS}/{uuid}/action", {"os-stop": None}),
        ("DELETE", f"{SERVERS}/{uuid}", None),
    ):
        told = at.send(method, path, body)
        assert told.status_code == httpx.codes.TOO_MANY_REQUESTS, told.text
        assert told.headers["retry-after"] == RETRY
    assert at.ask("GET", SERVERS)["is_partial"]
    assert len(routings(at)) == before


def test_a_list_of_nonsense_costs_only_the_rows_of_its_pod(lying: tuple[Door, Relay]) -> None:
    at, relay = lying
    booted(at)
    nonsense: tuple[Any, ...] = (None, {}, [1], [{"id": 1}], [{"name": "no id"}], [{"id": "x"}])
    for rows in nonsense:
        relay.answer("GET", SERVERS, raw(200, {"servers": rows}))
        told = at.ask("GET", SERVERS)
        assert told["servers"] == []
        relay.release()
    endless = {"servers": [{"id": "x"}], "servers_links": [{"rel": "next", "href": "x"}]}
    relay.answer("GET", SERVERS, raw(200, endless))
    assert at.ask("GET", SERVERS)["is_partial"]
