"""Commits that succeed without an acknowledgement, on a database that is always available.

A service that retries such a write finds it already done. It must not report this as a rejection.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from random import Random

import pytest

from tests.simulation.many_writers.cutting import Wire
from tests.simulation.many_writers.fleet import Fleet
from tests.simulation.many_writers.nemesis import Harm
from tests.simulation.many_writers.simulating import SEED, simulate
from tests.support.servers.postgresql import Postgresql

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]
SECONDS = 8.0
SHARE = 0.1


def test_a_retried_request_does_not_count_as_refused(server: Postgresql, tmp_path: Path) -> None:
    dice = Random(SEED)  # noqa: S311 - to be repeated
    wire = Wire(server.port, dice)
    url = server.fresh().replace(f":{server.port}/", f":{wire.port}/")
    fleet = Fleet(tmp_path, url)
    harms = [Harm("commits cut", partial(wire.fray, SHARE), wire.reread, (1.0, 3.0))]
    try:
        fleet.start()
        run = simulate(fleet, harms, seconds=SECONDS, services_harms=())
    finally:
        fleet.close()
        wire.close()
    assert wire.cuts > 0
    assert run.problems == []
