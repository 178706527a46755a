"""The stock ``openstack`` command resizes, migrates and evacuates servers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.compat.openstack_command import Started, started
from tests.compat.slow_agent import agent

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

BLANK = "source_type=blank,destination_type=local,boot_index=0"
BOOT = ("--flavor", "small", "--block-device", BLANK, "--nic", "none", "--wait")
HOST = "OS-EXT-SRV-ATTR:host"
WITHIN_S = 120.0
SHAPES = (("small", "64", "1"), ("large", "128", "2"))


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    with started(tmp_path_factory.mktemp("moves"), "--demo-hosts", "3") as running:
        for name, ram, vcpus in SHAPES:
            running.ask("flavor", "create", "--ram", ram, "--disk", "1", "--vcpus", vcpus, name)
        yield running


def shown(service: Started, server: str) -> dict[str, Any]:
    found: dict[str, Any] = service.ask("server", "show", server)
    return found


def becomes(service: Started, server: str, status: str) -> dict[str, Any]:
    """The server, when it has this status and nothing is being done to it."""
    deadline_s = time.monotonic() + WITHIN_S
    found = shown(service, server)
    while found["status"] != status or found["OS-EXT-STS:task_state"] is not None:
        assert time.monotonic() < deadline_s, f"{server} is {found['status']}, not {status}"
        found = shown(service, server)
    return found


def holds(service: Started, server_id: str) -> tuple[dict[str, int], str]:
    """A server's allocations, and the name of their host."""
    (held,) = service.ask("resource", "provider", "allocation", "show", server_id)
    provider = service.ask("resource", "provider", "show", held["resource_provider"])
    return held["resources"], provider["name"]


def test_resizes(service: Started) -> None:
    made = service.ask("server", "create", *BOOT, "grown")
    service.do("server", "resize", "--flavor", "large", "--wait", "grown")
    moved = becomes(service, "grown", "VERIFY_RESIZE")
    assert moved[HOST] != made[HOST]
    assert "large" in str(moved["flavor"])
    service.do("server", "resize", "--revert", "grown")
    back = becomes(service, "grown", "ACTIVE")
    assert back[HOST] == made[HOST]
    assert holds(service, made["id"]) == ({"VCPU": 1, "MEMORY_MB": 64, "DISK_GB": 1}, made[HOST])
    service.do("server", "resize", "--flavor", "large", "--wait", "grown")
    service.do("server", "resize", "--confirm", "grown")
    stays = becomes(service, "grown", "ACTIVE")
    assert holds(service, made["id"]) == ({"VCPU": 2, "MEMORY_MB": 128, "DISK_GB": 1}, stays[HOST])
    listed = service.ask("server", "migration", "list", "--server", "grown")
    assert {each["Type"] for each in listed} == {"resize"}
    assert [each["Status"] for each in listed][1:] == ["reverted"]
    service.do("server", "delete", "--wait", "grown")


def test_moves_while_it_is_off(service: Started) -> None:
    made = service.ask("server", "create", *BOOT, "carried")
    other = next(f"host-{n}" for n in (1, 2, 3) if f"host-{n}" != made[HOST])
    service.do("server", "migrate", "--host", other, "--wait", "carried")
    assert becomes(service, "carried", "VERIFY_RESIZE")[HOST] == other
    service.do("server", "migration", "confirm", "carried")
    becomes(service, "carried", "ACTIVE")
    service.do("server", "migrate", "--wait", "carried")
    service.do("server", "migration", "revert", "carried")
    assert becomes(service, "carried", "ACTIVE")[HOST] == other
    assert "nowhere" in service.refuses("server", "migrate", "--host", "nowhere", "carried")
    service.do("server", "delete", "--wait", "carried")


def test_moves_while_it_runs(service: Started) -> None:
    made = service.ask("server", "create", *BOOT, "running")
    other = next(f"host-{n}" for n in (1, 2, 3) if f"host-{n}" != made[HOST])
    live = ("server", "migrate", "--live-migration", "--wait")
    service.do(*live, "--host", other, "running")
    assert becomes(service, "running", "ACTIVE")[HOST] == other
    service.do(*live, "running")
    assert becomes(service, "running", "ACTIVE")[HOST] != other
    listed = service.ask(
        "server", "migration", "list", "--server", "running", "--type", "live-migration"
    )
    assert [each["Status"] for each in listed] == ["completed", "completed"]
    assert listed[1]["Source Node"] == made[HOST]
    assert listed[1]["Dest Node"] == other
    (newest,) = service.ask("server", "migration", "list", "--limit", "1", "--max-items", "1")
    assert newest["Id"] == listed[0]["Id"]
    service.do("server", "delete", "--wait", "running")


def test_a_live_migration_is_watched_and_stopped(
    service: Started, tmp_path_factory: pytest.TempPathFactory
) -> None:
    options = ("--hosts", "2", "--host-prefix", "slow-", "--move-time-s", "45", "--name", "s")
    with agent(service, tmp_path_factory.mktemp("slow"), *options) as hosts:
        assert hosts == {"slow-1", "slow-2"}
        service.ask("server", "create", *BOOT, "--availability-zone", "nova:slow-1", "watched")
        to_other = ("server", "migrate", "--live-migration", "--host", "slow-2", "watched")
        service.do(*to_other)
        number, uuid = under_way(service)
        # With a number the stock command calls a wrong path; with a uuid it searches the
        # list.
        reported = service.ask("server", "migration", "show", "watched", uuid)
        assert reported["Status"] == "running"
        assert (reported["Source Node"], reported["Dest Node"]) == ("slow-1", "slow-2")
        service.do("server", "migration", "abort", "watched", number)
        assert becomes(service, "watched", "ACTIVE")[HOST] == "slow-1"
        service.do(*to_other)
        number, _ = under_way(service)
        service.do("server", "migration", "force", "complete", "watched", number)
        assert becomes(service, "watched", "ACTIVE")[HOST] == "slow-2"
        listed = service.ask("server", "migration", "list", "--server", "watched")
        assert [each["Status"] for each in listed] == ["completed", "cancelled"]
        service.do("server", "delete", "--wait", "watched")


def under_way(service: Started) -> tuple[str, str]:
    """The number and uuid of the newest migration, once it runs."""
    deadline_s = time.monotonic() + WITHIN_S
    while time.monotonic() < deadline_s:
        found = service.ask("server", "migration", "list", "--limit", "1", "--max-items", "1")
        if found[0]["Status"] == "running":
            return str(found[0]["Id"]), str(found[0]["UUID"])
    raise AssertionError("No migration began to run.")


def test_servers_are_evacuated_from_a_lost_host(service: Started) -> None:
    made = service.ask("server", "create", *BOOT, "saved")
    lost = made[HOST]
    assert "still in use" in service.refuses("server", "evacuate", "saved")
    service.do("compute", "service", "set", "--down", lost, "nova-compute")
    service.ask("server", "evacuate", "saved")
    there = becomes(service, "saved", "SHUTOFF")
    assert there[HOST] != lost
    assert holds(service, made["id"])[1] == there[HOST]
    service.do("server", "start", "saved")
    becomes(service, "saved", "ACTIVE")
    service.do("compute", "service", "set", "--up", lost, "nova-compute")
    service.do("server", "delete", "--wait", "saved")
