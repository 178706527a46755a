"""The processes of one database: one leads, and the others forward their writes to it."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.databases import DATABASES
from tests.support.leading import FLAVORS, WITHIN_S, Led, eventually, forwards, led, made
from tests.support.service_processes import UNLIMITED, end, serve_all, started, wait_until_ready

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]
ASKED = 40
OK, CONFLICT, BAD, GONE = (
    httpx.codes.OK,
    httpx.codes.CONFLICT,
    httpx.codes.BAD_REQUEST,
    httpx.codes.SERVICE_UNAVAILABLE,
)
LONG = "a-data-folder-with-a-name-that-is-too-long-for-the-path-of-a-socket-" * 2


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def cloud(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Led]:
    """Two services on each kind of database."""
    with led(tmp_path_factory.mktemp("leader"), request.param) as found:
        yield found


def test_writes_are_forwarded_and_reads_are_not(cloud: Led) -> None:
    before = forwards(cloud.follower)
    assert made(cloud.follower, "one") == OK
    shown = [each.call("GET", f"{FLAVORS}/one").json() for each in (cloud.leader, cloud.follower)]
    assert shown[0]["flavor"]["id"] == shown[1]["flavor"]["id"] == "one"
    # The links in answers have the address of the process that the client asked.
    link = shown[1]["flavor"]["links"][0]["href"]
    assert link.startswith(str(cloud.follower.http.base_url).rstrip("/"))
    after = forwards(cloud.follower)
    assert after["answered"] == before["answered"] + 1
    assert after["kept"] == before["kept"]
    assert sum(forwards(cloud.leader).values()) == 0 or forwards(cloud.leader)["answered"] == 0


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", FLAVORS, {"flavor": {"name": "x", "ram": "many", "vcpus": 1, "disk": 1}}),
        ("POST", FLAVORS, {"flavor": {"name": "", "ram": 1, "vcpus": 1, "disk": 1}}),
        ("DELETE", f"{FLAVORS}/unknown", None),
        ("POST", "/compute/v2.1/servers", {"server": {"name": "a", "flavorRef": "none"}}),
        ("PUT", "/placement/traits/LOWER", None),
        ("PUT", "/placement/allocations/no-uuid", {"allocations": {}}),
        ("POST", "/placement/resource_providers", {"name": "p", "uuid": "no uuid"}),
        ("POST", "/volume/v3/volumes", {"volume": {"size": -1}}),
        ("POST", "/reservation/v1/leases", {"name": "lease"}),
        ("DELETE", "/compute/v2.1/servers/00000000-0000-4000-8000-000000000000", None),
    ],
)
def test_refusals_are_the_same_at_both(cloud: Led, method: str, path: str, body: Any) -> None:
    answers = [
        each.call(method, path, **({} if body is None else {"json": body}))
        for each in (cloud.leader, cloud.follower)
    ]
    assert answers[0].status_code == answers[1].status_code
    assert BAD <= answers[0].status_code < httpx.codes.INTERNAL_SERVER_ERROR
    texts = [REQUEST_ID.sub("req", each.text) for each in answers]
    assert texts[0] == texts[1]
    names = [sorted(each.headers) for each in answers]
    assert names[0] == names[1]


REQUEST_ID = re.compile(r"req-[0-9a-f-]{36}")


def test_a_conflict_of_two_processes_is_found(cloud: Led) -> None:
    with ThreadPoolExecutor(2) as pool:
        for number in range(ASKED):
            asked = [
                pool.submit(made, each, f"same-{number}") for each in (cloud.leader, cloud.follower)
            ]
            assert sorted(each.result() for each in asked) == [OK, CONFLICT]


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP])
def test_another_process_leads(end: signal.Signals, tmp_path: Path) -> None:
    with led(tmp_path, "postgresql") as cloud:
        cloud.leader.process.send_signal(end)
        begun_s = time.monotonic()
        acknowledged: list[str] = []
        while not cloud.follower.leads():
            name = f"after-{len(acknowledged)}-{time.monotonic_ns()}"
            status = made(cloud.follower, name)
            # Only writes that were forwarded before the leader's end was noticed can be in doubt.
            assert status in {OK, GONE}
            acknowledged += [name] * (status == OK)
            assert time.monotonic() - begun_s < WITHIN_S
        assert made(cloud.follower, "last") == OK
        listed = cloud.follower.call("GET", f"{FLAVORS}?limit=1000").json()["flavors"]
        assert {*acknowledged, "last"} <= {each["id"] for each in listed}
        if end == signal.SIGSTOP:
            cloud.leader.process.send_signal(signal.SIGCONT)
            # From now on, the process forwards its writes.
            eventually(lambda: not cloud.leader.leads())
            eventually(
                lambda: (
                    made(cloud.leader, f"x-{time.monotonic_ns()}") == OK
                    and forwards(cloud.leader)["answered"] > 0
                )
            )


def test_processes_forward_with_tls(tmp_path: Path) -> None:
    """Their data folder's name is too long for a socket. So they connect like two machines."""
    folder = tmp_path / LONG
    with led(folder, "postgresql", {"peer_host": "127.0.0.1", "peer_port": "18790"}) as cloud:
        assert not list(folder.glob("*.sock"))
        assert made(cloud.follower, "one") == OK
        assert forwards(cloud.follower)["answered"] > 1
        with pytest.raises(httpx.TransportError):
            httpx.get("http://127.0.0.1:18790/", timeout=5.0)


def test_a_process_that_must_not_forward_writes_by_itself(tmp_path: Path) -> None:
    shared = {"auth": "none", "database_url": DATABASES["sqlite"](tmp_path)}
    shared |= {"database_is_shared": "true", "forward_writes": "false"}
    with serve_all(tmp_path, 2, shared) as services:
        assert [made(each, f"own-{each.port}") for each in services] == [OK, OK]
        assert not any(each.leads() for each in services)
        assert [sum(forwards(each).values()) for each in services] == [0, 0]


def test_what_the_leader_does_not_serve_is_written_here(tmp_path: Path) -> None:
    shared = {"auth": "none", "database_is_shared": "true", **UNLIMITED}
    shared["database_url"] = DATABASES["sqlite"](tmp_path)
    with ExitStack() as stack:
        small = started(tmp_path, {**shared, "apis": "identity,placement"})
        stack.callback(end, small)
        wait_until_ready(small)
        eventually(small.leads)
        whole = started(tmp_path, shared)
        stack.callback(end, whole)
        wait_until_ready(whole)
        provider = {"name": "p"}
        path = "/placement/resource_providers"
        eventually(lambda: "innkeeper_forwarding 1.0" in whole.metrics())
        assert whole.call("POST", path, json=provider).is_success
        assert forwards(whole)["answered"] >= 1
        kept = forwards(whole)["kept"]
        assert made(whole, "one") == OK
        assert forwards(whole)["kept"] == kept + 1
        assert "Traceback" not in small.log.read_text()
