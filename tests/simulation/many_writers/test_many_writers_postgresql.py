"""Many writers on PostgreSQL. Its server and the services are killed and restarted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.simulation.many_writers.fleet import Fleet, audit
from tests.simulation.many_writers.nemesis import Harm
from tests.simulation.many_writers.simulating import SECONDS, simulate
from tests.support.servers.postgresql import Postgresql

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480 + 2 * SECONDS)]


SAFE = {"fsync": "off", "synchronous_commit": "on"}
"""A commit is acknowledged when the operating system has it. So it survives the death of the
server, but not of the machine. The server restarts without flushing every file to the disk
first."""


@pytest.fixture
def server() -> Iterator[Postgresql]:
    made = Postgresql(**SAFE)
    try:
        made.start()
        yield made
    finally:
        made.close()


def test_no_write_is_lost_and_no_capacity_sold_twice(server: Postgresql, tmp_path: Path) -> None:
    url = server.fresh()
    fleet = Fleet(tmp_path, url)
    harms = [
        Harm("database killed", server.kill, server.start, (0.2, 2.0)),
        Harm("database paused", server.pause, server.resume, (1.0, 4.0)),
    ]
    try:
        fleet.start()
        run = simulate(fleet, harms)
    finally:
        fleet.close()
    assert run.problems == []
    assert run.harms > 0
    found = audit(url)
    assert found.returncode == 0, found.stdout + found.stderr
