"""Many writers compete for a provider's last capacity, which is sold exactly once.

Threads race against one service; processes with stores of their own race on one database.
"""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

from innkeeper.domain.amounts import Inventory
from innkeeper.domain.ids import ProviderId
from innkeeper.settings import load
from innkeeper.store.queries.placement import capacity, names
from innkeeper.systems.placement import inventories, providers
from innkeeper.wiring import now, open_store
from tests.simulation.claimant import CLASS
from tests.support.running import Running, running

THREADS = 12
CAPACITY = 40
TRIES_EACH = 5
PLACEMENT = {"openstack-api-version": "placement 1.12"}
PROVIDER = "00000000-0000-4000-8000-0000000000a1"
UNLIMITED = {"quota_instances": -1, "quota_cores": -1, "quota_ram": -1}

PROCESSES = 3
PROCESS_CAPACITY = 150
PROCESS_WITHIN_S = 60


def test_threads_that_claim(tmp_path: Path) -> None:
    """Exactly as many claims are acknowledged as there are units. The others are rejected."""
    with running(tmp_path) as cloud:
        make_provider(cloud)

        def claim() -> int:
            body = {
                "allocations": {PROVIDER: {"resources": {"VCPU": 1}}},
                "project_id": "project",
                "user_id": "user",
            }
            path = f"/placement/allocations/{uuid.uuid4()}"
            return int(cloud.call("PUT", path, json=body, headers=PLACEMENT).status_code)

        statuses = Counter(all_at_once(claim))
        assert statuses == {204: CAPACITY, 409: THREADS * TRIES_EACH - CAPACITY}
        path = f"/placement/resource_providers/{PROVIDER}/usages"
        assert cloud.call("GET", path).json()["usages"]["VCPU"] == CAPACITY


def test_threads_that_boot(tmp_path: Path) -> None:
    """As many servers are placed as fit, and the others have a fault."""
    with running(tmp_path, **UNLIMITED) as cloud:
        make_host(cloud)

        def boot() -> int:
            wanted = {"name": "s", "flavorRef": "tiny", "imageRef": "", "networks": "none"}
            headers = {"openstack-api-version": "compute 2.74"}
            path = "/compute/v2.1/servers"
            answer = cloud.call("POST", path, json={"server": wanted}, headers=headers)
            return int(answer.status_code)

        assert set(all_at_once(boot)) == {202}
        servers = cloud.call("GET", "/compute/v2.1/servers/detail?limit=1000").json()["servers"]
        statuses = Counter(each["status"] for each in servers)
        assert statuses == {"BUILD": CAPACITY, "ERROR": THREADS * TRIES_EACH - CAPACITY}
        faults = [each["fault"]["message"] for each in servers if each["status"] == "ERROR"]
        assert all("No valid host was found" in fault for fault in faults), faults


def all_at_once(act: Callable[[], int]) -> list[int]:
    """Call ``act`` several times in every thread; all threads begin together."""
    start = Barrier(THREADS)

    def work() -> list[int]:
        start.wait()
        return [act() for _ in range(TRIES_EACH)]

    with ThreadPoolExecutor(THREADS) as pool:
        runs = [pool.submit(work) for _ in range(THREADS)]
        return [found for run in runs for found in run.result()]


def make_provider(cloud: Running) -> None:
    """A provider with ``CAPACITY`` processors."""
    path = "/placement/resource_providers"
    body: dict[str, Any] = {"name": "provider", "uuid": PROVIDER}
    assert cloud.call("POST", path, json=body, headers=PLACEMENT).is_success
    body = {"resource_provider_generation": 0, "total": CAPACITY}
    body["resource_class"] = "VCPU"
    path = f"{path}/{PROVIDER}/inventories"
    assert cloud.call("POST", path, json=body, headers=PLACEMENT).is_success


def make_host(cloud: Running) -> None:
    """A host on which ``CAPACITY`` servers of the flavor ``tiny`` fit, by their memory."""
    agents = "/compute/v2.1/os-agents"
    body: dict[str, Any] = {"agent": {"name": "racer", "driver": "fake"}}
    agent = cloud.call("POST", agents, json=body).json()["agent"]
    totals = {"VCPU": 1000, "MEMORY_MB": 64 * CAPACITY, "DISK_GB": 1000}
    amounts = {name: {"total": total} for name, total in totals.items()}
    body = {"hosts": [{"name": "host", "inventories": amounts}]}
    assert cloud.call("PUT", f"{agents}/{agent['id']}/hosts", json=body).is_success
    body = {"flavor": {"id": "tiny", "name": "tiny", "vcpus": 1, "ram": 64, "disk": 1}}
    assert cloud.call("POST", "/compute/v2.1/flavors", json=body).is_success


def test_processes_that_claim(tmp_path: Path) -> None:
    """Several processes on one database: conflicts are retried, and the sums are right."""
    store = open_store(load(None, environ={}, overrides={"data_dir": str(tmp_path)}))
    with store.write() as tx:
        provider_id = providers.create(tx, PROVIDER, "provider", None, now=now()).id
        inventories.add(tx, PROVIDER, CLASS, Inventory(total=PROCESS_CAPACITY), now())
    started = [start_claimant(tmp_path, provider_id) for _ in range(PROCESSES)]
    for each in started:
        tell_to_begin(each)
    found = [finish(each) for each in started]
    assert sum(each["claimed"] for each in found) == PROCESS_CAPACITY
    assert sum(each["conflicts"] for each in found) > 0, "nobody came between anybody"
    with store.read() as tx:
        view = capacity.views(tx, [provider_id])[provider_id]
        class_id = names.class_ids(tx)[CLASS]
    assert view.used[class_id] == PROCESS_CAPACITY
    # One step for the inventory, and one for each claim.
    assert view.generation == 1 + PROCESS_CAPACITY
    store.dispose()


def start_claimant(directory: Path, provider_id: ProviderId) -> subprocess.Popen[str]:
    """Start a process that claims when :func:`tell_to_begin` is called."""
    command = [sys.executable, "-m", "tests.simulation.claimant"]
    process = subprocess.Popen(
        [*command, str(directory), str(provider_id)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def tell_to_begin(process: subprocess.Popen[str]) -> None:
    """Let a claimant begin."""
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def finish(process: subprocess.Popen[str]) -> dict[str, int]:
    """Wait for a claimant's end, and return its results."""
    output, _ = process.communicate(timeout=PROCESS_WITHIN_S)
    assert process.returncode == 0
    found: dict[str, int] = json.loads(output)
    return found
