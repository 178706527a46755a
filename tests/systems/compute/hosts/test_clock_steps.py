"""A clock that is set back: live agents stay up, and dead agents are detected."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from innkeeper.store.queries.compute import agents
from innkeeper.systems.compute.hosts import work
from tests.support.clouds import AGENT, NOW, Cloud, cloud_in, faults, reported

HOUR = timedelta(hours=1)
TIMEOUT_S = 600.0


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    """A cloud of one host."""
    started = cloud_in(tmp_path, reported("a"))
    yield started
    started.close()


def heard(cloud: Cloud) -> object:
    """The time of the agent's last heartbeat."""
    return dict(cloud.read(agents.last_seen))[AGENT.id]


def test_a_heartbeat_in_the_future_counts_as_now_and_expires(cloud: Cloud) -> None:
    cloud.write(lambda tx: agents.mark_seen(tx, [AGENT.id], NOW + HOUR))
    cloud.write(lambda tx: work.sweep(tx, TIMEOUT_S, NOW))
    assert heard(cloud) == NOW
    later = NOW + timedelta(minutes=5)
    cloud.write(lambda tx: work.sweep(tx, TIMEOUT_S, later))
    assert heard(cloud) == NOW
    assert faults(cloud.boot(cloud.request(now=later))) != [None]
    cloud.write(lambda tx: agents.mark_seen(tx, [AGENT.id], later))
    assert faults(cloud.boot(cloud.request(now=later))) == [None]


def test_a_clock_slightly_ahead_is_tolerated(cloud: Cloud) -> None:
    ahead = NOW + timedelta(seconds=20)
    cloud.write(lambda tx: agents.mark_seen(tx, [AGENT.id], ahead))
    cloud.write(lambda tx: work.sweep(tx, TIMEOUT_S, NOW))
    assert heard(cloud) == ahead
