"""Leases of many hosts start and end in several commits; services die between two commits."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import httpx
import pytest

from innkeeper.systems.leases.handover import HOSTS_AT_ONCE
from tests.simulation.programs import wait_until
from tests.support.databases import postgresql_url, sqlite_url
from tests.support.sites import INVENTORIES, Kind, Site, site

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]

KINDS = {"sqlite": Kind(sqlite_url), "postgresql": Kind(postgresql_url, options=("--workers", "2"))}
RED = "red-user:red"
HOSTS = 3 * HOSTS_AT_ONCE
ROUNDS_MAX = 5
"""The number of attempts to kill a process half-way, because it may finish before the kill."""
LEASES = "/reservation/v1/leases"


@pytest.fixture(scope="module", params=sorted(KINDS))
def at(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A service on one kind of database, with hosts for leases."""
    with site(tmp_path_factory.mktemp("leases"), KINDS[request.param], {}) as made:
        names = [f"rack-{number:03}" for number in range(HOSTS)]
        reports = [{"name": each, "inventories": INVENTORIES, "traits": []} for each in names]
        made.must("PUT", f"/compute/v2.1/os-agents/{made.agent_id}/hosts", json={"hosts": reports})
        for each in names:
            made.must("POST", "/reservation/v1/os-hosts", json={"name": each})
        yield made


def lease(at: Site) -> str:
    """Create a lease of all hosts that begins now; returns its id."""
    body = {
        "name": "all",
        "start_date": "now",
        "end_date": "2999-01-01 00:00",
        "reservations": [
            {
                "resource_type": "physical:host",
                "min": HOSTS,
                "max": HOSTS,
                "hypervisor_properties": "",
                "resource_properties": "",
            }
        ],
        "events": [],
    }
    return str(at.must("POST", LEASES, RED, json=body)["lease"]["id"])


def status(at: Site, uuid: str) -> Any:
    """A lease's status, or the status of the answer if there is no such lease."""
    answer = at.ask("GET", f"{LEASES}/{uuid}", RED)
    return answer.json()["lease"]["status"] if answer.is_success else answer.status_code


def is_active(at: Site, uuid: str) -> bool:
    """Whether a lease has all its hosts."""
    return bool(status(at, uuid) == "ACTIVE")


def reborn(at: Site) -> None:
    """Kill the service, check what it left, and start it again."""
    at.kill(0)
    audited = at.audit()
    assert audited.returncode == 0, audited.stdout + audited.stderr
    at.start(0)


def free_hosts(at: Site) -> int:
    """The number of hosts in the freepool's aggregate."""
    listed = at.must("GET", "/compute/v2.1/os-aggregates")["aggregates"]
    return sum(len(each["hosts"]) for each in listed if each["name"] == "freepool")


def test_starts_and_ends_go_on_after_a_crash(at: Site) -> None:
    starts = ends = 0
    for _ in range(ROUNDS_MAX):
        uuid = lease(at)
        reborn(at)
        starts += status(at, uuid) == "STARTING"
        wait_until(partial(is_active, at, uuid), "the rest of the hosts")
        assert free_hosts(at) == 0
        at.must("DELETE", f"{LEASES}/{uuid}", RED)
        reborn(at)
        assert status(at, uuid) == httpx.codes.NOT_FOUND
        ends += free_hosts(at) < HOSTS
        wait_until(lambda: free_hosts(at) == HOSTS, "all hosts in the freepool")
        if starts and ends:
            break
    assert starts and ends
    audited = at.audit()
    assert audited.returncode == 0, audited.stdout + audited.stderr
