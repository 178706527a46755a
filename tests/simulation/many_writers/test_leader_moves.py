"""The leader is killed, paused and stopped under load: nothing is lost, and nothing sold twice.

``SIMULATION_SECONDS`` makes longer runs, in which the leader moves more often.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulation.many_writers.fleet import Fleet, audit
from tests.simulation.many_writers.leaders import SHARED, judge, leaders_of
from tests.simulation.many_writers.links import PROGRAM, links
from tests.simulation.many_writers.simulating import SECONDS, simulate
from tests.support.databases import DATABASES
from tests.support.servers.postgresql import Postgresql

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480 + 2 * SECONDS)]
CALM_S = (0.5, 2.0)
PLANTED_S = 7.0
REPEATING = "tests.simulation.many_writers.repeating"


def test_nothing_is_lost_when_the_leader_of_a_file_moves(tmp_path: Path) -> None:
    url = DATABASES["sqlite"](tmp_path)
    fleet = Fleet(tmp_path, url, settings=SHARED)
    try:
        fleet.start()
        with leaders_of(fleet, url) as leaders:
            leaders.wait_for_another(0)
            # A database file cannot end the transaction of a process that is paused.
            run = simulate(fleet, (), services_harms=leaders.deaths(), calm_s=CALM_S)
            judge(fleet, leaders, run)
    finally:
        fleet.close()
    assert_consistent(url)


def test_nothing_is_lost_when_leaders_and_links_fall(server: Postgresql, tmp_path: Path) -> None:
    """The services reach each other with TLS, as if they were on several machines."""
    url = server.fresh()
    with links() as between:
        fleet = Fleet(tmp_path, url, program=PROGRAM, own_settings=between.settings)
        try:
            fleet.start()
            with leaders_of(fleet, url, between.ports) as leaders:
                leaders.wait_for_another(0)
                harms = [*leaders.harms(), *between.cuts()]
                run = simulate(fleet, (), services_harms=harms, calm_s=CALM_S)
                judge(fleet, leaders, run)
        finally:
            fleet.close()
    assert_consistent(url)


def test_a_follower_that_repeats_unanswered_writes_is_noticed(
    server: Postgresql, tmp_path: Path
) -> None:
    url = server.fresh()
    fleet = Fleet(tmp_path, url, settings=SHARED, program=REPEATING)
    try:
        fleet.start()
        with leaders_of(fleet, url) as leaders:
            leaders.wait_for_another(0)
        # There are no faults; only answers between the services are lost.
        run = simulate(fleet, (), seconds=PLANTED_S, services_harms=())
    finally:
        fleet.close()
    assert run.problems, "writes that were carried out twice were not noticed"


def assert_consistent(url: str) -> None:
    found = audit(url)
    assert found.returncode == 0, found.stdout + found.stderr
