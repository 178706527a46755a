"""A slow pod counts as late only if it does not answer the request for the first page."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from innkeeper.engine.pods.lookups import Lookups
from innkeeper.engine.pods.tenants import Tenants
from innkeeper.systems.pods import pods
from tests.support.hostile_pods import GATEWAY, add_pod, hostile_pod
from tests.support.hostile_zones import Raw, SeenRequest, drip, http
from tests.support.running import Running, running

pytestmark = pytest.mark.timeout(300)

PARTS = "/attachments/detail"
BEGUN = b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n"


def second_page_drips(asked: SeenRequest) -> Raw:
    """Answer with a page that has a next page; the next page never ends."""
    if "marker=" in asked.query:
        return drip(BEGUN)
    return http({"attachments": [{"id": "a"}], "attachments_links": [{"rel": "next"}]})


def is_asked_again(door: Running) -> bool:
    """List the only pod's attachments, which fails. Return whether the next list asks the pod."""
    clouds = door.service.site.pods
    assert clouds is not None

    async def work() -> bool:
        here = clouds.beside()
        try:
            (pod,) = await here.engine.read(pods.every)
            lookups = Lookups(here, Tenants(here))
            told = await lookups.rows([pod], None, "block-storage", PARTS, {}, {}, "attachments")
            assert told == ([], [pod])
            return here.is_awaited(pod)
        finally:
            await here.client.close()

    return asyncio.run(work())


@pytest.mark.parametrize(
    ("answer", "expected"), [(lambda _: drip(BEGUN), False), (second_page_drips, True)]
)
def test_a_list_of_many_pages_makes_no_pod_late(
    tmp_path: Path, answer: Callable[[SeenRequest], Raw], expected: bool
) -> None:
    with running(tmp_path, **GATEWAY, pod_request_timeout_s=1.0) as door, hostile_pod() as pod:
        pod.answers["/v3/auth/tokens"] = lambda _: pod.token()
        pod.answers[PARTS] = answer
        add_pod(door, "p1", pod)
        assert is_asked_again(door) is expected
