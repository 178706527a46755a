"""The leader is killed between the commit of a boot and its answer: the boot is made once."""

from __future__ import annotations

import signal
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.simulation.many_writers.asking import FLAVOR, SERVERS
from tests.simulation.many_writers.doors import Door
from tests.simulation.many_writers.fleet import Fleet, audit, forwarded, must, wait_until
from tests.simulation.many_writers.leaders import SHARED, leaders_of
from tests.support.databases import DATABASES
from tests.support.servers.postgresql import Postgresql

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]
DYING = "tests.simulation.many_writers.dying"
COUNT = 3
PLAIN = {"imageRef": ""}
BLANK = {"source_type": "blank"}
WITH_VOLUMES = {
    "block_device_mapping_v2": [
        {**BLANK, "destination_type": "local", "boot_index": 0},
        {**BLANK, "destination_type": "volume", "volume_size": 1},
    ]
}


def is_forwarding(fleet: Fleet, door: Door) -> bool:
    """Whether a process has forwarded a write, such as the release of an unknown consumer."""
    door.call("DELETE", f"/placement/allocations/{uuid.uuid4()}")
    return forwarded(fleet) > 0


@pytest.mark.parametrize(
    ("kind", "disks"), [("sqlite", PLAIN), ("postgresql", PLAIN), ("sqlite", WITH_VOLUMES)]
)
def test_a_boot_outlives_the_leader(
    kind: str, disks: dict[str, Any], server: Postgresql, tmp_path: Path
) -> None:
    url = server.fresh() if kind == "postgresql" else DATABASES[kind](tmp_path)
    fleet = Fleet(tmp_path, url, processes=2, settings=SHARED, program=DYING)
    try:
        fleet.start()
        with leaders_of(fleet, url) as leaders:
            leaders.wait_for_another(0)
            number = leaders.number()
        assert number is not None
        port = fleet.ports[1 - number]
        fleet.start_agent(entrance=port, disk_gb=10)
        fleet.furnish()
        door = fleet.door(port)
        wait_until(lambda: is_forwarding(fleet, door), "a forwarded write")
        wanted = {"name": "web", "flavorRef": FLAVOR, "networks": "none", **disks}
        body = {"server": {**wanted, "min_count": COUNT}}
        booted = must(door.call("POST", SERVERS, body))["server"]
        leader = fleet.services[number].process
        assert leader is not None
        assert leader.poll() == -signal.SIGKILL, "the leader did not carry it out"
        found = must(door.call("GET", f"{SERVERS}/detail?all_tenants=1"))["servers"]
        assert sorted(each["name"] for each in found) == ["web-1", "web-2", "web-3"]
        assert booted["id"] in {each["id"] for each in found}
        assert "ERROR" not in {each["status"] for each in found}
        volumes = [each["os-extended-volumes:volumes_attached"] for each in found]
        assert {len(each) for each in volumes} == {int(disks is WITH_VOLUMES)}
        door.close()
    finally:
        fleet.close()
    judged = audit(url)
    assert judged.returncode == 0, judged.stdout + judged.stderr
