"""Pods' lists of servers and volumes: pages, projects, amounts, and bad answers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from innkeeper.clients.pods import PodClient, PodSilent
from innkeeper.domain.door import MARK, SERVER, VOLUME, DoorAmounts, PodResource
from innkeeper.domain.pods import PodRouting
from innkeeper.engine.pods.comparing import PodComparison
from innkeeper.engine.pods.held_resources import HeldResources
from innkeeper.engine.pods.reconciling import LOST_MAX, repairable, report
from innkeeper.systems.pods.checks import PodDifference, PodFault
from tests.support.hostile_pods import HostilePod, hostile_pod
from tests.support.hostile_zones import Raw, SeenRequest, http
from tests.support.pod_rows import pod_of
from tests.support.stores import NOW

SERVERS, ONE = "/servers/detail", "/servers/s1"
FLAVOR = {"vcpus": 2, "ram": 512, "disk": 7, "ephemeral": 1}
ROW = {"id": "s1", "tenant_id": "t1", "status": "ACTIVE", "flavor": FLAVOR, "metadata": {MARK: "m"}}
TOLD = PodResource(SERVER, "s1", "acme", "m", DoorAmounts(2, 512, disk_gb=8))
UUID = "11111111-1111-4111-8111-111111111111"
NEXT = [{"rel": "next", "href": "http://elsewhere.example/"}]


@pytest.fixture
def pod() -> Iterator[HostilePod]:
    with hostile_pod() as made:
        made.answers["/projects"] = http({"projects": [{"id": "t1", "name": "acme"}]})
        yield made


def every(pod: HostilePod, kind: str = SERVER) -> dict[str, PodResource]:
    async def run() -> dict[str, PodResource]:
        client = PodClient(lambda: NOW, 4)
        try:
            return await HeldResources(client, pod.login(), 2.0).every(kind)
        finally:
            await client.close()

    return asyncio.run(run())


def one(pod: HostilePod) -> PodResource | None:
    async def run() -> PodResource | None:
        client = PodClient(lambda: NOW, 4)
        try:
            return await HeldResources(client, pod.login(), 2.0).one(SERVER, "s1")
        finally:
            await client.close()

    return asyncio.run(run())


def test_a_server_has_the_project_the_mark_and_the_amounts_of_its_flavor(pod: HostilePod) -> None:
    pod.answers[SERVERS] = http({"servers": [ROW]})
    assert every(pod) == {"s1": TOLD}


def test_all_pages_are_read_at_the_address_of_the_pod(pod: HostilePod) -> None:
    def answer(asked: SeenRequest) -> Raw:
        if "marker=s1" in asked.query:
            return http({"servers": [{**ROW, "id": "s2"}]})
        return http({"servers": [ROW], "servers_links": NEXT})

    pod.answers[SERVERS] = answer
    assert list(every(pod)) == ["s1", "s2"]


def test_a_list_without_end_is_an_error(pod: HostilePod) -> None:
    pod.answers[SERVERS] = http({"servers": [ROW], "servers_links": NEXT})
    with pytest.raises(PodSilent, match="does not end"):
        every(pod)


def test_a_project_that_is_not_in_the_list_is_asked_for(pod: HostilePod) -> None:
    pod.answers["/projects"] = http({"projects": []})
    pod.answers["/projects/t1"] = http({"project": {"id": "t1", "name": "acme"}})
    pod.answers[SERVERS] = http({"servers": [ROW]})
    assert every(pod) == {"s1": TOLD}
    pod.answers["/projects/t1"] = http({}, 404)
    assert every(pod)["s1"].project_id == "t1"


def test_volumes_have_sizes_and_a_pod_without_volumes_has_none(pod: HostilePod) -> None:
    row = {"id": "v1", "os-vol-tenant-attr:tenant_id": "t1", "size": 7, "status": "in-use"}
    pod.answers["/volumes/detail"] = http({"volumes": [row]})
    told = PodResource(VOLUME, "v1", "acme", None, DoorAmounts(size_gb=7))
    assert every(pod, VOLUME) == {"v1": told}
    pod.types = ("compute",)
    assert every(pod, VOLUME) == {}


def test_the_names_of_the_type_and_the_image_are_told_with_a_volume(pod: HostilePod) -> None:
    row = {"id": "v1", "tenant_id": "t1", "size": 7}
    known = {"volume_type": "fast", "volume_image_metadata": {"image_name": "i"}}
    odd = {"volume_type": 7, "volume_image_metadata": ["i"]}
    for fields, names in ((known, ("fast", "i")), (odd, (None, None))):
        pod.answers["/volumes/detail"] = http({"volumes": [{**row, **fields}]})
        volume = every(pod, VOLUME)["v1"]
        assert (volume.volume_type, volume.image_name) == names


def test_only_ids_of_servers_are_told_with_a_volume(pod: HostilePod) -> None:
    attached = [{"server_id": each} for each in (UUID, UUID + "0", f"urn:uuid:{UUID}", 7, None)]
    row = {"id": "v1", "tenant_id": "t1", "size": 7, "attachments": [*attached, "s", None]}
    pod.answers["/volumes/detail"] = http({"volumes": [row]})
    assert every(pod, VOLUME)["v1"].servers == (UUID,)


def test_only_a_404_means_that_a_resource_is_lost(pod: HostilePod) -> None:
    pod.answers[ONE] = http({"itemNotFound": {"code": 404}}, 404)
    assert one(pod) is None
    for status in (403, 404, 500):
        pod.answers[ONE] = http({}, status)
        with pytest.raises(PodSilent):
            one(pod)


def test_a_pod_that_is_too_old_for_amounts_tells_the_rest(pod: HostilePod) -> None:
    def answer(asked: SeenRequest) -> Raw:
        if "openstack-api-version" in asked.headers:
            return http({}, 406)
        return http({"servers": [{**ROW, "flavor": {"id": "1"}}]})

    pod.answers[SERVERS] = answer
    assert every(pod) == {"s1": replace(TOLD, amounts=None)}


BAD: dict[str, Any] = {
    "no list": {"servers": {}},
    "a row that is no object": {"servers": ["s1"]},
    "no id": {"servers": [{**ROW, "id": None}]},
    "an id that no database stores": {"servers": [{**ROW, "id": "a\x00b"}]},
    "an id without end": {"servers": [{**ROW, "id": "a" * 300}]},
    "an id that is longer than a UUID": {"servers": [{**ROW, "id": "a" * 37}]},
    "no project": {"servers": [{**ROW, "tenant_id": 7}]},
}


@pytest.mark.parametrize("case", sorted(BAD))
def test_an_answer_that_is_not_usable_is_an_error(pod: HostilePod, case: str) -> None:
    pod.answers[SERVERS] = http(BAD[case])
    with pytest.raises(PodSilent):
        every(pod)


@pytest.mark.parametrize("vcpus", [True, -1, 1e30, "2", None])
def test_amounts_that_are_not_usable_are_not_told(pod: HostilePod, vcpus: object) -> None:
    row = {**ROW, "flavor": {**FLAVOR, "vcpus": vcpus}}
    pod.answers[SERVERS] = http({"servers": [row]})
    assert every(pod)["s1"].amounts is None


def found(fault: PodFault, count: int) -> list[PodDifference]:
    """Return this number of differences of a kind."""
    row = PodRouting(1, "s1", "s1", 1, "acme", SERVER, NOW, NOW)
    return [PodDifference(fault, pod_of(1), SERVER, str(each), "", row) for each in range(count)]


def test_a_pod_that_lost_most_of_its_resources_is_left_to_the_operator() -> None:
    few, many = found(PodFault.LOST, LOST_MAX), found(PodFault.LOST, LOST_MAX + 1)
    others = [*found(PodFault.UNKNOWN, 1), *found(PodFault.AMOUNTS, 1)]
    assert repairable(PodComparison(few, LOST_MAX)) == few
    assert repairable(PodComparison([*many, *others], LOST_MAX + 1)) == others
    assert repairable(PodComparison(many, 2 * (LOST_MAX + 1))) == many
    assert repairable(PodComparison(found(PodFault.PROJECT, 1), 1)) == []


def test_what_is_left_to_the_operator_is_logged_and_a_lost_pod_in_one_line() -> None:
    lost, others = found(PodFault.LOST, LOST_MAX + 1), found(PodFault.PROJECT, 1)
    told = PodComparison([*lost, *others, *found(PodFault.AMOUNTS, 1)], LOST_MAX + 1)
    with capture_logs() as logs:
        report(pod_of(1), told, repairable(told))
    assert [each["event"] for each in logs] == ["pod_lost_most", "pod_differs"]
    assert logs[0]["lost"] == logs[0]["known"] == LOST_MAX + 1
