"""Lists of attachments through a door, over a pod that answers as a test wants."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from tests.support.hostile_pods import HostilePod, hostile_pod
from tests.support.hostile_zones import Raw, SeenRequest, http
from tests.support.pod_processes import GATEWAY, Door, door

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
VOLUME = "11111111-1111-4111-8111-111111111111"
OTHER = "22222222-2222-4222-8222-222222222222"
LIST = "/attachments/detail"
HEADERS = {"openstack-api-version": "volume 3.60"}


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Door, HostilePod]]:
    """A door that knows a volume of each of two projects in a pod."""
    folder: Path = tmp_path_factory.mktemp("door")
    with door(folder, {**GATEWAY, "pod_failures_to_offline": "1000"}) as at, hostile_pod() as pod:
        pod.answers["/identity/v3/auth/tokens"] = lambda _: pod.token()
        pod_id = at.add("odd", pod.url)
        for uuid, project in ((VOLUME, "acme"), (OTHER, "other")):
            names = {"top_id": uuid, "bottom_id": uuid, "project_id": project}
            body = {"routing": {**names, "pod_id": pod_id, "resource_type": "volume"}}
            assert at.call("POST", "/routings", body).is_success
        yield at, pod


def row(number: int, **more: Any) -> dict[str, Any]:
    """Return an attachment."""
    return {"id": f"{number:08}-0000-4000-8000-000000000000", "volume_id": VOLUME, **more}


def listed(at: Door, query: str = "") -> Any:
    """List the attachments of a project."""
    path = f"/volume/v3/attachments/detail{query}"
    answer = at.send("GET", path, token="ann:acme", headers=HEADERS)
    assert answer.is_success, answer.text
    return answer.json()


def test_attachments_on_all_pages_of_a_pod_are_listed(odd: tuple[Door, HostilePod]) -> None:
    at, pod = odd
    rows = [row(number) for number in range(1500)]
    rows[7]["volume_id"] = OTHER

    def answer(asked: SeenRequest) -> Raw:
        query = parse_qs(asked.query)
        ids, marker = [each["id"] for each in rows], query.get("marker")
        start = ids.index(marker[0]) + 1 if marker else 0
        # Some pods do not say that there is a next page.
        return http({"attachments": rows[start : start + int(query["limit"][0])]})

    pod.answers[LIST] = answer
    first = listed(at, "?limit=1000")
    last = first["attachments"][-1]["id"]
    second = listed(at, f"?limit=1000&marker={last}")
    found = [each["id"] for each in (*first["attachments"], *second["attachments"])]
    assert sorted(found) == [each["id"] for each in rows if each["volume_id"] == VOLUME]


def test_a_list_that_repeats_itself_ends(odd: tuple[Door, HostilePod]) -> None:
    at, pod = odd
    pod.answers[LIST] = http({"attachments": [row(1), {"id": 5}, 7], "attachments_links": [{}]})
    assert [each["id"] for each in listed(at)["attachments"]] == [row(1)["id"]]


@pytest.mark.parametrize("deep", [40, 900])
def test_rows_that_are_nested_too_deeply_count_as_none(
    odd: tuple[Door, HostilePod], deep: int
) -> None:
    at, pod = odd
    nested = b"[" * deep + b"]" * deep
    pod.answers[LIST] = http(
        b'{"attachments": [{"id": "a", "volume_id": "%s", "x": %s}]}' % (VOLUME.encode(), nested)
    )
    assert listed(at) == {"attachments": [], "is_partial": True}
