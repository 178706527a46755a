"""The checker finds double sales where there are some: its passing elsewhere says something."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulation.many_writers.fleet import Fleet
from tests.simulation.many_writers.simulating import SEED, simulate
from tests.support.servers.postgresql import Postgresql

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]
SECONDS = 7.0
UNGUARDED = "tests.simulation.many_writers.unguarded"


def test_services_without_guards_are_found_out(server: Postgresql, tmp_path: Path) -> None:
    fleet = Fleet(tmp_path, server.fresh(), program=UNGUARDED)
    try:
        fleet.start()
        # Nothing goes wrong but what the services do to each other.
        run = simulate(fleet, (), seed=SEED, seconds=SECONDS, harms_services=False)
    finally:
        fleet.close()
    found = [each for each in run.problems if "accident" not in each]
    # Two moved a provider to the same generation, and so one of them was not seen again.
    assert any("came to generation" in each for each in found), run.problems
    # Both took what was there only once.
    assert any("in use at" in each for each in found), run.problems
