"""Sixteen writers on ten thousand hosts rarely conflict, whatever the number of processes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.simulation.many_writers.asking import FLAVOR, PER_SERVER
from tests.simulation.many_writers.fleet import Fleet, must, wait_until
from tests.simulation.many_writers.placing import CONFLICT, overtaken, place
from tests.support.servers.postgresql import Postgresql

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
HOSTS = 10_000
WRITERS = 16
CLAIMS_EACH = 15
PROCESSES = (1, 2, 4)
SHARE_MAX = 0.01


def test_claims_rarely_conflict(server: Postgresql, tmp_path: Path) -> None:
    fleet = Fleet(
        tmp_path, server.fresh(), processes=max(PROCESSES), settings={"INNKEEPER_LOG_LEVEL": "info"}
    )
    try:
        fleet.start()
        fleet.start_agent(hosts=HOSTS, cpus=32)
        door = fleet.door()
        flavor = {"id": FLAVOR, "name": FLAVOR, "vcpus": PER_SERVER["VCPU"], "disk": 0}
        flavor["ram"] = PER_SERVER["MEMORY_MB"]
        must(door.call("POST", "/compute/v2.1/flavors", {"flavor": flavor}))
        statistics = "/compute/v2.1/os-hypervisors/statistics"

        def hosts() -> int:
            found = must(door.call("GET", statistics))["hypervisor_statistics"]
            return int(found["count"])

        wait_until(lambda: hosts() == HOSTS, "the agent's hosts", 90.0)
        door.close()
        for count in PROCESSES:
            check_share(fleet, count)
    finally:
        fleet.close()
        sys.stdout.write(fleet.log_ends())


def check_share(fleet: Fleet, processes: int) -> None:
    """Place through this many processes; few claims conflict."""
    logs = [each.log for each in fleet.services]
    before = overtaken(logs)
    outcomes = place(fleet.ports[:processes], WRITERS, CLAIMS_EACH)
    repeated = overtaken(logs) - before
    claims = sum(outcomes.values())
    sys.stdout.write(f"{processes} processes: {dict(outcomes)}, {repeated} repeated\n")
    assert set(outcomes) <= {202, 204, CONFLICT}, outcomes
    assert claims == WRITERS * CLAIMS_EACH
    assert outcomes[CONFLICT] + repeated <= SHARE_MAX * claims, (processes, outcomes, repeated)
