"""Simulated trees of zones in which requests are lost, late and repeated, and processes die.

``SIMULATION_TREES`` and ``SIMULATION_SEED`` make more and other runs, and so does
``python -m tests.simulation.zone_trees``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import pytest
from structlog.testing import capture_logs

from innkeeper.store.guards import Guards
from tests.simulation.stepping.outcomes import Outcome
from tests.simulation.zone_trees.network import FATES, Fate
from tests.simulation.zone_trees.simulation import run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

TREES = int(os.environ.get("SIMULATION_TREES", "12"))
SEED = int(os.environ.get("SIMULATION_SEED", "0"))
PLANTED = range(100, 104)
"""Some of these seeds must find the planted bug."""
LATE = {Fate.LATE: 0.5}
"""Half of all requests that build arrive long after their sender gave up."""


def outcome_of(
    seed: int, chances: Mapping[str, float] = FATES, guards: Guards | None = None
) -> Outcome:
    """Run a tree without its logs, which would be long."""
    with capture_logs():
        return run(seed, chances, guards)


@pytest.mark.parametrize("seed", range(SEED, SEED + TREES))
def test_no_server_is_lost_built_twice_or_left_behind(seed: int) -> None:
    outcome = outcome_of(seed)
    assert outcome.faults == []
    assert outcome.answers["accepted"] > 0


def test_a_seed_decides_everything() -> None:
    assert outcome_of(SEED) == outcome_of(SEED)


def test_entries_that_can_be_used_again_are_found() -> None:
    assert not any(outcome_of(seed, LATE).faults for seed in PLANTED)
    planted = Guards(single_use=False)
    found = [each for seed in PLANTED for each in outcome_of(seed, LATE, planted).faults]
    assert any("is an orphan" in each for each in found)
