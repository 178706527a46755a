"""The hosts that most tests of leases share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.lease_worlds import SIZES, LeaseWorld


@pytest.fixture
def world(tmp_path: Path) -> Iterator[LeaseWorld]:
    """Hosts of 8, 4, 4 and 2 processors; a1 and b1 are of kind a."""
    made = LeaseWorld(tmp_path)
    yield made
    made.judge()
    made.movers.close()


@pytest.fixture
def only_a1(world: LeaseWorld) -> LeaseWorld:
    """Only the host of eight processors is up."""
    for name in SIZES.keys() - {"a1"}:
        world.switch(name)
    return world
