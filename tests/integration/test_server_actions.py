"""Server actions with a real agent: from the request to the fake driver."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents import agent, eventually, states
from tests.support.running import Running, running

HOSTS = ("host-1", "host-2", "host-3")
VERSION = {"openstack-api-version": "compute 2.100"}
SERVERS = "/compute/v2.1/servers"
HOST = "OS-EXT-SRV-ATTR:host"
TASK = "OS-EXT-STS:task_state"


class Cloud:
    """A service with one agent, and a client of the newest version."""

    def __init__(self, service: Running) -> None:
        self._service = service

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request that must succeed; returns the answer."""
        answer = self._service.call(method, path, headers=VERSION, json=body)
        assert answer.status_code < 300, answer.text
        return answer.json() if answer.content else None

    def boot(self, name: str, **more: Any) -> str:
        """Boot a server, and wait until it runs."""
        wanted = {"name": name, "flavorRef": "small", "networks": "none", **more}
        server_id = str(self.ask("POST", SERVERS, {"server": wanted})["server"]["id"])
        self.becomes(server_id, "ACTIVE")
        return server_id

    def act(self, server_id: str, action: str, wanted: Any = None) -> None:
        """Request an action on a server."""
        self.ask("POST", f"{SERVERS}/{server_id}/action", {action: wanted})

    def show(self, server_id: str) -> dict[str, Any]:
        """A server's representation."""
        found: dict[str, Any] = self.ask("GET", f"{SERVERS}/{server_id}")["server"]
        return found

    def becomes(self, server_id: str, status: str) -> str | None:
        """Wait until a server has this status and no task; returns its host."""

        def now() -> tuple[str, str | None]:
            shown = self.show(server_id)
            return shown["status"], shown[TASK]

        eventually(now, (status, None))
        host: str | None = self.show(server_id)[HOST]
        return host

    def held(self, uuid: str) -> dict[str, int]:
        """The vcpus that a consumer holds, by host."""
        found = self.ask("GET", f"/placement/allocations/{uuid}")["allocations"]
        names = {
            each["uuid"]: each["name"]
            for each in self.ask("GET", "/placement/resource_providers")["resource_providers"]
        }
        return {names[uuid]: each["resources"]["VCPU"] for uuid, each in found.items()}

    def migrations(self, server_id: str) -> list[dict[str, Any]]:
        """A server's migrations, newest first."""
        path = f"/compute/v2.1/os-migrations?instance_uuid={server_id}"
        found: list[dict[str, Any]] = self.ask("GET", path)["migrations"]
        return found


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    folder: Path = tmp_path_factory.mktemp("cloud")
    with (
        running(folder, work_poll_s=1.0) as service,
        agent(service.url, folder, "--hosts", str(len(HOSTS))),
    ):
        eventually(lambda: states(service), dict.fromkeys(HOSTS, "up"))
        made = Cloud(service)
        for name, vcpus in (("small", 1), ("large", 3)):
            shape = {"name": name, "id": name, "ram": 64 * vcpus, "vcpus": vcpus, "disk": 1}
            made.ask("POST", "/compute/v2.1/flavors", {"flavor": shape})
        yield made


def test_switches(cloud: Cloud) -> None:
    server = cloud.boot("switched")
    for action, wanted, status in (
        ("os-stop", None, "SHUTOFF"),
        ("os-start", None, "ACTIVE"),
        ("reboot", {"type": "SOFT"}, "ACTIVE"),
        ("pause", None, "PAUSED"),
        ("unpause", None, "ACTIVE"),
        ("suspend", None, "SUSPENDED"),
        ("resume", None, "ACTIVE"),
        ("reboot", {"type": "HARD"}, "ACTIVE"),
    ):
        cloud.act(server, action, wanted)
        cloud.becomes(server, status)
    reported = cloud.ask("GET", f"{SERVERS}/{server}/os-instance-actions")["instanceActions"]
    assert len(reported) == 9
    assert {each["message"] for each in reported} == {None}


