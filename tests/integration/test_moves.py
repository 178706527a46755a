"""Real agents at both ends: migrations, evacuations, shelving, and builds that are retried."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from innkeeper.systems.compute import audit as compute_audit
from innkeeper.systems.placement import audit as placement_audit
from tests.support.agents import WITHIN_S, agent, eventually, start, states
from tests.support.running import Running, running

pytestmark = [pytest.mark.slow, pytest.mark.timeout(360)]
SETTINGS: dict[str, Any] = {"service_down_time_s": 1.5, "work_poll_s": 1.0}
NEWEST = {"openstack-api-version": "compute 2.100"}
SERVERS = "/compute/v2.1/servers"
UP = {"left-1": "up", "right-1": "up"}


@contextmanager
def two_ends(folder: Path, *options: str, **settings: Any) -> Iterator[Running]:
    """A service with two hosts, each with its own agent."""
    with running(folder / "service", **SETTINGS, **settings) as service, ExitStack() as agents:
        for name in ("left", "right"):
            agents.enter_context(agent(service.url, folder / name, *named(name), *options))
        eventually(lambda: states(service), UP)
        for name, vcpus in (("small", 1), ("big", 2)):
            flavor = {"name": name, "id": name, "ram": 512 * vcpus, "vcpus": vcpus, "disk": 1}
            service.call("POST", "/compute/v2.1/flavors", json={"flavor": flavor})
        yield service
        eventually(lambda: findings(service), [])


def named(name: str) -> tuple[str, ...]:
    """The command-line options of an agent and its only host."""
    return ("--name", name, "--host-prefix", f"{name}-")


def findings(service: Running) -> list[Any]:
    """The audit's findings."""
    with service.service.store.read() as tx:
        return [*placement_audit.findings(tx), *compute_audit.findings(tx)]


def boot(service: Running, **more: Any) -> str:
    """Boot a server, by default on the left host."""
    asked = {"name": "web", "flavorRef": "small", "networks": "none", "imageRef": ""}
    asked |= {name: value for name, value in {"host": "left-1", **more}.items() if value}
    answer = service.call("POST", SERVERS, headers=NEWEST, json={"server": asked})
    assert answer.status_code == 202, answer.text
    server_id: str = answer.json()["server"]["id"]
    eventually(lambda: seen(service, server_id)[0] != "BUILD", True)
    return server_id


def act(service: Running, server_id: str, **action: Any) -> None:
    """Request an action."""
    path = f"{SERVERS}/{server_id}/action"
    answer = service.call("POST", path, headers=NEWEST, json=action)
    assert answer.is_success, answer.text


def seen(service: Running, server_id: str) -> tuple[str, str | None]:
    """A server's status and host."""
    answer = service.call("GET", f"{SERVERS}/{server_id}", headers=NEWEST)
    if answer.status_code == 404:
        return ("gone", None)
    server = answer.json()["server"]
    return server["status"], server["OS-EXT-SRV-ATTR:host"]


def becomes(service: Running, server_id: str, status: str, host: str | None) -> None:
    """Wait until a server has this status and host."""
    eventually(lambda: seen(service, server_id), (status, host))


def test_a_resize_is_confirmed_and_another_one_reverted(tmp_path: Path) -> None:
    with two_ends(tmp_path) as service:
        server_id = boot(service)
        becomes(service, server_id, "ACTIVE", "left-1")
        act(service, server_id, resize={"flavorRef": "big"})
        becomes(service, server_id, "VERIFY_RESIZE", "right-1")
        act(service, server_id, revertResize=None)
        becomes(service, server_id, "ACTIVE", "left-1")
        eventually(lambda: findings(service), [])
        eventually(lambda: moves_under_way(service, server_id), False)
        act(service, server_id, resize={"flavorRef": "big"})
        becomes(service, server_id, "VERIFY_RESIZE", "right-1")
        act(service, server_id, confirmResize=None)
        becomes(service, server_id, "ACTIVE", "right-1")
        eventually(lambda: moves_under_way(service, server_id), False)
        act(service, server_id, migrate=None)
        becomes(service, server_id, "VERIFY_RESIZE", "left-1")
        service.call("DELETE", f"{SERVERS}/{server_id}")
        becomes(service, server_id, "gone", None)
        eventually(lambda: moves_under_way(service, server_id), False)


