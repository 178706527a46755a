"""Many requests at the same moment through the processes of a door."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.databases import DATABASES
from tests.support.pod_processes import GATEWAY, Door, door
from tests.support.zone_processes import FLAVOR, USER, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
COMPUTE = "/compute/v2.1"
PROJECT = USER.partition(":")[2]
PROCESSES, REQUESTS, INSTANCES, MEMBERS = 2, 12, 3, 8
HOSTS = 6
"""All servers of a crowd fit below the pod's threshold, because creates in flight count."""


@pytest.fixture(params=sorted(DATABASES))
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Door]:
    """A door of two processes over two pods."""
    url = DATABASES[request.param](tmp_path)
    settings = {"database_url": url, "database_is_shared": "true"}
    timeout = {"pod_request_timeout_s": "30"}
    with door(tmp_path, {**GATEWAY, **settings, **timeout}, count=PROCESSES) as made:
        made.ask("POST", f"{COMPUTE}/flavors", {"flavor": FLAVOR}, token="admin")
        for name in ("p1", "p2"):
            made.add(name, made.pods.start(name, HOSTS, {"build_plan_encryption_key": ""}).address)
        yield made


def test_first_requests_at_the_same_moment_share_one_pod_and_one_quota(shared: Door) -> None:
    quota = {"quota_set": {"instances": INSTANCES}}
    shared.ask("PUT", f"{COMPUTE}/os-quota-sets/{PROJECT}", quota, token="admin")
    body = {"server": {"name": "s", "flavorRef": "1", "imageRef": "", "networks": "none"}}

    def boot(number: int) -> int:
        path = f"{COMPUTE}/servers"
        return shared.send("POST", path, body, process=number % PROCESSES).status_code

    with ThreadPoolExecutor(REQUESTS) as clients:
        statuses = Counter(clients.map(boot, range(REQUESTS)))
    assert statuses == {202: INSTANCES, 403: REQUESTS - INSTANCES}
    assert shared.history(PROJECT) == ["p1"]
    listed = shared.ask("GET", f"{COMPUTE}/servers")["servers"]
    assert len(listed) == INSTANCES
    assert sorted(each["id"] for each in listed) == sorted(shared.pods["p1"].server_ids())
    with ThreadPoolExecutor(REQUESTS) as clients:
        gone = [
            clients.submit(shared.send, "DELETE", f"{COMPUTE}/servers/{each['id']}", process=part)
            for each in listed
            for part in range(PROCESSES)
        ]
        assert {each.result().status_code for each in gone} <= {204, 404}

    def used() -> int:
        told = shared.ask("GET", f"{COMPUTE}/limits")["limits"]["absolute"]
        return int(told["totalInstancesUsed"])

    wait_for("the quota is free", lambda: used() == 0)
    assert shared.get("/routings")["routings"] == []
    _a_crowd_makes_one_group(shared)


def _a_crowd_makes_one_group(at: Door) -> None:
    quota = {"quota_set": {"instances": -1, "server_group_members": MEMBERS}}
    at.ask("PUT", f"{COMPUTE}/os-quota-sets/{PROJECT}", quota, token="admin")
    headers = {"openstack-api-version": "compute 2.64"}
    wanted = {"server_group": {"name": "g", "policy": "soft-affinity"}}
    made = at.send("POST", f"{COMPUTE}/os-server-groups", wanted, headers=headers).json()
    uuid = made["server_group"]["id"]
    server = {"name": "s", "flavorRef": "1", "imageRef": "", "networks": "none"}
    body = {"server": server, "os:scheduler_hints": {"group": uuid}}

    def boot(number: int) -> int:
        path, process = f"{COMPUTE}/servers", number % PROCESSES
        return at.send("POST", path, body, process=process, headers=headers).status_code

    with ThreadPoolExecutor(REQUESTS) as clients:
        assert Counter(clients.map(boot, range(REQUESTS))) == {
            202: MEMBERS,
            403: REQUESTS - MEMBERS,
        }
    groups = [
        each
        for name in ("p1", "p2")
        for each in at.pods[name].get("/os-server-groups?all_projects=1")["server_groups"]
    ]
    assert [each["name"] for each in groups] == [uuid]
    assert len(groups[0]["members"]) == MEMBERS