def test_what_the_agent_cannot_do(cloud: Cloud) -> None:
    server = cloud.boot("stuck", metadata={"fail-stop": "it does not listen"})
    cloud.act(server, "os-stop")
    cloud.becomes(server, "ACTIVE")
    path = f"{SERVERS}/{server}/os-instance-actions"
    newest = cloud.ask("GET", path)["instanceActions"][0]
    assert newest["action"] == "stop"
    assert newest["message"]
    whole = cloud.ask("GET", f"{path}/{newest['request_id']}")["instanceAction"]
    (step,) = whole["events"]
    assert step["result"] == "Error"
    assert "it does not listen" in step["details"]


def test_another_size(cloud: Cloud) -> None:
    server = cloud.boot("grown")
    home = cloud.show(server)[HOST]
    cloud.act(server, "resize", {"flavorRef": "large"})
    there = cloud.becomes(server, "VERIFY_RESIZE")
    assert there != home
    (move,) = cloud.migrations(server)
    assert cloud.held(server) == {there: 3}
    assert cloud.held(move["uuid"]) == {home: 1}
    cloud.act(server, "revertResize")
    assert cloud.becomes(server, "ACTIVE") == home
    assert cloud.held(server) == {home: 1}
    cloud.act(server, "resize", {"flavorRef": "large"})
    there = cloud.becomes(server, "VERIFY_RESIZE")
    cloud.act(server, "confirmResize")
    assert cloud.becomes(server, "ACTIVE") == there
    eventually(
        lambda: [each["status"] for each in cloud.migrations(server)], ["confirmed", "reverted"]
    )
    assert cloud.held(server) == {there: 3}
    assert cloud.held(cloud.migrations(server)[0]["uuid"]) == {}


def test_another_host(cloud: Cloud) -> None:
    server = cloud.boot("carried")
    home = cloud.show(server)[HOST]
    cloud.act(server, "migrate")
    there = cloud.becomes(server, "VERIFY_RESIZE")
    assert there != home
    cloud.act(server, "confirmResize")
    cloud.becomes(server, "ACTIVE")
    # Until its agent has destroyed what is left of the server, the server cannot come back.
    eventually(lambda: [each["status"] for each in cloud.migrations(server)], ["confirmed"])
    cloud.act(server, "os-migrateLive", {"host": home, "block_migration": "auto"})
    there = cloud.becomes(server, "ACTIVE")
    reported = cloud.ask("GET", f"{SERVERS}/{server}/os-instance-actions")["instanceActions"]
    assert {each["message"] for each in reported} == {None}
    newest, _ = cloud.migrations(server)
    assert (newest["status"], there) == ("completed", home)
    assert cloud.held(server) == {home: 1}


def test_a_server_is_shelved(cloud: Cloud) -> None:
    server = cloud.boot("shelved")
    cloud.act(server, "shelve")
    assert cloud.becomes(server, "SHELVED_OFFLOADED") is None
    assert cloud.held(server) == {}
    cloud.act(server, "unshelve", {"host": "host-2"})
    assert cloud.becomes(server, "ACTIVE") == "host-2"
    assert cloud.held(server) == {"host-2": 1}


def test_evacuation_from_a_lost_host(cloud: Cloud) -> None:
    server = cloud.boot("saved")
    lost = cloud.show(server)[HOST]
    services = cloud.ask("GET", f"/compute/v2.1/os-services?host={lost}")["services"]
    place = f"/compute/v2.1/os-services/{services[0]['id']}"
    cloud.ask("PUT", place, {"forced_down": True})
    cloud.act(server, "evacuate", {})
    there = cloud.becomes(server, "SHUTOFF")
    assert there != lost
    assert cloud.held(server) == {there: 1}
    cloud.act(server, "os-start")
    cloud.becomes(server, "ACTIVE")
    cloud.ask("PUT", place, {"forced_down": False})
    eventually(lambda: cloud.migrations(server)[0]["status"], "completed")
    cloud.ask("DELETE", f"{SERVERS}/{server}")
