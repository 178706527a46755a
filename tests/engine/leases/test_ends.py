"""The periodic tasks that end idle leases, and tell the external check of leases that ended."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path

import msgspec
import pytest

from innkeeper.domain.leases import Lease, LeaseStatus
from innkeeper.domain.slices import Settings
from innkeeper.engine.leases.end_checks import PERIOD_S
from innkeeper.engine.leases.idle import PERIOD_S as IDLE_PERIOD_S
from innkeeper.engine.periodic import PeriodicTask, PeriodicTasks
from innkeeper.engine.writer import Writer
from innkeeper.store.queries.leases import leases as lease_rows
from innkeeper.systems.leases import notifications
from tests.support.clouds import reported
from tests.support.lease_check_service import LeaseCheckService, serving
from tests.support.lease_operator import LeaseOperator
from tests.support.moves import Movers

STOP_S = 10.0
HOUR_S = 3600.0


class Serving:
    """A process on a cloud's database whose tasks the test runs."""

    def __init__(self, operator: LeaseOperator) -> None:
        self.operator = operator
        self.writer = Writer(operator.cloud.store, operator.cloud.executor)
        self.writer.start()

    def task(self, name: str) -> PeriodicTask:
        """A task of a new process."""
        settings = Settings(leasing=self.operator.leasing)
        store, ids = self.operator.cloud.store, self.operator.cloud.ids
        periodic = PeriodicTasks(settings, store, self.writer, lambda: self.operator.now, ids)
        (found,) = (each for each in periodic.tasks() if each.name == name)
        return found

    def run(self, task: PeriodicTask, after_s: float) -> int:
        """Let some time pass, and run a task."""
        self.operator.movers.now += timedelta(seconds=after_s)
        return task.work()


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Serving]:
    """Two hosts for leases, and a process."""
    operator = LeaseOperator(Movers(tmp_path, *map(reported, ("a1", "b1"))))
    operator.keep("a1", "b1")
    made = Serving(operator)
    yield made
    made.writer.stop(STOP_S)
    operator.movers.close()


@pytest.fixture
def check(process: Serving) -> Iterator[LeaseCheckService]:
    """The operator's check, which the process knows."""
    with serving() as service:
        process.operator.leasing = msgspec.structs.replace(
            process.operator.leasing, lease_check_url=service.url
        )
        yield service


def with_grace(operator: LeaseOperator, seconds: int) -> Lease:
    lease = operator.lease((1, 1), end=9 * HOUR_S)
    change = partial(lease_rows.change, row=lease.id, now=operator.now, idle_grace_s=seconds)
    operator.cloud.write(change)
    return lease


def test_idle_leases_end_by_one_process(process: Serving) -> None:
    operator = process.operator
    first, second = process.task("idle_leases"), process.task("idle_leases")
    assert process.run(first, 0) == 0
    lease = with_grace(operator, 600)
    assert process.run(first, 0) == 0
    assert process.run(second, 600) == 1
    assert process.run(first, IDLE_PERIOD_S) == 0
    operator.turn()
    assert operator.status(lease) == LeaseStatus.ENDED


def test_two_processes_do_not_look_in_one_period(process: Serving) -> None:
    first, second = process.task("idle_leases"), process.task("idle_leases")
    with_grace(process.operator, 1)
    assert process.run(first, IDLE_PERIOD_S) == 0
    assert process.run(second, 2) == 0
    assert process.run(first, IDLE_PERIOD_S) == 1


def test_the_check_is_told_of_each_end_once(process: Serving, check: LeaseCheckService) -> None:
    operator = process.operator
    task = process.task("lease_end_checks")
    ended = operator.lease((1, 1), end=HOUR_S)
    deleted = operator.lease((1, 1), end=9 * HOUR_S)
    assert process.run(task, PERIOD_S) == 0
    operator.delete(deleted)
    operator.wait(HOUR_S)
    assert process.run(task, PERIOD_S) == 2
    assert [body["lease"]["id"] for _, _, body in check.asked] == [deleted.uuid, ended.uuid]
    assert check.paths == ["/check/on-end"] * 2
    _, _, body = check.asked[0]
    assert body["context"] == {
        "user_id": "user",
        "project_id": "project",
        "auth_url": None,
        "region_name": "RegionOne",
    }
    ((host,),) = [each["allocations"] for each in body["lease"]["reservations"]]
    assert host["hypervisor_hostname"] in ("a1", "b1")
    assert process.run(task, PERIOD_S) == 0


def test_what_the_check_answers_then_changes_nothing(
    process: Serving, check: LeaseCheckService
) -> None:
    operator = process.operator
    check.status = 500
    lease = operator.lease((1, 1), end=HOUR_S)
    operator.wait(HOUR_S)
    assert operator.status(lease) == LeaseStatus.ENDED
    task = process.task("lease_end_checks")
    assert process.run(task, PERIOD_S) == 1
    assert process.run(task, PERIOD_S) == 0, "it is logged, and given up"
    assert check.paths == ["/check/on-end"]


def test_these_messages_are_not_notifications(process: Serving, check: LeaseCheckService) -> None:
    operator = process.operator
    operator.delete(operator.lease((1, 1), end=HOUR_S))
    assert operator.cloud.read(lambda tx: notifications.due(tx, operator.now, 9)) == []
    assert process.run(process.task("lease_end_checks"), PERIOD_S) == 1


def test_without_a_check_there_are_no_messages(process: Serving) -> None:
    process.operator.delete(process.operator.lease((1, 1), end=HOUR_S))
    with pytest.raises(ValueError, match="not enough"):
        process.task("lease_end_checks")
