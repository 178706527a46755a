"""The earliest window in which several demands of a lease fit together."""

from __future__ import annotations

import pytest

from innkeeper.domain.leases import Demand
from innkeeper.scheduling.leases.windows import WindowSearch, earliest
from tests.support.minutes import MINUTE, Minutes, PlainHold, PlainHost, at

EIGHT = PlainHost({"VCPU": 8})
BOTH = (Demand(1, 1), Demand(1, 1, {"VCPU": 2}))
"""A whole host and a slot, which need a host each."""


@pytest.mark.parametrize(("cleaning", "start"), [(0, 20), (5, 25)])
def test_demands_that_fit_alone_wait_for_each_other(cleaning: int, start: int) -> None:
    """Each of them would fit at once, on the host that is free. The other host is cleaned first."""
    world = Minutes([EIGHT, EIGHT], [PlainHold(0, 0, 20)])
    search = WindowSearch(at(0), at(60), 10 * MINUTE, cleaning * MINUTE)
    assert earliest(world.calendar(), BOTH, search, world.usable(), seed=1) == at(start)
