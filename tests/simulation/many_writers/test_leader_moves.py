"""The leader is killed, paused and stopped under load: nothing is lost, and nothing sold twice.

``SIMULATION_SECONDS`` makes longer runs, in which the leader moves more often.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.simulation.many_writers.fleet import Fleet, audit, forwarded
from tests.simulation.many_writers.leaders import SHARED, leaders_of, longest_gap_s
from tests.simulation.many_writers.simulating import SECONDS, simulate
from tests.support.databases import DATABASES
from tests.support.servers.postgresql import Postgresql

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480 + 2 * SECONDS)]
CALM_S = (0.5, 2.0)
PLANTED_S = 7.0
REPEATING = "tests.simulation.many_writers.repeating"


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_nothing_is_lost_when_the_leader_moves(
    kind: str, server: Postgresql, tmp_path: Path
) -> None:
    url = server.fresh() if kind == "postgresql" else DATABASES[kind](tmp_path)
    fleet = Fleet(tmp_path, url, settings=SHARED)
    try:
        fleet.start()
        with leaders_of(fleet, url) as leaders:
            # A database file cannot end the transaction of a process that is paused.
            harms = leaders.harms() if kind == "postgresql" else leaders.kills()
            leaders.wait_for_another(0)
            run = simulate(fleet, (), services_harms=harms, calm_s=CALM_S)
            last = leaders.row()
        assert forwarded(fleet) > 0, "nothing was forwarded"
    finally:
        fleet.close()
    assert run.problems == []
    assert last is not None
    assert last.term > 1, "the leader never moved"
    # Not asserted, because it depends on the load of the machine.
    sys.stdout.write(
        f"{last.term} terms, {longest_gap_s(run.operations):.1f} s without an acknowledgement\n"
    )
    found = audit(url)
    assert found.returncode == 0, found.stdout + found.stderr


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
