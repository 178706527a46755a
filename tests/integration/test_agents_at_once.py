"""Requests of many agents at the same moment are written in one transaction with few statements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from tests.support.held_writers import held, until, waiting
from tests.support.running import Running, running

AGENTS = 8
PATH = "/compute/v2.1/os-agents"
HOST = {"inventories": {"VCPU": {"total": 8}, "MEMORY_MB": {"total": 8192}}}
FLAVOR = {"name": "small", "id": "small", "ram": 64, "vcpus": 1, "disk": 0}


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Running]:
    """A service without hosts."""
    with running(tmp_path) as started:
        yield started


@pytest.fixture
def agents(service: Running) -> list[str]:
    """The paths of agents with one host each."""
    paths = []
    for number in range(AGENTS):
        wanted = {"name": f"agent-{number}", "driver": "fake"}
        agent = service.call("POST", PATH, json={"agent": wanted}).json()["agent"]
        paths.append(f"{PATH}/{agent['id']}")
        hosts = [{"name": f"host-{number}", "servers": [], **HOST}]
        answer = service.call("PUT", f"{paths[-1]}/hosts", json={"hosts": hosts})
        assert answer.status_code == httpx.codes.OK
    return paths


def updates(service: Running) -> Counter[str]:
    """Counts the UPDATE statements of each table from now on."""
    counted: Counter[str] = Counter()

    def see(_: Any, __: Any, statement: str, *___: Any) -> None:
        first, table, *_rest = statement.split()
        if first == "UPDATE":
            counted[table] += 1

    sa.event.listen(service.service.store.engines.writing, "before_cursor_execute", see)
    return counted


def at_once(service: Running, asked: list[tuple[str, Any]]) -> list[int]:
    """Post to these paths while the writer thread is busy; returns the statuses."""

    def post(path: str, body: Any) -> int:
        more = {} if body is None else {"json": body}
        return int(service.call("POST", path, **more).status_code)

    with ThreadPoolExecutor(len(asked)) as threads:
        with held(service):
            answers = [threads.submit(post, *each) for each in asked]
            until(lambda: waiting(service) == len(asked))
        return [each.result() for each in answers]


def test_heartbeats_are_one_update(service: Running, agents: list[str]) -> None:
    counted = updates(service)
    unknown = f"{PATH}/f0000000-0000-4000-8000-000000000000"
    statuses = at_once(service, [(f"{each}/heartbeat", None) for each in (*agents, unknown)])
    assert statuses == [204] * AGENTS + [404]
    assert counted["agents"] == 1


def test_results_of_many_agents_are_applied_together(service: Running, agents: list[str]) -> None:
    assert service.call("POST", "/compute/v2.1/flavors", json={"flavor": FLAVOR}).is_success
    server = {"name": "web", "flavorRef": "small", "imageRef": "", "networks": "none"}
    body = {"server": {**server, "min_count": AGENTS, "max_count": AGENTS}}
    newest = {"openstack-api-version": "compute 2.90"}
    booted = service.call("POST", "/compute/v2.1/servers", json=body, headers=newest)
    assert booted.status_code == httpx.codes.ACCEPTED
    asked = []
    for each in agents:
        orders = service.call("POST", f"{each}/work", json={"wait_s": 0}).json()["orders"]
        results = [{"order_id": order["id"], "ok": True} for order in orders]
        # A result may be reported twice, also at the same moment.
        asked += [(f"{each}/results", {"results": results})] * (2 if results else 0)
    counted = updates(service)
    assert set(at_once(service, asked)) == {200}
    assert counted["servers"] == 1
    assert counted["work_orders"] == 1
    found = service.call("GET", "/compute/v2.1/servers/detail?all_tenants=1").json()["servers"]
    assert [each["status"] for each in found] == ["ACTIVE"] * AGENTS
