"""Several services on one database: a change that one acknowledges is in force for all at once."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from innkeeper.engine.periodic import SWEEP_PERIOD_S
from innkeeper.store.periodic import EARLY
from tests.support.databases import DATABASES
from tests.support.service_processes import UNLIMITED, Started, administrator, logged_in, serve_all

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]
OK, ACCEPTED, NO_CONTENT = httpx.codes.OK, httpx.codes.ACCEPTED, httpx.codes.NO_CONTENT
VCPUS = 16
HOSTS = 4
INVENTORIES = {
    "VCPU": {"total": VCPUS, "allocation_ratio": 1.0},
    "MEMORY_MB": {"total": 65536},
    "DISK_GB": {"total": 1000},
}
PASSWORD = "correct horse battery"
ROOMS = 3


@dataclass(slots=True)
class Cloud:
    """Two services, the administrator's token, and the test as the agent."""

    first: Started
    second: Started
    admin: str
    agent_id: str
    begun_s: float
    kind: str

    def flavor(self, vcpus: int) -> str:
        """A flavor that any test may use."""
        flavor_id = f"v{vcpus}"
        body = {"name": flavor_id, "id": flavor_id, "ram": 64, "vcpus": vcpus, "disk": 1}
        self.first.call("POST", "/compute/v2.1/flavors", self.admin, json={"flavor": body})
        return flavor_id

    def boot(self, at: Started, token: str | None = None, **more: Any) -> httpx.Response:
        """Boot a server through one of the services."""
        hints = more.pop("hints", None)
        server = {"name": "a", "flavorRef": "v1", "networks": "none", "imageRef": "", **more}
        body = {"server": server} | ({} if hints is None else {"os:scheduler_hints": hints})
        answer: httpx.Response = at.call(
            "POST", "/compute/v2.1/servers", token or self.admin, json=body
        )
        return answer

    def shown(self, at: Started, server_id: str) -> Any:
        """A server as one of the services shows it."""
        answer = at.call("GET", f"/compute/v2.1/servers/{server_id}", self.admin)
        return answer.json().get("server", answer.status_code)

    def delete(self, at: Started, *server_ids: str) -> None:
        """Delete servers through one of the services, and have the agent report them gone."""
        for each in server_ids:
            gone = at.call("DELETE", f"/compute/v2.1/servers/{each}", self.admin)
            assert gone.status_code == NO_CONTENT
        path = f"/compute/v2.1/os-agents/{self.agent_id}"
        while orders := at.call("POST", f"{path}/work", self.admin, json={"wait_s": 0}).json()[
            "orders"
        ]:
            results = [{"order_id": each["id"], "ok": True} for each in orders]
            at.call("POST", f"{path}/results", self.admin, json={"results": results})

    def project(self, name: str) -> tuple[str, str, str]:
        """A new project and a member of it: the ids of both, and a token."""
        made = self.first.call(
            "POST", "/identity/v3/projects", self.admin, json={"project": {"name": name}}
        )
        project_id = made.json()["project"]["id"]
        user = {"name": f"{name}-user", "password": PASSWORD}
        made = self.first.call("POST", "/identity/v3/users", self.admin, json={"user": user})
        user_id = made.json()["user"]["id"]
        self.first.call("PUT", self.role(project_id, user_id), self.admin)
        return project_id, user_id, logged_in(self.first, f"{name}-user", PASSWORD, name)

    def role(self, project_id: str, user_id: str) -> str:
        """The path of a user's membership of a project."""
        found = self.first.call("GET", "/identity/v3/roles?name=member", self.admin)
        role_id = found.json()["roles"][0]["id"]
        return f"/identity/v3/projects/{project_id}/users/{user_id}/roles/{role_id}"


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def cloud(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cloud]:
    """Two services on one database of each kind."""
    begun_s = time.monotonic()
    folder = tmp_path_factory.mktemp("several")
    settings = {
        "database_url": DATABASES[request.param](folder),
        "database_is_shared": "true",
        "service_down_time_s": "600",
        **UNLIMITED,
    }
    with serve_all(folder, 2, settings) as (first, second):
        admin = administrator(folder, first)
        body = {"agent": {"name": "test", "driver": "fake"}}
        made = first.call("POST", "/compute/v2.1/os-agents", admin, json=body).json()["agent"]
        hosts = [
            {"name": f"host-{number}", "inventories": INVENTORIES, "traits": []}
            for number in range(HOSTS)
        ]
        path = f"/compute/v2.1/os-agents/{made['id']}/hosts"
        reported = second.call("PUT", path, admin, json={"hosts": hosts})
        assert reported.status_code == OK, reported.text
        started = Cloud(first, second, admin, made["id"], begun_s, request.param)
        started.flavor(1)
        yield started


