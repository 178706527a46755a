"""Runs an agent that carries out builds while the service is measured."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.fleet import FLAVOR, FLAVOR_ID
from benchmarks.running import Started, stop

THERE_WITHIN_S = 120.0
SETTLED_WITHIN_S = 120.0
LOOK_AGAIN_S = 0.2
ADMIN = "admin"


@contextmanager
def agent_beside(directory: Path, service: Started, hosts: int) -> Iterator[None]:
    """Run the real agent with its fake driver.

    The block begins when all hosts of the agent are up. It ends when every acknowledged server is
    built.
    """
    command = [sys.executable, "-m", "innkeeper.main", "agent", "--driver", "fake"]
    command += ["--hosts", str(hosts), "--state-dir", str(directory / "agent")]
    command += ["--url", f"http://127.0.0.1:{service.port}/compute"]
    with (directory / "agent.log").open("ab") as log:
        agent = subprocess.Popen(
            command, stdout=log, stderr=log, env={**os.environ, "OS_TOKEN": ADMIN}
        )
    try:
        await_hosts(service, hosts)
        make_flavor(service)
        yield
        _wait(lambda: not _is_building(service), SETTLED_WITHIN_S, "the agent's builds")
    finally:
        stop(agent)


def await_hosts(service: Started, hosts: int) -> None:
    """Wait until agents have reported this many hosts."""
    _wait(lambda: _host_count(service) == hosts, THERE_WITHIN_S, "the agents' hosts")


def _host_count(service: Started) -> int:
    found = _call(service, "GET", "/compute/v2.1/os-hypervisors/statistics")
    count: int = found["hypervisor_statistics"]["count"]
    return count


def _is_building(service: Started) -> bool:
    found = _call(service, "GET", "/compute/v2.1/servers?all_tenants=1&status=BUILD&limit=1")
    return bool(found["servers"])


def make_flavor(service: Started) -> None:
    """Create the flavor of the measured servers."""
    flavor = {
        "id": FLAVOR_ID,
        "name": "small",
        "vcpus": FLAVOR["vcpus"],
        "ram": FLAVOR["memory_mb"],
        "disk": FLAVOR["disk_gb"],
    }
    _call(service, "POST", "/compute/v2.1/flavors", {"flavor": flavor})


def _call(service: Started, method: str, path: str, body: Any = None) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=30)
    headers = {"x-auth-token": ADMIN}
    if body is not None:
        headers["content-type"] = "application/json"
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read()
        if answer.status != http.client.OK:
            raise RuntimeError(f"{method} {path}: {answer.status} {text[:500]!r}")
        return json.loads(text)
    finally:
        connection.close()


def _wait(is_so: Any, within_s: float, what: str) -> None:
    deadline = time.perf_counter() + within_s
    while not is_so():
        if time.perf_counter() > deadline:
            raise RuntimeError(f"Timed out waiting for {what}.")
        time.sleep(LOOK_AGAIN_S)
