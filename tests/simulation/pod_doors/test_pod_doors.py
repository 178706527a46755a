"""Simulated doors over pods. Requests are lost, late or repeated; processes die; pods pause.

``SIMULATION_DOORS`` and ``SIMULATION_SEED`` make more and other runs, and so does
``python -m tests.simulation.pod_doors``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import pytest
from structlog.testing import capture_logs

from tests.simulation.pod_doors.network import FATES, Fate
from tests.simulation.pod_doors.simulation import run
from tests.simulation.stepping.outcomes import Outcome

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

DOORS = int(os.environ.get("SIMULATION_DOORS", "6"))
SEED = int(os.environ.get("SIMULATION_SEED", "0"))
PAUSES = {Fate.PAUSED: 0.3}
"""Creates wait in pods that are paused, longer than the door waits for an answer."""
LOSSES = {Fate.ANSWER_LOST: 0.4}
"""The answers to many creates do not arrive."""
SEED_OF_PAUSE, SEED_OF_BUG = 4, 100
SEED_OF_REVERT = 33
"""A pod is asked to delete a server with a volume while it reverts a resize on the same host."""


def outcome_of(
    seed: int, chances: Mapping[str, float] = FATES, *, sends_again: bool = False
) -> Outcome:
    """Run a door without its logs, which would be long."""
    with capture_logs():
        return run(seed, chances, sends_again=sends_again)


@pytest.mark.parametrize("seed", range(SEED, SEED + DOORS))
def test_nothing_is_made_twice_lost_or_counted_wrongly(seed: int) -> None:
    outcome = outcome_of(seed)
    assert outcome.faults == []
    assert outcome.answers["boot 202"] > 0


def test_what_paused_pods_make_late_is_adopted() -> None:
    outcome = outcome_of(SEED_OF_PAUSE, PAUSES)
    assert outcome.faults == []
    assert outcome.fates[Fate.PAUSED] > 0


def test_volumes_of_a_server_that_is_deleted_while_it_is_reverted_are_free() -> None:
    assert outcome_of(SEED_OF_REVERT).faults == []


def test_a_seed_decides_everything() -> None:
    assert outcome_of(SEED) == outcome_of(SEED)


def test_creates_that_are_sent_again_after_a_lost_answer_are_found() -> None:
    assert outcome_of(SEED_OF_BUG, LOSSES).faults == []
    found = outcome_of(SEED_OF_BUG, LOSSES, sends_again=True).faults
    # The door adopts a resource that was made twice, because both have the door's mark. So nothing
    # is lost.
    assert any("exist, and" in each for each in found)