def moves_under_way(service: Running, server_id: str) -> bool:
    """Whether a migration still holds allocations."""
    answer = service.call("GET", "/compute/v2.1/os-migrations", headers=NEWEST)
    over = {"confirmed", "reverted", "completed", "cancelled", "failed", "error"}
    return any(
        each["status"] not in over
        for each in answer.json()["migrations"]
        if each["instance_uuid"] == server_id
    )


@pytest.mark.parametrize("end", ["abort", "hurry", "alone"])
def test_a_server_is_sent_while_it_runs(tmp_path: Path, end: str) -> None:
    seconds = "0.3" if end == "alone" else "20"
    with two_ends(tmp_path, "--move-time-s", seconds) as service:
        server_id = boot(service)
        act(service, server_id, **{"os-migrateLive": {"host": None, "block_migration": "auto"}})
        path = f"{SERVERS}/{server_id}/migrations"

        def stage() -> list[str]:
            reported = service.call("GET", path, headers=NEWEST).json()["migrations"]
            return [each["status"] for each in reported]

        if end == "alone":
            becomes(service, server_id, "ACTIVE", "right-1")
            return
        eventually(stage, ["running"])
        (migration,) = service.call("GET", path, headers=NEWEST).json()["migrations"]
        one = f"{path}/{migration['id']}"
        if end == "abort":
            assert service.call("DELETE", one, headers=NEWEST).status_code == 202
            becomes(service, server_id, "ACTIVE", "left-1")
        else:
            hurry = {"force_complete": None}
            answer = service.call("POST", f"{one}/action", headers=NEWEST, json=hurry)
            assert answer.status_code == 202
            becomes(service, server_id, "ACTIVE", "right-1")


def test_an_evacuated_server_is_rebuilt_and_its_remains_destroyed(tmp_path: Path) -> None:
    with (
        running(tmp_path / "service", **SETTINGS) as service,
        agent(service.url, tmp_path / "right", *named("right")),
    ):
        lost = start(service.url, tmp_path / "left", *named("left"))
        eventually(lambda: states(service), UP)
        flavor = {"name": "small", "id": "small", "ram": 512, "vcpus": 1, "disk": 1}
        service.call("POST", "/compute/v2.1/flavors", json={"flavor": flavor})
        server_id = boot(service)
        lost.kill()
        lost.wait(WITHIN_S)
        eventually(lambda: states(service), {**UP, "left-1": "down"})
        act(service, server_id, evacuate={})
        # From 2.95 on, the server's owner has to start it.
        becomes(service, server_id, "SHUTOFF", "right-1")
        assert moves_under_way(service, server_id)
        with agent(service.url, tmp_path / "left", *named("left")):
            eventually(lambda: moves_under_way(service, server_id), False)
            act(service, server_id, **{"os-start": None})
            becomes(service, server_id, "ACTIVE", "right-1")
            eventually(lambda: findings(service), [])


def test_a_shelved_server_leaves_its_host_and_comes_back(tmp_path: Path) -> None:
    with two_ends(tmp_path) as service:
        server_id = boot(service)
        act(service, server_id, shelve=None)
        becomes(service, server_id, "SHELVED_OFFLOADED", None)
        act(service, server_id, unshelve={"host": "right-1"})
        becomes(service, server_id, "ACTIVE", "right-1")


def test_servers_are_switched_off_and_on(tmp_path: Path) -> None:
    with two_ends(tmp_path) as service:
        server_id = boot(service)
        for action, status in (
            ("os-stop", "SHUTOFF"),
            ("os-start", "ACTIVE"),
            ("pause", "PAUSED"),
            ("unpause", "ACTIVE"),
            ("suspend", "SUSPENDED"),
            ("resume", "ACTIVE"),
        ):
            act(service, server_id, **{action: None})
            becomes(service, server_id, status, "left-1")
        act(service, server_id, reboot={"type": "HARD"})
        becomes(service, server_id, "ACTIVE", "left-1")


def test_a_failed_move_leaves_the_server_on_its_host(tmp_path: Path) -> None:
    with two_ends(tmp_path) as service:
        server_id = boot(service, metadata={"fail-arrive": "no disk"})
        act(service, server_id, migrate=None)
        becomes(service, server_id, "ACTIVE", "left-1")
        eventually(lambda: moves_under_way(service, server_id), False)


def test_a_failed_build_is_retried_on_the_next_host(tmp_path: Path) -> None:
    with two_ends(tmp_path, "--fail-builds-on", "left-*") as service:
        ids = [boot(service, host=None) for _ in range(3)]
        for server_id in ids:
            becomes(service, server_id, "ACTIVE", "right-1")