def test_a_boot_in_one_process_is_visible_in_the_other(cloud: Cloud) -> None:
    whole = cloud.flavor(VCPUS)
    candidates = f"/placement/allocation_candidates?resources=VCPU:{VCPUS}"

    def rooms(at: Started) -> int:
        return len(at.call("GET", candidates, cloud.admin).json()["allocation_requests"])

    before = rooms(cloud.first)
    assert before == rooms(cloud.second)
    for at, other in ((cloud.first, cloud.second), (cloud.second, cloud.first)):
        booted = cloud.boot(at, flavorRef=whole)
        assert booted.status_code == ACCEPTED, booted.text
        server_id = booted.json()["server"]["id"]
        listed = other.call("GET", "/compute/v2.1/servers", cloud.admin).json()["servers"]
        assert server_id in {each["id"] for each in listed}
        assert rooms(other) == before - 1
        cloud.delete(other, server_id)
        assert rooms(at) == before
        assert cloud.shown(at, server_id) == httpx.codes.NOT_FOUND


def test_capacity_claimed_in_one_process_is_not_chosen_in_the_other(cloud: Cloud) -> None:
    """Hosts that one process has just filled are full for the next decision of the other."""
    whole = cloud.flavor(VCPUS)
    services = (cloud.first, cloud.second)
    booted = [cloud.boot(services[i % 2], flavorRef=whole) for i in range(HOSTS + 2)]
    ids = [each.json()["server"]["id"] for each in booted]
    shown = [cloud.shown(services[1 - i % 2], each) for i, each in enumerate(ids)]
    hosts = [each["OS-EXT-SRV-ATTR:host"] for each in shown]
    assert len(set(hosts[:HOSTS])) == HOSTS
    assert [each["status"] for each in shown] == ["BUILD"] * HOSTS + ["ERROR"] * 2
    cloud.delete(cloud.first, *ids)


def test_a_quota_is_one_for_all(cloud: Cloud) -> None:
    project_id, _, token = cloud.project("narrow")
    quota = {"quota_set": {"instances": ROOMS}}
    path = f"/compute/v2.1/os-quota-sets/{project_id}"
    assert cloud.first.call("PUT", path, cloud.admin, json=quota).status_code == OK
    services = [cloud.first, cloud.second] * 6
    with ThreadPoolExecutor(len(services)) as pool:
        answers = list(pool.map(lambda at: cloud.boot(at, token), services))
    statuses = sorted(each.status_code for each in answers)
    assert statuses == [ACCEPTED] * ROOMS + [httpx.codes.FORBIDDEN] * (12 - ROOMS)


def test_the_members_of_a_group_stay_together(cloud: Cloud) -> None:
    body = {"server_group": {"name": "together", "policy": "affinity"}}
    made = cloud.first.call("POST", "/compute/v2.1/os-server-groups", cloud.admin, json=body)
    group = made.json()["server_group"]["id"]
    services = [cloud.first, cloud.second] * 4
    with ThreadPoolExecutor(len(services)) as pool:
        answers = list(pool.map(lambda at: cloud.boot(at, hints={"group": group}), services))
    ids = [each.json()["server"]["id"] for each in answers]
    shown = [cloud.shown(cloud.first, each) for each in ids]
    assert {each["status"] for each in shown} == {"BUILD"}
    assert len({each["OS-EXT-SRV-ATTR:host"] for each in shown}) == 1
    group_now = cloud.second.call(
        "GET", f"/compute/v2.1/os-server-groups/{group}", cloud.admin
    ).json()["server_group"]
    assert set(group_now["members"]) == set(ids)


