"""The stock ``openstack`` command manages hosts: those of the demonstration agent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.compat.openstack_command import Started, environment, started
from tests.support.forked import SOURCE

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
HOSTS = {"host-1", "host-2", "host-3"}
WITHIN_S = 90.0


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    with started(tmp_path_factory.mktemp("hosts"), "--demo-hosts", "3") as running:
        wait_for_hosts(running)
        yield running


def wait_for_hosts(running: Started) -> None:
    deadline_s = time.monotonic() + WITHIN_S
    while names(running) != HOSTS:
        assert time.monotonic() < deadline_s, "The demonstration's hosts did not come."


def names(running: Started) -> set[str]:
    return {each["Hypervisor Hostname"] for each in running.ask("hypervisor", "list")}


def service_of(running: Started, host: str) -> dict[str, Any]:
    (found,) = running.ask("compute", "service", "list", "--host", host, "--long")
    row: dict[str, Any] = found
    return row


def test_services(service: Started) -> None:
    listed = service.ask("compute", "service", "list")
    assert {each["Host"] for each in listed} == HOSTS
    assert {each["Binary"] for each in listed} == {"nova-compute"}
    assert {(each["Status"], each["State"]) for each in listed} == {("enabled", "up")}
    assert service.ask("compute", "service", "list", "--service", "nova-conductor") == []


def test_a_service_is_disabled_and_enabled(service: Started) -> None:
    change = ("compute", "service", "set")
    service.do(*change, "--disable", "--disable-reason", "dust", "host-1", "nova-compute")
    found = service_of(service, "host-1")
    assert (found["Status"], found["Disabled Reason"]) == ("disabled", "dust")
    service.do(*change, "--enable", "host-1", "nova-compute")
    found = service_of(service, "host-1")
    assert (found["Status"], found["Disabled Reason"]) == ("enabled", None)


def test_a_service_is_forced_down_and_up(service: Started) -> None:
    change = ("compute", "service", "set", "--os-compute-api-version", "2.11")
    service.do(*change, "--down", "host-2", "nova-compute")
    assert service_of(service, "host-2")["State"] == "down"
    service.do(*change, "--up", "host-2", "nova-compute")
    assert service_of(service, "host-2")["State"] == "up"
    newer = ("compute", "service", "set", "--os-compute-api-version", "2.53")
    service.do(*newer, "--down", "host-2", "nova-compute")
    assert service_of(service, "host-2")["State"] == "down"
    service.do(*newer, "--up", "host-2", "nova-compute")


@pytest.mark.parametrize("version", [None, "2.1", "2.53"])
def test_hypervisors(service: Started, version: str | None) -> None:
    asked = () if version is None else ("--os-compute-api-version", version)
    listed = service.ask(*asked, "hypervisor", "list", "--long")
    assert {each["Hypervisor Hostname"] for each in listed} == HOSTS
    assert {each["State"] for each in listed} == {"up"}
    if version is not None:
        assert {(each["vCPUs"], each["Memory MB"]) for each in listed} == {(32, 131072)}


@pytest.mark.parametrize("version", ["2.53", "2.88"])
def test_a_hypervisor_is_found_by_its_name_and_by_its_id(service: Started, version: str) -> None:
    asked = ("--os-compute-api-version", version, "hypervisor", "show")
    by_name = service.ask(*asked, "host-3")
    assert by_name["hypervisor_hostname"] == "host-3"
    assert by_name["hypervisor_type"] == "fake"
    assert service.ask(*asked, by_name["id"])["id"] == by_name["id"]
    assert "host-9" in service.refuses(*asked, "host-9")


def test_statistics(service: Started) -> None:
    whole = service.ask("hypervisor", "stats", "show")
    assert (whole["count"], whole["vcpus"], whole["memory_mb"]) == (3, 96, 393216)


def test_hosts_are_resource_providers(service: Started) -> None:
    listed = service.ask("resource", "provider", "list")
    assert {each["name"] for each in listed} == HOSTS
    stock = service.ask("resource", "provider", "inventory", "list", listed[0]["uuid"])
    assert {each["resource_class"] for each in stock} == {"VCPU", "MEMORY_MB", "DISK_GB"}


def test_no_secret_is_on_a_command_line(service: Started) -> None:
    lines = [
        Path(f"/proc/{child}/cmdline").read_text(encoding="utf-8").split("\0")
        for child in children_of(service.program.pid)
    ]
    assert [line for line in lines if "agent" in line]
    assert not [line for line in lines if "--token" in line]


def test_the_agent_is_started_again_and_stopped_with_the_service(tmp_path: Path) -> None:
    with started(tmp_path, "--demo-hosts", "3") as running:
        wait_for_hosts(running)
        (first,) = children_of(running.program.pid)
        os.kill(first, signal.SIGKILL)
        deadline_s = time.monotonic() + WITHIN_S
        found = children_of(running.program.pid)
        while found in ([], [first]):
            assert time.monotonic() < deadline_s, "The agent was not started again."
            time.sleep(0.1)
            found = children_of(running.program.pid)
        (second,) = found
    assert not Path(f"/proc/{second}").exists()


def test_an_agent_logs_in_and_finds_the_service_in_the_catalog(
    service: Started, tmp_path: Path
) -> None:
    login = {"OS_CLIENT_CONFIG_FILE": str(service.login_file), "OS_CLOUD": "innkeeper"}
    command = [sys.executable, "-m", "innkeeper.main", "agent", "--driver", "fake"]
    command += ["--name", "far", "--host-prefix", "far-", "--state-dir", str(tmp_path)]
    environ = environment(PYTHONPATH=str(SOURCE), HOME=str(tmp_path), **login)
    agent = subprocess.Popen(command, env=environ, stderr=subprocess.DEVNULL)
    try:
        deadline_s = time.monotonic() + WITHIN_S
        while names(service) != HOSTS | {"far-1"}:
            assert time.monotonic() < deadline_s, "The far host did not come."
    finally:
        agent.terminate()
        assert agent.wait(WITHIN_S) == 0
    found = service_of(service, "far-1")
    service.do("compute", "service", "delete", found["ID"])
    assert names(service) == HOSTS


def children_of(parent: int) -> list[int]:
    """The live child processes of a process."""
    found = []
    for entry in Path(f"/proc/{parent}/task").iterdir():
        children = (entry / "children").read_text(encoding="ascii").split()
        found += [int(child) for child in children]
    return found
