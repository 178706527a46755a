"""Many writers on three Galera nodes, which are killed, paused and isolated.

Three services run behind one proxy. The services are killed and paused, too, most often the leader.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.simulation.many_writers.fleet import Fleet, audit
from tests.simulation.many_writers.leaders import judge, leaders_of
from tests.simulation.many_writers.nemesis import Harm, harms_of_services
from tests.simulation.many_writers.simulating import SECONDS, simulate
from tests.support.servers.galera import Galera, Node
from tests.support.servers.haproxy import Haproxy

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480 + 2 * SECONDS)]
RECOVERS_WITHIN_S = 60.0
"""A node may be down, too, when the leader is killed."""


@pytest.fixture
def cluster() -> Iterator[Galera]:
    made = Galera()
    try:
        made.start()
        yield made
    finally:
        made.close()


def harms_of(cluster: Galera) -> list[Harm]:
    """The faults of each node; two nodes are always healthy."""

    def revive(node: Node) -> None:
        cluster.restart(node)
        cluster.wait_whole()

    def resume(node: Node) -> None:
        node.resume()
        cluster.wait_whole()

    def reconnect(node: Node) -> None:
        node.reconnect()
        cluster.wait_whole()

    found: list[Harm] = []
    for each in cluster.nodes:
        found += [
            Harm(f"{each.name} killed", each.kill, partial(revive, each), (0.5, 4.0)),
            Harm(f"{each.name} paused", each.pause, partial(resume, each), (0.5, 5.0)),
            Harm(f"{each.name} cut off", each.cut_off, partial(reconnect, each), (0.5, 5.0)),
        ]
    return found


def test_no_write_is_lost_and_no_capacity_sold_twice(cluster: Galera, tmp_path: Path) -> None:
    url = cluster.fresh()
    fleet = Fleet(tmp_path, url)
    proxy = Haproxy(fleet.ports)
    try:
        fleet.start()
        proxy.start()
        with leaders_of(fleet, url) as leaders:
            leaders.wait_for_another(0)
            harms = [*harms_of_services(fleet), *leaders.harms()]
            run = simulate(fleet, harms_of(cluster), ports=[proxy.port], services_harms=harms)
            judge(fleet, leaders, run, RECOVERS_WITHIN_S)
    finally:
        proxy.close()
        fleet.close()
    assert run.harms > 0
    found = audit(url)
    assert found.returncode == 0, found.stdout + found.stderr
