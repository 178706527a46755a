"""Capabilities of hosts: they expire, and survive a restart."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.running import Running, running

pytestmark = pytest.mark.timeout(120)
PERIOD_S = 0.5
"""A third of the time until an agent's report expires."""
FAST = {"flavor": {"name": "fast", "ram": 64, "vcpus": 1, "disk": 1, "id": "fast"}}
PLAIN = {"flavor": {"name": "plain", "ram": 64, "vcpus": 1, "disk": 1, "id": "plain"}}
HOST = {
    "name": "h1",
    "inventories": {"VCPU": {"total": 64}, "MEMORY_MB": {"total": 4096}, "DISK_GB": {"total": 99}},
    "capabilities": {"cpu_mhz": 3000},
}


def test_capabilities_expire_after_three_silent_periods(tmp_path: Path) -> None:
    with running(tmp_path, capabilities_max_age_s=3 * PERIOD_S) as service:
        agent = _agent(service)
        _flavors(service)
        assert _placed(service, "fast")
        # The agent sends heartbeats: its host is up, and only its capabilities are unknown.
        for _ in range(8):
            time.sleep(PERIOD_S / 2)
            service.call("POST", f"/compute/v2.1/os-agents/{agent}/heartbeat")
        assert not _placed(service, "fast")
        assert _placed(service, "plain")
        _report(service, agent)
        assert _placed(service, "fast")


def test_a_host_whose_agent_is_silent_for_three_periods_is_not_chosen(tmp_path: Path) -> None:
    with running(tmp_path, service_down_time_s=3 * PERIOD_S) as service:
        _agent(service)
        _flavors(service)
        assert _placed(service, "plain")
        # No request arrives meanwhile: silence is evaluated at the time of the request.
        time.sleep(4 * PERIOD_S)
        assert not _placed(service, "plain")


def test_the_first_boot_after_a_restart_uses_stored_capabilities(tmp_path: Path) -> None:
    with running(tmp_path) as service:
        _agent(service)
        _flavors(service)
    with running(tmp_path) as service:
        # No agent has reported to this process.
        assert _placed(service, "fast")


def _agent(service: Running) -> str:
    named = {"agent": {"name": "rack", "driver": "fake"}}
    agent = service.call("POST", "/compute/v2.1/os-agents", json=named).json()["agent"]
    _report(service, agent["id"])
    service.call("POST", f"/compute/v2.1/os-agents/{agent['id']}/heartbeat")
    return str(agent["id"])


def _report(service: Running, agent: str) -> None:
    output = service.call("PUT", f"/compute/v2.1/os-agents/{agent}/hosts", json={"hosts": [HOST]})
    assert output.status_code == 200, output.text


def _flavors(service: Running) -> None:
    for body in (FAST, PLAIN):
        assert service.call("POST", "/compute/v2.1/flavors", json=body).status_code == 200
    specs = {"extra_specs": {"capabilities:cpu_mhz": ">= 2000"}}
    made = service.call("POST", "/compute/v2.1/flavors/fast/os-extra_specs", json=specs)
    assert made.status_code == 200, made.text


def _placed(service: Running, flavor: str) -> bool:
    headers = {"OpenStack-API-Version": "compute 2.74"}
    blank = {
        "boot_index": 0,
        "source_type": "blank",
        "destination_type": "local",
        "delete_on_termination": True,
    }
    server: dict[str, Any] = {
        "name": "s",
        "flavorRef": flavor,
        "imageRef": "",
        "networks": "none",
        "block_device_mapping_v2": [blank],
    }
    made = service.call("POST", "/compute/v2.1/servers", headers=headers, json={"server": server})
    assert made.status_code == 202, made.text
    shown = service.call("GET", f"/compute/v2.1/servers/{made.json()['server']['id']}").json()
    return bool(shown["server"]["status"] == "BUILD")