def asked(at: Started, token: str) -> int:
    return int(at.call("GET", "/compute/v2.1/servers", token).status_code)


def test_a_token_revoked_in_one_process_is_refused_in_the_other(cloud: Cloud) -> None:
    cloud.project("short")
    for _ in range(5):
        token = logged_in(cloud.first, "short-user", PASSWORD, "short")
        # From now on that service has the token in its cache.
        assert (asked(cloud.second, token), asked(cloud.first, token)) == (OK, OK)
        gone = cloud.first.call(
            "DELETE", "/identity/v3/auth/tokens", token, headers={"x-subject-token": token}
        )
        assert gone.status_code == NO_CONTENT
        assert asked(cloud.second, token) == httpx.codes.UNAUTHORIZED


def test_a_role_revoked_in_one_process_is_gone_in_the_other(cloud: Cloud) -> None:
    project_id, user_id, token = cloud.project("former")
    assert asked(cloud.second, token) == OK
    path = cloud.role(project_id, user_id)
    assert cloud.first.call("DELETE", path, cloud.admin).status_code == NO_CONTENT
    assert asked(cloud.second, token) == httpx.codes.UNAUTHORIZED


def test_a_user_disabled_under_load_is_refused(cloud: Cloud) -> None:
    """Many requests share a lookup of the user, but none uses an outdated lookup."""
    _, user_id, token = cloud.project("shut")
    seen: list[tuple[float, int]] = []
    is_over = threading.Event()

    def ask() -> None:
        while not is_over.is_set():
            begun_s = time.monotonic()
            seen.append((begun_s, asked(cloud.second, token)))

    with ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(ask) for _ in range(4)]
        while len(seen) < 40:
            time.sleep(0.01)
        body = {"user": {"enabled": False}}
        answer = cloud.first.call("PATCH", f"/identity/v3/users/{user_id}", cloud.admin, json=body)
        acknowledged_s = time.monotonic()
        assert answer.status_code == OK
        while sum(begun_s > acknowledged_s for begun_s, _ in seen) < 40:
            time.sleep(0.01)
        is_over.set()
        for each in asking:
            each.result()
    assert {status for begun_s, status in seen if begun_s > acknowledged_s} == {
        httpx.codes.UNAUTHORIZED
    }
    assert OK in {status for _, status in seen}


def test_an_order_of_one_process_wakes_an_agent_waiting_at_the_other(cloud: Cloud) -> None:
    path = f"/compute/v2.1/os-agents/{cloud.agent_id}/work"

    def waiting(after: int, wait_s: float) -> Any:
        body = {"after": after, "wait_s": wait_s}
        return cloud.second.call("POST", path, cloud.admin, json=body).json()["orders"]

    known = waiting(0, 0)
    last = max((each["id"] for each in known), default=0)
    for _ in range(3):
        with ThreadPoolExecutor(1) as pool:
            begun_s = time.monotonic()
            answer = pool.submit(waiting, last, 20.0)
            time.sleep(0.5)
            server_id = cloud.boot(cloud.first).json()["server"]["id"]
            (order,) = answer.result()
            took_s = time.monotonic() - begun_s
        assert order["server_id"] == server_id
        # This is long before the service would poll by itself.
        assert took_s < 4.0
        last = order["id"]


