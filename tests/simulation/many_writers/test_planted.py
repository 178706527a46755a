"""The checker finds double sales in a service that allows them. So it can detect them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulation.many_writers.fleet import Fleet
from tests.simulation.many_writers.simulating import SEED, simulate
from tests.support.servers.postgresql import Postgresql

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]
SECONDS = 7.0
UNGUARDED = "tests.simulation.many_writers.unguarded"


def test_the_checker_finds_services_without_guards(server: Postgresql, tmp_path: Path) -> None:
    fleet = Fleet(tmp_path, server.fresh(), program=UNGUARDED)
    try:
        fleet.start()
        # There are no faults; only the services conflict.
        run = simulate(fleet, (), seed=SEED, seconds=SECONDS, services_harms=())
    finally:
        fleet.close()
    found = [each for each in run.problems if "accident" not in each]
    # Two writes advanced a provider to the same generation, so one of them was lost.
    assert any("came to generation" in each for each in found), run.problems
    # Both claims took the same capacity.
    assert any("in use at" in each for each in found), run.problems
