"""The periodic check of many pods, some of which do not answer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from innkeeper.engine.pods.comparing import PODS_AT_ONCE
from innkeeper.engine.pods.reconciling import Reconciling
from tests.support.hostile_pods import GATEWAY, HostilePod, add_pod, hostile_pod
from tests.support.hostile_zones import Raw, SeenRequest, http
from tests.support.running import Running, running

pytestmark = pytest.mark.timeout(300)

SERVERS = "/servers/detail"
PATIENCE_S = 1.0
"""How long a list waits for a further list, which must not be requested at the same time."""


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path, **GATEWAY) as made:
        yield made


def logged_in(pod: HostilePod) -> Callable[[SeenRequest], Raw]:
    """Return an answer for the login path that the door derives from a pod's address."""
    return lambda _: pod.token()


@pytest.fixture
def pods(door: Running) -> Iterator[list[HostilePod]]:
    """Pods: one more than the door compares at the same time."""
    with ExitStack() as ends:
        made = [ends.enter_context(hostile_pod()) for _ in range(PODS_AT_ONCE + 1)]
        for number, pod in enumerate(made):
            pod.answers["/v3/auth/tokens"] = logged_in(pod)
            pod.answers["/v3/projects"] = http({"projects": []})
            pod.answers["/volumes/detail"] = http({"volumes": []})
            pod.answers[SERVERS] = http({"servers": []})
            add_pod(door, f"p{number}", pod)
        yield made


def check(door: Running) -> int:
    """Run the periodic check. Return the number of repairs."""
    clouds = door.service.site.pods
    assert clouds is not None

    async def work() -> int:
        here = clouds.beside()
        try:
            return await Reconciling(here).check()
        finally:
            await here.client.close()

    return asyncio.run(work())


def lists(pods: list[HostilePod]) -> list[int]:
    """Return how often each pod was asked for its servers."""
    return [sum(each.path.endswith(SERVERS) for each in pod.zone.asked) for pod in pods]


def test_only_a_few_pods_are_compared_at_once(door: Running, pods: list[HostilePod]) -> None:
    too_many = threading.Barrier(PODS_AT_ONCE + 1)

    def waits(_: SeenRequest) -> Raw:
        try:
            too_many.wait(PATIENCE_S)
        except threading.BrokenBarrierError:
            return http({"servers": []})
        return http({"servers": []})

    for pod in pods:
        pod.answers[SERVERS] = waits
    check(door)
    assert lists(pods) == [1] * len(pods)
    assert too_many.broken, "all pods were compared at once"


def test_a_check_that_failed_is_not_repeated_at_once(door: Running, pods: list[HostilePod]) -> None:
    pods[0].answers[SERVERS] = http({}, 500)
    check(door)
    check(door)
    assert lists(pods) == [1] * len(pods)
