"""The client of pods, and measurements, against pods that answer well, late, wrongly or never."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest

from innkeeper.clients.pods import (
    BELIEVED,
    LoginRefused,
    NoService,
    PodAnswer,
    PodCall,
    PodClient,
    PodSilent,
    Sessions,
)
from innkeeper.engine.pods import measuring
from tests.support.hostile_pods import POOL, STATISTICS, HostilePod, hostile_pod
from tests.support.hostile_zones import Raw, SeenRequest, drip, flood, http
from tests.support.stores import NOW

TIMEOUT_S = 1.0
SOON_S = 5.0
FLAVORS = PodCall("compute", "GET", "/flavors", TIMEOUT_S)
DEEP = b"[" * 100_000


@pytest.fixture
def pod() -> Iterator[HostilePod]:
    with hostile_pod() as made:
        yield made


def measured(pod: HostilePod) -> dict[str, Any]:
    async def run() -> dict[str, Any]:
        client = PodClient(lambda: NOW, 4)
        try:
            return await measuring.measure(client, pod.login(), TIMEOUT_S)
        finally:
            await client.close()

    return asyncio.run(run())


def sent(pod: HostilePod, *calls: PodCall, **login: Any) -> list[PodAnswer]:
    async def run() -> list[PodAnswer]:
        client = PodClient(lambda: NOW, 4)
        try:
            return [await client.send(pod.login(**login), each) for each in calls]
        finally:
            await client.close()

    return asyncio.run(run())


def test_one_login_serves_many_requests(pod: HostilePod) -> None:
    assert [each.status for each in sent(pod, FLAVORS, FLAVORS)] == [200, 200]
    assert pod.logins == 1
    first = pod.zone.asked[0]
    user = first.body["auth"]["identity"]["password"]["user"]
    assert (user["name"], user["password"]) == ("door", "hush")
    assert first.body["auth"]["scope"]["project"]["name"] == "door"
    assert pod.zone.asked[1].headers["x-auth-token"] == "token-1"


def test_requests_at_the_same_moment_log_in_once(pod: HostilePod) -> None:
    async def run() -> None:
        client = PodClient(lambda: NOW, 4)
        await asyncio.gather(*(client.send(pod.login(), FLAVORS) for _ in range(8)))
        await client.close()

    asyncio.run(run())
    assert pod.logins == 1


def test_clients_of_other_event_loops_share_a_login(pod: HostilePod) -> None:
    sessions: Sessions = {}

    async def run() -> None:
        client = PodClient(lambda: NOW, 4, sessions=sessions)
        await client.send(pod.login(), FLAVORS)
        await client.close()

    asyncio.run(run())
    asyncio.run(run())
    assert pod.logins == 1
    sessions.clear()
    asyncio.run(run())
    assert pod.logins == 2


def test_another_password_needs_another_login(pod: HostilePod) -> None:
    async def run() -> None:
        client = PodClient(lambda: NOW, 4)
        for password in ("hush", "hush", "new"):
            await client.send(pod.login(password=password), FLAVORS)
        await client.close()

    asyncio.run(run())
    assert pod.logins == 2


def test_a_revoked_token_is_renewed_once(pod: HostilePod) -> None:
    def answer(asked: SeenRequest) -> Raw:
        return http({}, 401 if asked.headers["x-auth-token"] == "token-1" else 200)

    pod.answers["/flavors"] = answer
    assert sent(pod, FLAVORS)[0].status == 200
    assert pod.logins == 2
    pod.answers["/flavors"] = http({}, 401)
    assert sent(pod, FLAVORS)[0].status == 401
    assert pod.logins == 4


def test_a_refused_login_is_not_sent_again_for_a_while(pod: HostilePod) -> None:
    now = [NOW]
    pod.answers["/auth/tokens"] = http({}, 401)

    async def run() -> None:
        client = PodClient(lambda: now[0], 4)

        async def refused(**login: Any) -> int:
            with pytest.raises(LoginRefused):
                await client.send(pod.login(**login), FLAVORS)
            return len(pod.zone.asked)

        assert [await refused() for _ in range(3)] == [1, 1, 1]
        # Another password may be correct, so the pod is asked again.
        assert await refused(password="other") == 2
        now[0] += BELIEVED
        assert await refused() == 3
        del pod.answers["/auth/tokens"]
        session = await client.session(pod.login(), TIMEOUT_S, is_sure=True)
        assert session.token == "token-1"
        await client.close()

    asyncio.run(run())


def test_a_token_is_renewed_before_it_expires(pod: HostilePod) -> None:
    soon = "2026-01-01T00:00:30.000000Z"
    pod.answers["/auth/tokens"] = lambda _: pod.token(expires_at=soon)
    sent(pod, FLAVORS, FLAVORS)
    assert pod.logins == 2


def test_a_token_that_expires_at_an_odd_time_is_used_once_or_not_at_all(pod: HostilePod) -> None:
    pod.answers["/auth/tokens"] = lambda _: pod.token(expires_at="0001-01-01T00:00:00Z")
    sent(pod, FLAVORS, FLAVORS)
    assert pod.logins == 2
    pod.answers["/auth/tokens"] = lambda _: pod.token(expires_at="9999-12-31T23:59:59-12:00")
    with pytest.raises(PodSilent, match="no token document"):
        sent(pod, FLAVORS)


def test_a_region_and_own_addresses_choose_the_service(pod: HostilePod) -> None:
    assert sent(pod, FLAVORS, region_name="one")[0].status == 200
    with pytest.raises(NoService):
        sent(pod, FLAVORS, region_name="two")
    own = {"compute": f"{pod.url}/own"}
    sent(pod, FLAVORS, region_name="two", endpoints=own)
    assert pod.zone.asked[-1].path == "/own/flavors"


LOGINS: dict[str, tuple[Any, str]] = {
    "refused": (http({}, 401), "refuses user, password or project"),
    "broken": (http({}, 500), "status 500"),
    "no token": (http({"token": {}}, 201), "no usable token"),
    "no json": (http(b"<html>", 201, "x-subject-token: t"), "no token document"),
    "deep": (http(DEEP, 201, "x-subject-token: t"), "no token document"),
    "no expiry": (http({"token": {}}, 201, "x-subject-token: t"), "no token document"),
    "redirect": (http({}, 302, "location: http://127.0.0.1:9/"), "status 302"),
    "no http": (b"hello", "."),
    "silence": (b"", "."),
}


@pytest.mark.parametrize("case", LOGINS)
def test_a_login_that_fails_says_why_without_the_password(pod: HostilePod, case: str) -> None:
    told, why = LOGINS[case]
    pod.answers["/auth/tokens"] = told
    with pytest.raises(PodSilent, match=why) as caught:
        sent(pod, FLAVORS)
    assert "hush" not in str(caught.value)
    assert not (case == "refused" and caught.value.may_have_arrived)


def test_a_pod_that_sends_forever_is_cut_off(pod: HostilePod) -> None:
    begun_s = time.monotonic()
    for told in (drip(http(b"", length=10**6)), flood(http(b"", length=10**9))):
        pod.answers["/flavors"] = told
        with pytest.raises(PodSilent) as caught:
            sent(pod, FLAVORS)
        assert caught.value.may_have_arrived
    pod.answers["/auth/tokens"] = drip(http(b"", 201, length=10**6))
    with pytest.raises(PodSilent, match="no answer within") as caught:
        sent(pod, FLAVORS)
    assert not caught.value.may_have_arrived
    assert time.monotonic() - begun_s < SOON_S * TIMEOUT_S


def test_a_port_where_nobody_listens_did_not_get_the_request(pod: HostilePod) -> None:
    with pytest.raises(PodSilent) as caught:
        sent(pod, FLAVORS, auth_url="http://127.0.0.1:9/v3")
    assert not caught.value.may_have_arrived


def test_a_pod_is_measured_with_its_own_statistics(pod: HostilePod) -> None:
    found = measured(pod)
    assert found["kinds"] == {
        "vcpus": {"total": 16.0, "used": 4.0},
        "memory_mb": {"total": 4096.0, "used": 1024.0},
        "disk_gb": {"total": 100.0, "used": 10.0},
        "volume_gb": {"total": 50.0, "used": 30.0},
    }
    assert found["servers"] == {"count": 2.0, "running_vms": 3.0}


def test_a_cloud_without_sums_is_summed_up(pod: HostilePod) -> None:
    pod.answers["/os-hypervisors/statistics"] = http({}, 404)
    row = {name: value for name, value in STATISTICS.items() if name != "count"}
    pod.answers["/os-hypervisors/detail"] = http({"hypervisors": [row, row, 7]})
    found = measured(pod)
    assert found["kinds"]["vcpus"] == {"total": 32.0, "used": 8.0}
    assert found["servers"]["count"] == 2.0


def test_a_pod_without_volumes_has_none(pod: HostilePod) -> None:
    pod.types = ("compute",)
    found = measured(pod)
    assert found["kinds"]["volume_gb"] == {"total": 0.0, "used": 0.0}
    assert found["volumes_error"] is None


@pytest.mark.parametrize(
    ("services", "is_known"), [([], True), ([{"binary": "cinder-volume"}], False)]
)
def test_volume_services_without_pools_tell_nothing(
    pod: HostilePod, services: list[object], is_known: bool
) -> None:
    pod.answers["/scheduler-stats/get_pools"] = http({"pools": []})
    pod.answers["/os-services"] = http({"services": services})
    found = measured(pod)
    assert found["kinds"].get("volume_gb") == ({"total": 0.0, "used": 0.0} if is_known else None)
    assert (found["volumes_error"] is None) == is_known


@pytest.mark.parametrize("word", ["infinite", "unknown", None, -1])
def test_a_pool_without_a_bound_makes_a_pod_without_a_bound(pod: HostilePod, word: object) -> None:
    pools = [{"capabilities": POOL}, {"capabilities": {**POOL, "total_capacity_gb": word}}]
    pod.answers["/scheduler-stats/get_pools"] = http({"pools": pools})
    assert measured(pod)["kinds"]["volume_gb"] == {"total": None, "used": 55.0}


NO_UTF_8 = http(b'{"flavors": "\xff"}')
VOLUMES = [
    *(http({}, 500), http({"pools": 7}), http(b"no json"), http([]), http(DEEP), b"no http"),
    NO_UTF_8,
]


@pytest.mark.parametrize("told", VOLUMES)
def test_servers_are_measured_even_if_volumes_are_not(pod: HostilePod, told: bytes) -> None:
    pod.answers["/scheduler-stats/get_pools"] = told
    found = measured(pod)
    assert found["kinds"]["vcpus"]["used"] == 4.0
    assert "volume_gb" not in found["kinds"]
    assert found["volumes_error"]


@pytest.mark.parametrize(
    "told",
    [http({}, 403), http({}), http({"hypervisor_statistics": []}), http(b"7"), b"", NO_UTF_8],
)
def test_a_pod_whose_servers_cannot_be_measured_is_not_measured(
    pod: HostilePod, told: bytes
) -> None:
    pod.answers["/os-hypervisors/statistics"] = told
    with pytest.raises(PodSilent):
        measured(pod)


def test_amounts_that_are_none_are_left_out(pod: HostilePod) -> None:
    odd = {**STATISTICS, "vcpus_used": "many", "memory_mb": -5, "local_gb_used": 10**400}
    pod.answers["/os-hypervisors/statistics"] = http({"hypervisor_statistics": odd})
    kinds = measured(pod)["kinds"]
    assert "vcpus" not in kinds
    assert kinds["memory_mb"] == {"total": None, "used": 1024.0}
    assert "disk_gb" not in kinds
