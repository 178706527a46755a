"""The periodic task that warns and deletes preemptible servers: what it costs, and who acts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from innkeeper.domain.compute import Task
from innkeeper.domain.preemption import EXTRA_SPEC, LEAD_S
from innkeeper.domain.slices import Leasing
from innkeeper.engine.leases.preemption import TASK
from innkeeper.store.queries.leases import preemptions
from tests.support.clouds import reported
from tests.support.lease_operator import LeaseOperator
from tests.support.lease_processes import LeaseProcess
from tests.support.moves import Movers

HOUR_S, GRACE_S = 3600.0, 60
LEASING = Leasing(allow_preemptible_servers=True, preemption_grace_s=GRACE_S)
SERVERS = 250
"""More servers than are warned or deleted in one transaction."""


@pytest.fixture
def operator(tmp_path: Path) -> Iterator[LeaseOperator]:
    """A large host for leases."""
    made = LeaseOperator(Movers(tmp_path, reported("a1", 999, 999_999, 99_999), leasing=LEASING))
    made.keep("a1")
    made.cloud.add_flavor("cheap", extra_specs={EXTRA_SPEC: "true"})
    yield made
    made.movers.close()


def test_many_servers_are_warned_and_deleted_once(operator: LeaseOperator) -> None:
    (booted,) = operator.cloud.boot(operator.cloud.request(SERVERS, flavor_id="cheap"))
    assert getattr(booted, "fault", "") is None
    process, other = LeaseProcess(operator), LeaseProcess(operator)
    mine, yours = process.tasks[TASK].work, other.tasks[TASK].work
    store = process.cloud.store
    operator.lease(start=HOUR_S, end=2 * HOUR_S)
    written = store.written_at_s
    assert mine() == 0
    assert store.written_at_s == written, "while nothing is due, nothing is written"
    operator.movers.wait(HOUR_S - GRACE_S - LEAD_S)
    assert mine() == SERVERS
    assert yours() == 0
    assert len(operator.cloud.read(preemptions.warned)) == SERVERS
    written = store.written_at_s
    operator.movers.wait(GRACE_S - 1)
    assert mine() == 0
    assert store.written_at_s == written
    operator.movers.wait(1)
    assert yours() == SERVERS
    assert mine() == 0
    orders = [each.server_uuid for each in operator.movers.waiting("destroy")]
    assert len(orders) == len(set(orders)) == SERVERS
    assert operator.movers.server(orders[0]).task_state == Task.DELETING
    for each in (process, other):
        each.stop()
