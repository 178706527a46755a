"""A door over bad pods: killed, paused, slow, full, lying, or refusing the door's password.

Two pods are real clouds. The third pod answers as a test wants, in an availability zone of its own.
Answers that no cloud should give are in ``tests/integration/test_door_answers.py``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support import service_processes
from tests.support.door_users import ACCEPTED, COMPUTE, NO_CONTENT, SMALL, DoorUser, furnish
from tests.support.hostile_pods import HostilePod, hostile_pod
from tests.support.hostile_zones import Raw, SeenRequest, drip, flood, http
from tests.support.pod_processes import GATEWAY, Door, door, password_of
from tests.support.zone_processes import wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

OK, BAD, FORBIDDEN, MISSING, CONFLICT, AWAY = 200, 400, 403, 404, 409, 503
TIMEOUT_S = 2.0
MARGIN_S = 10.0
"""On a busy machine, a request may take so much longer than the time for a pod."""
SETTINGS = {
    **GATEWAY,
    "pod_request_timeout_s": str(TIMEOUT_S),
    "pod_failures_to_offline": "3",
    "pod_measure_interval_s": "3600",
    "pod_recheck_interval_s": "3600",
}
ODD_ZONE = "odd"
UUID = "11111111-1111-4111-8111-111111111111"


@dataclass(slots=True)
class Odd:
    """The pod that answers requests for servers as a test wants.

    ``create`` and ``read`` answer creates and other requests. ``creates`` counts the creates, and
    ``kept`` are the servers of its lists.
    """

    pod: HostilePod
    create: Callable[[SeenRequest], Raw] | None = None
    read: Callable[[SeenRequest], Raw] | None = None
    kept: list[Any] = field(default_factory=list)
    creates: int = 0

    def answer(self, asked: SeenRequest) -> Raw:
        """Answer as the test wants, and otherwise like a well-behaved cloud."""
        path = asked.path.removeprefix("/v3") if "auth/tokens" in asked.path else asked.path
        if path == "/auth/tokens":
            return self.pod.token()
        if path.startswith("/flavors/"):
            return http({"flavor": {**SMALL, "id": "g", "os-flavor-access:is_public": True}})
        if path.startswith("/servers"):
            if asked.method == "POST" and path == "/servers":
                self.creates += 1
                return http({}, 500) if self.create is None else self.create(asked)
            if self.read is not None:
                return self.read(asked)
            if path == "/servers/detail":
                return http({"servers": self.kept})
        return self.pod.answer(asked)

    def behave(self) -> None:
        """Behave well again."""
        self.create = self.read = None
        self.kept.clear()
        self.creates = 0


@dataclass(frozen=True, slots=True)
class Cloud:
    """A door, and the pod that answers as a test wants."""

    at: Door
    odd: Odd


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    """A door over two real clouds and an odd one."""
    with door(tmp_path_factory.mktemp("bad"), SETTINGS) as made, hostile_pod() as pod:
        furnish(made)
        odd = Odd(pod)
        pod.zone.answers = odd.answer
        for name in ("p1", "p2"):
            started = made.pods.start(name, 2, {"build_plan_encryption_key": ""})
            made.add(name, started.address)
        made.add("odd", pod.url, az_name=ODD_ZONE, auth_url=pod.url)
        yield Cloud(made, odd)


@pytest.fixture(autouse=True)
def all_is_well(cloud: Cloud) -> None:
    """Let the odd pod behave, and wait until all pods are up, before each test."""
    cloud.odd.behave()
    for name in cloud.at.ids:
        cloud.at.wait_for_state(name, "up")


def within_s(limit_s: float, work: Callable[[], httpx.Response]) -> httpx.Response:
    """Return an answer that must come within a time."""
    begun_s = time.monotonic()
    answer = work()
    assert time.monotonic() - begun_s < limit_s
    return answer


def asked_again(answer: httpx.Response) -> bool:
    """Whether an answer is a 503 that says when to ask again."""
    return answer.status_code == AWAY and int(answer.headers["retry-after"]) > 0


def test_a_killed_pod_costs_only_its_own_work(cloud: Cloud) -> None:
    at, user, other = cloud.at, DoorUser(cloud.at, "killed"), DoorUser(cloud.at, "spared")
    there = user.booted()
    bind(other, "p2")
    here = other.booted()
    at.pods.kill("p1")
    try:
        refused = user.boot()
        assert asked_again(refused)
        assert user.places() == {there: "p1"}
        assert asked_again(user.send("GET", f"{COMPUTE}/servers/{there}"))
        assert asked_again(user.send("DELETE", f"{COMPUTE}/servers/{there}"))
        assert user.ask("GET", f"{COMPUTE}/servers")["is_partial"] is True
        assert other.server(here)["id"] == here
        other.booted()
        at.wait_for_state("p1", "down")
        newcomer = DoorUser(at, "newcomer")
        assert newcomer.place_of_new() == "p2"
        assert asked_again(user.boot()), "a project stays with its volumes"
        assert at.history("killed") == ["p1"]
    finally:
        at.pods.restart("p1")
    at.wait_for_state("p1", "up")
    assert user.servers() == [there]
    assert user.place_of_new() == "p1"
    assert "is_partial" not in user.ask("GET", f"{COMPUTE}/servers")


def bind(user: DoorUser, pod: str) -> None:
    """Bind a project to a pod."""
    body = {"pod_binding": {"project_id": user.project, "pod_id": user.at.ids[pod]}}
    assert user.at.call("POST", "/bindings", body).is_success


def test_a_paused_pod_makes_what_it_got_at_most_once_when_it_goes_on(cloud: Cloud) -> None:
    at, user, other = cloud.at, DoorUser(cloud.at, "paused"), DoorUser(cloud.at, "awake")
    user.booted()
    bind(other, "p2")
    other.booted()
    at.pods.freeze("p1")
    try:
        answer = within_s(3 * TIMEOUT_S + MARGIN_S, user.boot)
        assert asked_again(answer)
        assert "Check the list" in answer.text
        (begun,) = [each for each in user.routings() if each["bottom_id"] is None]
        assert user.used() == 2, "what may have been made counts"
        within_s(MARGIN_S, other.boot)
        at.wait_for_state("p1", "down")
        # This is longer than the door leaves a create undecided.
        time.sleep(5 * TIMEOUT_S)
        assert begun["id"] in [each["id"] for each in user.routings()]
    finally:
        at.pods.thaw("p1")
    wait_for("nothing is open", lambda: all(each["bottom_id"] for each in user.routings()))
    # A pod may drop a request whose client has left.
    assert len(user.servers()) == user.used()
    assert user.used() in {1, 2}
    path = f"/servers?all_tenants=1&project_id={user.project}"
    made = {each["id"] for each in at.pods["p1"].get(path)["servers"]}
    assert made == set(user.places()) == set(user.servers())


def test_a_slow_pod_is_waited_for_until_its_time_is_over(cloud: Cloud) -> None:
    user, odd = DoorUser(cloud.at, "slow"), cloud.odd

    def slowly(seconds: float, answer: Raw) -> Raw:
        time.sleep(seconds)
        return answer

    odd.create = lambda _: slowly(TIMEOUT_S / 4, http({"server": {"id": UUID}}, 202))
    assert user.boot(availability_zone=ODD_ZONE).status_code == ACCEPTED
    odd.read = lambda _: slowly(TIMEOUT_S / 4, http({"server": {"id": UUID, "name": "odd"}}))
    assert user.server(UUID)["name"] == "odd"
    for endless in (drip, flood):
        odd.read = lambda _, endless=endless: endless(b"HTTP/1.1 200 OK\r\n\r\n{")
        answer = within_s(
            TIMEOUT_S + MARGIN_S, lambda: user.send("GET", f"{COMPUTE}/servers/{UUID}")
        )
        assert asked_again(answer)
        told = user.ask("GET", f"{COMPUTE}/servers")
        assert (told["servers"], told["is_partial"]) == ([], True)
    odd.read = lambda _: http({"itemNotFound": {"message": "gone", "code": 404}}, 404)
    assert user.send("GET", f"{COMPUTE}/servers/{UUID}").status_code == MISSING
    assert user.routings() == []


def test_what_nonsense_left_open_is_settled_by_the_mark(cloud: Cloud) -> None:
    odd, user = cloud.odd, DoorUser(cloud.at, "settled")
    marks: list[Any] = []

    def create(asked: SeenRequest) -> Raw:
        marks.append(asked.body["server"]["metadata"])
        return http(b"<html>", 202)

    odd.create = create
    assert asked_again(user.boot(availability_zone=ODD_ZONE))
    odd.kept.append({"id": UUID, "name": "odd", "metadata": marks[0]})
    wait_for("it is adopted", lambda: user.places() == {UUID: "odd"})
    assert user.servers() == [UUID]
    assert (odd.creates, user.used()) == (1, 1)


def test_a_pod_cannot_claim_the_server_of_another_one(cloud: Cloud) -> None:
    odd, user = cloud.odd, DoorUser(cloud.at, "thief")
    victim = DoorUser(cloud.at, "victim")
    own = victim.booted()
    odd.create = lambda _: http({"server": {"id": own}}, 202)
    answer = user.boot(availability_zone=ODD_ZONE)
    assert answer.status_code in (CONFLICT, AWAY), answer.text
    assert own not in user.places()
    assert victim.places() == {own: "p1"}
    odd.kept += [{"id": own, "name": "stolen"}, {"id": UUID[:-2] + "ff", "name": "foreign"}]
    assert user.servers() == []
    assert victim.servers() == [own]


@pytest.mark.parametrize("status", [403, 409, 413])
def test_a_full_pod_is_skipped_and_its_refusal_told_only_without_another(
    cloud: Cloud, status: int
) -> None:
    at, odd, user = cloud.at, cloud.odd, DoorUser(cloud.at, f"full-{status}")
    odd.create = lambda _: http({"overLimit": {"message": "no room", "code": status}}, status)
    refused = user.boot(availability_zone=ODD_ZONE)
    assert (refused.status_code, "no room" in refused.text) == (status, True)
    assert (user.routings(), user.used(), at.history(user.project)) == ([], 0, [])
    # The odd pod is preferred, and the request names no availability zone.
    assert at.set("odd", weight=5).status_code == OK
    try:
        assert user.place_of_new() == "p1"
    finally:
        assert at.set("odd", weight=0).status_code == OK
    assert odd.creates == 2
    assert at.history(user.project) == ["p1"]


def test_a_pod_that_revokes_the_doors_password_is_away_until_it_has_the_new_one(
    cloud: Cloud, tmp_path: Path
) -> None:
    at, user = cloud.at, DoorUser(cloud.at, "revoked")
    settings = {"token_cache_s": "0.1", **service_processes.UNLIMITED}
    options = ("--demo-hosts", "1")
    with service_processes.serve_all(tmp_path / "pod", 1, settings, *options) as (pod,):
        secret = password_of(tmp_path / "pod")
        at.add("own", f"http://127.0.0.1:{pod.port}", password=secret, az_name="own")
        there = user.booted(availability_zone="own")
        token = service_processes.administrator(tmp_path / "pod", pod)
        found = pod.call("GET", "/identity/v3/users?name=admin", token).json()["users"][0]["id"]
        body = {"user": {"password": "another password", "original_password": secret}}
        path = f"/identity/v3/users/{found}/password"
        assert pod.call("POST", path, token, json=body).status_code == NO_CONTENT
        wait_for("it is away", lambda: asked_again(user.send("GET", f"{COMPUTE}/servers/{there}")))
        refused = user.boot(availability_zone="own")
        assert asked_again(refused), refused.text
        assert user.ask("GET", f"{COMPUTE}/servers")["is_partial"] is True
        assert user.places() == {there: "own"}
        # The pod may make the door wait, because the door sent a wrong password too often.
        wait_for(
            "the new password is stored",
            lambda: at.set("own", password="another password").status_code == OK,
        )
        at.wait_for_state("own", "up")
        assert user.server(there)["id"] == there
        again = user.booted(availability_zone="own")
        assert user.places() == {there: "own", again: "own"}
        for uuid in (there, again):
            user.delete(uuid)
    (binding,) = at.get(f"/bindings?project_id={user.project}")["pod_bindings"]
    assert at.call("DELETE", f"/bindings/{binding['id']}").status_code == NO_CONTENT
    assert at.call("DELETE", f"/pods/{at.ids.pop('own')}").status_code == NO_CONTENT
