"""Creates that many pods refuse, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from innkeeper.engine.retry import PODS_MAX
from tests.support.hostile_pods import GATEWAY, HostilePod, add_pod, hostile_pod
from tests.support.hostile_zones import Raw, SeenRequest, http
from tests.support.pod_processes import PODS
from tests.support.running import Running, running

pytestmark = pytest.mark.timeout(300)

VOLUMES = "/volume/v3/volumes"
USER = "user:acme"
TOO_MANY = f"{PODS_MAX} clouds refused this request. No other cloud is asked."


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path, **GATEWAY) as made:
        yield made


def refusing(pod: HostilePod) -> HostilePod:
    """Let a pod have everything except room for volumes."""
    full = http({"overLimit": {"message": "no room", "code": 413}}, 413)
    pod.answers |= {
        "/v3/auth/tokens": lambda _: pod.token(),
        "/v3/projects": http({"projects": [{"id": "0a", "name": "acme", "domain_id": "default"}]}),
        "/volumes": full,
    }
    return pod


@pytest.fixture
def pods(door: Running) -> Iterator[list[HostilePod]]:
    """Pods: one more than the door asks for a request."""
    with ExitStack() as ends:
        made = [refusing(ends.enter_context(hostile_pod())) for _ in range(PODS_MAX + 1)]
        for number, pod in enumerate(made):
            add_pod(door, f"p{number}", pod)
        yield made


def create(door: Running, token: str) -> httpx.Response:
    """Ask for a volume."""
    answer: httpx.Response = door.call("POST", VOLUMES, token, json={"volume": {"size": 1}})
    return answer


def creates(pods: list[HostilePod]) -> list[int]:
    """Return how many creates each pod got."""
    return [
        sum((each.method, each.path) == ("POST", "/volumes") for each in pod.zone.asked)
        for pod in pods
    ]


def test_a_create_is_not_sent_to_every_pod_that_may_refuse_it(
    door: Running, pods: list[HostilePod]
) -> None:
    answer = create(door, USER)
    assert creates(pods) == [1] * PODS_MAX + [0]
    assert answer.status_code == httpx.codes.CONFLICT
    (told,) = answer.json().values()
    assert told["message"] == f"{TOO_MANY} The first one said: no room"
    told = create(door, "admin").json()
    assert TOO_MANY in str(told)
    assert "p0: it answers with the status 413; p1: " in str(told)
    assert door.call("GET", f"{PODS}/routings").json()["routings"] == []


def test_the_last_pod_that_is_asked_may_take_the_create(
    door: Running, pods: list[HostilePod]
) -> None:
    uuid = "11111111-1111-4111-8111-111111111111"
    taken = {"volume": {"id": uuid, "size": 1, "status": "creating", "metadata": {}}}

    def takes(asked: SeenRequest) -> Raw:
        return http(taken, 202)

    pods[PODS_MAX - 1].answers["/volumes"] = takes
    answer = create(door, USER)
    assert (answer.status_code, answer.json()["volume"]["id"]) == (httpx.codes.ACCEPTED, uuid)
    assert creates(pods) == [1] * PODS_MAX + [0]
