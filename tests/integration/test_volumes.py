"""Volumes with real agents: processes are killed, and several compete for the last gigabyte."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from innkeeper.main import main
from tests.support.agents import WITHIN_S, agent, eventually, start
from tests.support.service_processes import Started, end, serve_all, started, wait_until_ready

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
SETTINGS = {"auth": "none", "work_poll_s": "1.0", "quota_volumes": "-1", "quota_gigabytes": "-1"}
VERSION = {"openstack-api-version": "volume 3.71, compute 2.100"}
VOLUMES, SERVERS = "/volume/v3/volumes", "/compute/v2.1/servers"
ROUNDS = 3
VOLUME_COUNT = 4
CLIENTS = 20


def ask(service: Started, method: str, path: str, body: Any = None) -> Any:
    """Send a request that must succeed; returns the answer."""
    answer = service.call(method, path, headers=VERSION, json=body)
    assert answer.status_code < 300, answer.text
    return answer.json() if answer.content else None


def create(service: Started, size_gb: int) -> str:
    """Create a volume."""
    made = ask(service, "POST", VOLUMES, {"volume": {"size": size_gb}})
    return str(made["volume"]["id"])


def statuses(service: Started) -> set[str]:
    """The statuses of all volumes."""
    found = ask(service, "GET", f"{VOLUMES}/detail")["volumes"]
    return {each["status"] for each in found}


def server_status(service: Started, uuid: str) -> str:
    """A server's status, or ``gone``."""
    answer = service.call("GET", f"{SERVERS}/{uuid}", headers=VERSION)
    return "gone" if answer.status_code == 404 else str(answer.json()["server"]["status"])


def host_count(service: Started) -> int:
    """The number of hosts."""
    return len(ask(service, "GET", "/compute/v2.1/os-hypervisors")["hypervisors"])


def boot(service: Started) -> str:
    """Boot a server with one new volume, which is deleted with it."""
    device = {
        "source_type": "blank",
        "destination_type": "volume",
        "volume_size": 1,
        "delete_on_termination": True,
    }
    local = {"source_type": "blank", "destination_type": "local", "boot_index": 0}
    wanted = {
        "name": "s",
        "flavorRef": "small",
        "networks": "none",
        "block_device_mapping_v2": [local, device],
    }
    return str(ask(service, "POST", SERVERS, {"server": wanted})["server"]["id"])


def test_orders_about_volumes_survive_kills_of_service_and_agent(tmp_path: Path) -> None:
    folder, state = tmp_path / "service", tmp_path / "agent"
    service = started(folder, SETTINGS)
    port = service.port
    wait_until_ready(service)
    url = f"http://127.0.0.1:{port}"
    words = ("--hosts", "2", "--name", "rack")
    rack = start(url, state, *words)
    try:
        flavor = {"name": "small", "id": "small", "ram": 64, "vcpus": 1, "disk": 1}
        ask(service, "POST", "/compute/v2.1/flavors", {"flavor": flavor})
        eventually(
            lambda: len(ask(service, "GET", "/compute/v2.1/os-hypervisors")["hypervisors"]), 2
        )
        server = boot(service)
        volumes = [create(service, 1) for _ in range(VOLUME_COUNT)]
        for attaches in [True, False] * ROUNDS:
            # Both are restarted, whatever the agent and the service were doing.
            rack.kill()
            rack.wait(WITHIN_S)
            service.process.kill()
            service.process.wait(WITHIN_S)
            end(service)
            service = started(folder, SETTINGS, port=port)
            wait_until_ready(service)
            rack = start(url, state, *words)
            eventually(lambda: server_status(service, server), "ACTIVE")  # noqa: B023
            before = {"available", "in-use"} if attaches else {"in-use"}
            eventually(lambda: statuses(service) - {"in-use", "available"}, set())  # noqa: B023
            assert statuses(service) == before
            for each in volumes:
                path = f"{SERVERS}/{server}/os-volume_attachments"
                if attaches:
                    ask(service, "POST", path, {"volumeAttachment": {"volumeId": each}})
                else:
                    ask(service, "DELETE", f"{path}/{each}")
        ask(service, "DELETE", f"{SERVERS}/{server}")
        eventually(lambda: server_status(service, server), "gone")
        eventually(lambda: statuses(service), {"available"})
        for each in volumes:
            ask(service, "DELETE", f"{VOLUMES}/{each}")
        eventually(lambda: statuses(service), set())
        assert service.stop() == 0
    finally:
        rack.kill()
        rack.wait(WITHIN_S)
        end(service)
    assert main(["audit", "--data-dir", str(folder)]) == 0


def test_processes_do_not_give_the_last_gigabyte_twice(tmp_path: Path) -> None:
    folder = tmp_path / "service"
    settings = {**SETTINGS, "database_is_shared": "true"}
    with (
        serve_all(folder, 2, settings) as services,
        agent(f"http://127.0.0.1:{services[0].port}", tmp_path / "agent", "--disk-gb", "100"),
    ):
        eventually(lambda: host_count(services[1]), 1)
        with ThreadPoolExecutor(CLIENTS) as pool:
            made = list(pool.map(lambda n: create(services[n % 2], 30), range(CLIENTS)))
        eventually(lambda: statuses(services[0]), {"available", "error"})
        found = [ask(services[0], "GET", f"{VOLUMES}/{each}")["volume"]["status"] for each in made]
        assert found.count("available") == 3
        for each in made:
            ask(services[1], "DELETE", f"{VOLUMES}/{each}")
        eventually(lambda: statuses(services[0]), set())
