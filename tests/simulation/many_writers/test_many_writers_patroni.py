"""Many writers on PostgreSQL under Patroni: primary and standby are killed and paused.

The services are killed and paused, too, most often the leader.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.simulation.many_writers.fleet import Fleet, audit
from tests.simulation.many_writers.leaders import judge, leaders_of
from tests.simulation.many_writers.nemesis import Harm, harms_of_services
from tests.simulation.many_writers.simulating import SECONDS, simulate
from tests.support.servers.patroni import Node, Patroni

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480 + 2 * SECONDS)]
FAILS_OVER_WITHIN_S = 60.0
"""The primary may be down, too, when the leader is killed."""


@pytest.fixture
def cluster() -> Iterator[Patroni]:
    made = Patroni()
    try:
        made.start()
        yield made
    finally:
        made.close()


class Harming:
    """Remembers the node that it harms, since the roles change soon after."""

    def __init__(self, cluster: Patroni) -> None:
        self._cluster = cluster
        self._harmed: Node | None = None

    def kill_primary(self) -> None:
        self._harmed = self._cluster.primary
        self._harmed.kill()

    def kill_standby(self) -> None:
        self._harmed = self._cluster.standby
        self._harmed.kill()

    def revive(self) -> None:
        assert self._harmed is not None
        self._harmed.start()
        self._cluster.wait_whole()

    def pause_primary(self) -> None:
        self._harmed = self._cluster.primary
        self._harmed.pause()

    def resume(self) -> None:
        assert self._harmed is not None
        self._harmed.resume()
        self._cluster.wait_whole()


def test_no_write_is_lost_and_no_capacity_sold_twice(cluster: Patroni, tmp_path: Path) -> None:
    url = cluster.fresh()
    fleet = Fleet(tmp_path, url)
    harming = Harming(cluster)
    harms = [
        Harm("primary killed", harming.kill_primary, harming.revive, (1.0, 9.0)),
        Harm("standby killed", harming.kill_standby, harming.revive, (0.5, 3.0)),
        # Some pauses are shorter than a failover, and some are longer.
        Harm("primary paused", harming.pause_primary, harming.resume, (1.0, 9.0)),
    ]
    try:
        fleet.start()
        with leaders_of(fleet, url) as leaders:
            leaders.wait_for_another(0)
            of_services = [*harms_of_services(fleet), *leaders.harms()]
            run = simulate(fleet, harms, services_harms=of_services)
            judge(fleet, leaders, run, FAILS_OVER_WITHIN_S)
    finally:
        fleet.close()
    assert run.harms > 0
    found = audit(url)
    assert found.returncode == 0, found.stdout + found.stderr
