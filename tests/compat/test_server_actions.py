"""The stock ``openstack`` command starts and stops servers, and reads their actions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.compat.openstack_command import Started, started

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

BLANK = "source_type=blank,destination_type=local,boot_index=0"
BOOT = ("--flavor", "small", "--block-device", BLANK, "--nic", "none", "--wait")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    with started(tmp_path_factory.mktemp("actions"), "--demo-hosts", "2") as running:
        running.ask("flavor", "create", "--ram", "64", "--disk", "1", "--vcpus", "1", "small")
        yield running


def becomes(service: Started, server: str, status: str) -> dict[str, Any]:
    """The server, when it has this status; one command waits long enough for the agent."""
    for _ in range(10):
        shown: dict[str, Any] = service.ask("server", "show", server)
        if shown["status"] == status and shown["OS-EXT-STS:task_state"] is None:
            return shown
    raise AssertionError(f"{server} is {shown['status']}, not {status}")


def test_switches(service: Started) -> None:
    service.ask("server", "create", *BOOT, "switched")
    service.do("server", "stop", "switched")
    assert becomes(service, "switched", "SHUTOFF")["OS-EXT-STS:vm_state"] == "stopped"
    listed = service.ask("server", "list", "--status", "SHUTOFF")
    assert [each["Name"] for each in listed] == ["switched"]
    assert "vm_state stopped" in service.refuses("server", "pause", "switched")
    service.do("server", "start", "switched")
    becomes(service, "switched", "ACTIVE")
    service.do("server", "reboot", "--wait", "switched")
    service.do("server", "reboot", "--hard", "--wait", "switched")
    service.do("server", "pause", "switched")
    becomes(service, "switched", "PAUSED")
    service.do("server", "unpause", "switched")
    becomes(service, "switched", "ACTIVE")
    service.do("server", "suspend", "switched")
    becomes(service, "switched", "SUSPENDED")
    service.do("server", "resume", "switched")
    becomes(service, "switched", "ACTIVE")


def test_events(service: Started) -> None:
    made = service.ask("server", "create", *BOOT, "--property", "fail-pause=no", "told")
    service.do("server", "pause", "told")
    becomes(service, "told", "ACTIVE")
    listed = service.ask("server", "event", "list", "told")
    assert [each["Action"] for each in listed] == ["pause", "create"]
    assert {each["Server ID"] for each in listed} == {made["id"]}
    (newest,) = service.ask(
        "server", "event", "list", "--limit", "1", "--max-items", "1", "--long", "told"
    )
    assert newest["Message"]
    request = newest["Request ID"]
    shown = service.ask("server", "event", "show", "told", request)
    assert shown["action"] == "pause"
    (step,) = shown["events"]
    assert step["result"] == "Error"
    assert "metadata makes the" in step["details"]
    service.do("server", "delete", "--wait", "told")
    at_last = service.ask("server", "event", "list", made["id"])
    assert at_last[0]["Action"] == "delete"


def test_an_administrator_sets_things_right(service: Started) -> None:
    service.ask("server", "create", *BOOT, "odd")
    service.do("server", "set", "--auto-approve", "--state", "error", "odd")
    assert becomes(service, "odd", "ERROR")
    service.do("server", "set", "--auto-approve", "--state", "active", "odd")
    assert becomes(service, "odd", "ACTIVE")
    service.do("server", "delete", "--force", "--wait", "odd")
    assert "odd" in service.refuses("server", "show", "odd")


def test_shelves(service: Started) -> None:
    service.ask("server", "create", *BOOT, "put-away")
    # The client requests the offload when it sees the server shelved. It may be offloaded already.
    outcome = service.run("server", "shelve", "--offload", "--wait", "put-away")
    assert not outcome.status or "in vm_state shelved_offloaded" in outcome.errors
    shown = becomes(service, "put-away", "SHELVED_OFFLOADED")
    assert not shown["OS-EXT-SRV-ATTR:host"]
    assert service.ask("resource", "provider", "allocation", "show", shown["id"]) == []
    service.do("server", "unshelve", "--host", "host-2", "--wait", "put-away")
    assert becomes(service, "put-away", "ACTIVE")["OS-EXT-SRV-ATTR:host"] == "host-2"
    service.do("server", "shelve", "--wait", "put-away")
    becomes(service, "put-away", "SHELVED_OFFLOADED")
    service.do("server", "unshelve", "--availability-zone", "nova", "--wait", "put-away")
    shown = becomes(service, "put-away", "ACTIVE")
    (held,) = service.ask("resource", "provider", "allocation", "show", shown["id"])
    assert held["resources"] == {"VCPU": 1, "MEMORY_MB": 64, "DISK_GB": 1}


def test_a_batch_is_found_by_its_reservation(service: Started) -> None:
    service.do("quota", "set", "--instances", "50", "--cores", "50", "admin")
    made = service.ask("server", "create", *BOOT, "--min", "2", "--max", "3", "batch")
    batch = made["OS-EXT-SRV-ATTR:reservation_id"]
    listed = service.ask("server", "list", "--reservation-id", batch)
    assert sorted(each["Name"] for each in listed) == ["batch-1", "batch-2", "batch-3"]
    assert service.ask("server", "list", "--reservation-id", "r-none") == []
