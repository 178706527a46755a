"""The leader is killed between the commit of a boot and its answer: the boot is made once."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.simulation.many_writers.asking import FLAVOR, SERVERS
from tests.simulation.many_writers.fleet import Fleet, audit, forwarded, must, wait_until
from tests.simulation.many_writers.leaders import SHARED, leaders_of
from tests.support.databases import DATABASES
from tests.support.servers.postgresql import Postgresql

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]
DYING = "tests.simulation.many_writers.dying"
COUNT = 3


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_boot_outlives_the_leader(kind: str, server: Postgresql, tmp_path: Path) -> None:
    url = server.fresh() if kind == "postgresql" else DATABASES[kind](tmp_path)
    fleet = Fleet(tmp_path, url, processes=2, settings=SHARED, program=DYING)
    try:
        fleet.start()
        with leaders_of(fleet, url) as leaders:
            leaders.wait_for_another(0)
            number = leaders.number()
        assert number is not None
        port = fleet.ports[1 - number]
        fleet.start_agent(entrance=port)
        fleet.furnish()
        wait_until(lambda: forwarded(fleet) > 0, "a forwarded write")
        door = fleet.door(port)
        wanted = {"name": "web", "flavorRef": FLAVOR, "imageRef": "", "networks": "none"}
        body = {"server": {**wanted, "min_count": COUNT}}
        booted = must(door.call("POST", SERVERS, body))["server"]
        leader = fleet.services[number].process
        assert leader is not None
        assert leader.poll() == -signal.SIGKILL, "the leader did not carry it out"
        found = must(door.call("GET", f"{SERVERS}/detail?all_tenants=1"))["servers"]
        assert sorted(each["name"] for each in found) == ["web-1", "web-2", "web-3"]
        assert booted["id"] in {each["id"] for each in found}
        assert "ERROR" not in {each["status"] for each in found}
        door.close()
    finally:
        fleet.close()
    judged = audit(url)
    assert judged.returncode == 0, judged.stdout + judged.stderr
