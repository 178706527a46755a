"""The stock ``openstack`` command sets up a shared pool, and reads its free capacity."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compat.openstack_command import Started, environment, started
from tests.support.forked import SOURCE

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
HOSTS = {"rack-1", "rack-2", "rack-3"}
WITHIN_S = 90.0
TRAIT = "MISC_SHARES_VIA_AGGREGATE"
RACK = "60000000-0000-4000-8000-00000000000a"
BLANK = "source_type=blank,destination_type=local,boot_index=0"
BOOT = ("--flavor", "small", "--block-device", BLANK, "--nic", "none")
PLACEMENT = ("--os-placement-api-version", "1.39")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    with started(tmp_path_factory.mktemp("pool")) as running:
        agent = diskless_agent(running, tmp_path_factory.mktemp("agent"))
        try:
            yield running
        finally:
            agent.terminate()
            assert agent.wait(WITHIN_S) == 0


def diskless_agent(running: Started, state_dir: Path) -> subprocess.Popen[bytes]:
    """An agent with three hosts without disks; returns when they are up."""
    login = {"OS_CLIENT_CONFIG_FILE": str(running.login_file), "OS_CLOUD": "innkeeper"}
    command = [sys.executable, "-m", "innkeeper.main", "agent", "--driver", "fake"]
    command += ["--hosts", "3", "--host-prefix", "rack-", "--disk-gb", "0"]
    environ = environment(PYTHONPATH=str(SOURCE), HOME=str(state_dir), **login)
    agent = subprocess.Popen(
        [*command, "--state-dir", str(state_dir)], env=environ, stderr=subprocess.DEVNULL
    )
    deadline_s = time.monotonic() + WITHIN_S
    while len(running.ask("resource", "provider", "list")) < len(HOSTS):
        assert time.monotonic() < deadline_s, "The hosts did not come."
    return agent


def provider(running: Started, *words: str) -> object:
    """Run a command about resource providers, at the newest version."""
    return running.ask(*PLACEMENT, "resource", "provider", *words)


def generation(running: Started, uuid: str) -> str:
    """A provider's generation."""
    return str(running.ask("resource", "provider", "show", uuid)["generation"])


def test_three_hosts_share_a_pool_that_counts_once(service: Started) -> None:
    hosts = {each["name"]: each["uuid"] for each in service.ask("resource", "provider", "list")}
    assert hosts.keys() == HOSTS
    pool = service.ask("resource", "provider", "create", "ceph")["uuid"]
    provider(service, "inventory", "set", pool, "--resource", "DISK_GB=1000")
    provider(service, "trait", "set", "--trait", TRAIT, pool)
    for uuid in (pool, *hosts.values()):
        joining = ("--aggregate", RACK, "--generation", generation(service, uuid))
        provider(service, "aggregate", "set", *joining, uuid)
    whole = service.ask("hypervisor", "stats", "show")
    assert (whole["count"], whole["vcpus"], whole["local_gb"]) == (3, 96, 1000)
    service.ask("flavor", "create", "--vcpus", "1", "--ram", "512", "--disk", "20", "small")
    service.ask("server", "create", *BOOT, "--min", "4", "--max", "4", "--wait", "web")
    whole = service.ask("hypervisor", "stats", "show")
    assert (whole["local_gb"], whole["local_gb_used"], whole["free_disk_gb"]) == (1000, 80, 920)
    for name in sorted(HOSTS):
        line = service.ask("--os-compute-api-version", "2.87", "hypervisor", "show", name)
        assert (line["local_gb"], line["free_disk_gb"]) == (1000, 920)
    assert f"DISK_GB of {pool}" in service.ask("server", "explain", "--flavor", "small")["chosen"]
    (server, *_) = service.ask("server", "list")
    rows = service.ask("resource", "provider", "allocation", "show", server["ID"])
    held = {each["resource_provider"]: each["resources"] for each in rows}
    assert held[pool] == {"DISK_GB": 20}
    assert {"VCPU": 1, "MEMORY_MB": 512} in held.values()
