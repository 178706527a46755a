"""The periodic task that replaces failed hosts: which leases it checks again, and when."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from innkeeper.domain.leases import Lease
from innkeeper.domain.slices import Settings
from innkeeper.engine.leases.healing import PERIOD_S, RETRY_S, TASK
from innkeeper.engine.periodic import PeriodicTask, PeriodicTasks
from innkeeper.engine.writer import Writer
from innkeeper.store.queries.leases import notifications
from tests.support.clouds import reported
from tests.support.lease_operator import LeaseOperator
from tests.support.moves import Movers

STOP_S = 10.0
HOUR_S = 3600.0


class Serving:
    """A process on a cloud's database whose task the test runs."""

    def __init__(self, operator: LeaseOperator) -> None:
        self.operator = operator
        self.writer = Writer(operator.cloud.store, operator.cloud.executor)
        self.writer.start()

    def task(self) -> PeriodicTask:
        """The task of a new process."""
        settings = Settings(leasing=self.operator.leasing)
        store, ids = self.operator.cloud.store, self.operator.cloud.ids
        periodic = PeriodicTasks(settings, store, self.writer, lambda: self.operator.now, ids)
        (found,) = (each for each in periodic.tasks() if each.name == TASK)
        return found

    def run(self, task: PeriodicTask, after_s: float = PERIOD_S, silent: str = "") -> int:
        """Let some time pass, and run a task."""
        self.operator.movers.wait(after_s, silent=silent)
        return task.work()


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Serving]:
    """Two hosts for leases, and a process."""
    operator = LeaseOperator(Movers(tmp_path, *map(reported, ("a1", "b1"))))
    operator.leasing = msgspec.structs.replace(
        operator.leasing, lease_webhook_url="http://127.0.0.1:9/"
    )
    operator.keep("a1", "b1")
    made = Serving(operator)
    yield made
    made.writer.stop(STOP_S)
    operator.turn()
    assert operator.broken() == []
    operator.movers.close()


def told(operator: LeaseOperator) -> list[str]:
    """The types of the notifications about failed hosts."""
    late = operator.now + timedelta(days=1)
    found = operator.cloud.read(lambda tx: notifications.due(tx, late, 100, but="-"))
    types = [json.loads(each.payload)["event_type"] for each in found]
    return [each for each in types if each in ("lease.degraded", "lease.healed")]


def holder(process: Serving, start: float = 0.0) -> tuple[Lease, str]:
    """A lease of one host, and the host."""
    lease = process.operator.lease((1, 1), start=start, end=24 * HOUR_S)
    (name,) = process.operator.held(lease)
    return lease, name


def test_a_failed_host_is_replaced_and_the_lease_gets_well(process: Serving) -> None:
    operator, task = process.operator, process.task()
    lease, first = holder(process)
    assert process.run(task) == 0
    operator.declare(first, is_down=True)
    assert [process.run(task) for _ in range(3)] == [1, 0, 0]
    assert operator.held(lease) != {first}
    assert told(operator) == ["lease.degraded"]
    operator.declare(first, is_down=False)
    assert process.run(task) == 0
    assert process.run(task, HOUR_S) == 1
    assert told(operator) == ["lease.degraded", "lease.healed"]


def test_a_lease_that_cannot_be_healed_is_tried_again_after_a_while(process: Serving) -> None:
    operator, task = process.operator, process.task()
    lease, first = holder(process)
    (other,) = {"a1", "b1"} - {first}
    operator.declare(other, is_disabled=True)
    operator.declare(first, is_down=True)
    assert [process.run(task) for _ in range(2)] == [1, 0]
    assert told(operator) == ["lease.degraded"]
    operator.declare(other, is_disabled=False)
    assert process.run(task) == 0
    assert process.run(task, RETRY_S) == 1
    assert operator.held(lease) == {other}


def test_an_outage_of_the_service_moves_nothing(process: Serving) -> None:
    operator = process.operator
    lease, first = holder(process, HOUR_S / 2)
    silent = first[0]
    task = process.task()
    assert process.run(task, 600.0, silent) == 0
    assert process.run(task, PERIOD_S) == 0
    assert operator.held(lease) == {first}
    assert process.run(task, 600.0, silent) == 0
    assert process.run(task, 61.0, silent) == 1
    assert operator.held(lease) != {first}