def test_a_leader_that_was_paused_continues_correctly(cloud: Cloud) -> None:
    """The paused leader blocks the others as long as the database allows; nothing is lost."""
    acknowledged: list[str] = []
    statuses: set[int] = set()
    is_over = threading.Event()
    eventually(lambda: cloud.first.leads() or cloud.second.leads(), within_s=30.0)
    leader, other = cloud.first, cloud.second
    if other.leads():
        leader, other = other, leader

    def write(at: Started, prefix: str, timeout_s: float) -> None:
        name = f"{prefix}-{len(acknowledged)}-{time.monotonic_ns()}"
        body = {"flavor": {"name": name, "id": name, "ram": 64, "vcpus": 1, "disk": 1}}
        path = "/compute/v2.1/flavors"
        answer = at.call("POST", path, cloud.admin, json=body, timeout=timeout_s)
        statuses.add(answer.status_code)
        if answer.status_code == OK:
            acknowledged.append(name)

    def load() -> None:
        while not is_over.is_set():
            write(leader, "leader", 60.0)

    def is_written() -> bool:
        before = len([each for each in acknowledged if each.startswith("other")])
        with suppress(httpx.TimeoutException):
            write(other, "other", 1.0)
        return len([each for each in acknowledged if each.startswith("other")]) > before

    with ThreadPoolExecutor(3) as pool:
        loading = [pool.submit(load) for _ in range(3)]
        try:
            leader.process.send_signal(signal.SIGSTOP)
            assert not is_written()
            if cloud.kind != "sqlite":
                eventually(is_written, within_s=40.0)
            leader.process.send_signal(signal.SIGCONT)
            seen = len(acknowledged)
            eventually(lambda: len(acknowledged) > seen + 20, within_s=30.0)
        finally:
            leader.process.send_signal(signal.SIGCONT)
            is_over.set()
        for each in loading:
            each.result()
    assert statuses <= {OK, httpx.codes.SERVICE_UNAVAILABLE}
    for at in (cloud.first, cloud.second):
        assert at.is_ready()
        assert set(acknowledged) <= flavors(at, cloud.admin)


def flavors(at: Started, token: str) -> set[str]:
    """The ids of all flavors, page by page."""
    found: set[str] = set()
    path = "/compute/v2.1/flavors"
    while True:
        page = at.call("GET", path, token).json()["flavors"]
        found |= {each["id"] for each in page}
        if not page:
            return found
        path = f"/compute/v2.1/flavors?marker={page[-1]['id']}"


def test_a_wrong_password_is_challenged_in_the_same_way(cloud: Cloud) -> None:
    """One of the two processes forwards the request; the other process answers it."""
    headers = {"x-subject-token": cloud.admin}
    token = cloud.first.call("GET", "/identity/v3/auth/tokens", cloud.admin, headers=headers)
    user_id = token.json()["token"]["user"]["id"]
    body = {"user": {"password": PASSWORD, "original_password": "wrong"}}
    for at in (cloud.first, cloud.second):
        path = f"/identity/v3/users/{user_id}/password"
        answer = at.call("POST", path, cloud.admin, json=body)
        assert answer.status_code == httpx.codes.UNAUTHORIZED
        assert answer.headers["www-authenticate"].startswith('Keystone uri="')


def test_periodic_tasks_run_in_one_process_at_a_time(cloud: Cloud) -> None:
    services = (cloud.first, cloud.second)
    eventually(lambda: sum(map(turns, services)) > 0, within_s=3 * SWEEP_PERIOD_S)
    possible = (time.monotonic() - cloud.begun_s) / (EARLY * SWEEP_PERIOD_S) + 1
    assert 1 <= sum(map(turns, services)) <= possible


def turns(service: Started) -> int:
    """How often a process has run the task of late orders."""
    name = 'innkeeper_periodic_turns_total{task="late_orders"} '
    output = service.metrics().splitlines()
    return sum(int(float(line.removeprefix(name))) for line in output if line.startswith(name))


def eventually(is_so: Callable[[], bool], within_s: float) -> None:
    deadline_s = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < deadline_s
        time.sleep(0.1)
