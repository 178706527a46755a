"""The periodic task of leases: one of all processes carries it out."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

from innkeeper.domain.errors import ConcurrentUpdate
from innkeeper.domain.hosts import Dedication
from innkeeper.domain.leases import Lease, LeaseStatus
from innkeeper.domain.slices import Settings
from innkeeper.engine.commands import Command
from innkeeper.engine.periodic import SWEEP_PERIOD_S, PeriodicTasks
from innkeeper.engine.writer import Writer
from innkeeper.systems.leases import events
from tests.support.clouds import reported
from tests.support.lease_operator import LeaseOperator
from tests.support.moves import Movers
from tests.support.statements import Counter

T = TypeVar("T")
STOP_S = 10.0
HOUR_S = 3600.0
STATEMENTS_MAX = 40
"""The statements of a step without a request to an agent, for any number of servers."""


class Stumbling(Writer):
    """Carries out writes, except those whose numbers are given."""

    refused_calls: Collection[int] = ()

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.calls = 0
        self.answers: list[Any] = []

    def submit_and_wait(self, command: Command[T], timeout_s: float) -> T:
        """Carry out a write, or reject it."""
        self.calls += 1
        if self.calls in self.refused_calls:
            raise ConcurrentUpdate("Somebody was in the way.")
        answer = super().submit_and_wait(command, timeout_s)
        self.answers.append(answer)
        return answer


class Serving:
    """A process on a cloud's database whose task the test runs."""

    def __init__(self, operator: LeaseOperator) -> None:
        self.operator = operator
        cloud = operator.cloud
        self.writer = Stumbling(cloud.store, cloud.executor)
        self.writer.start()
        periodic = PeriodicTasks(
            Settings(), cloud.store, self.writer, lambda: operator.now, cloud.ids
        )
        (self.task,) = (each for each in periodic.tasks() if each.name == "lease_events")

    def run(self, after_s: float) -> int:
        """Let some time pass, and run the task."""
        self.operator.movers.now += timedelta(seconds=after_s)
        return self.task.work()


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    """Two hosts for leases, and a process."""
    operator = LeaseOperator(
        Movers(tmp_path, *(reported(each, 99, 99_999, 9999) for each in ("a1", "b1")))
    )
    operator.keep("a1", "b1")
    made = Serving(operator)
    yield made
    made.writer.stop(STOP_S)
    operator.movers.close()


def test_leases_start_and_end_on_time(serving: Serving) -> None:
    operator = serving.operator
    lease = operator.lease((2, 2), start=HOUR_S, end=2 * HOUR_S)
    assert serving.run(0) == 0
    assert serving.run(HOUR_S) > 0
    assert operator.status(lease) == LeaseStatus.ACTIVE
    # Another process has just run the task.
    assert serving.run(1) == 0
    assert serving.run(HOUR_S) > 0
    assert operator.status(lease) == LeaseStatus.ENDED
    assert serving.run(SWEEP_PERIOD_S) == 0
    assert operator.said("a1", "b1") == [(Dedication.FREEPOOL, None)] * 2


def filled(operator: LeaseOperator, count: int) -> Lease:
    """An hour's lease of both hosts, with this many servers, half of them on each."""
    lease = operator.lease((2, 2), end=HOUR_S)
    hints = {"reservation": lease.reservations[0].uuid}
    for host in ("a1", "b1"):
        wanted = operator.cloud.request(count // 2, now=operator.now, hints=hints, forced_host=host)
        (booted,) = operator.cloud.boot(wanted)
        assert getattr(booted, "fault", "") is None
    return lease


def test_many_servers_are_deleted_in_steps(serving: Serving) -> None:
    operator, at_once = serving.operator, events.DELETED_AT_ONCE
    lease = filled(operator, at_once + 4)
    assert serving.run(HOUR_S) == at_once + 4
    assert serving.writer.answers == [[lease.uuid], at_once, 4, 0]
    assert len(operator.movers.waiting("destroy")) == at_once + 4
    assert operator.status(lease) == LeaseStatus.ENDING


def test_servers_being_deleted_get_no_second_order(serving: Serving) -> None:
    operator, movers, at_once = (serving.operator, serving.operator.movers, events.DELETED_AT_ONCE)
    lease, counter = filled(operator, at_once + 4), Counter(serving.operator.cloud)
    movers.wait(HOUR_S)

    def step() -> int:
        carry_out = partial(events.carry_out, uuid=lease.uuid, context=operator.context())
        return int(operator.cloud.write(carry_out))

    asked = []
    for _ in range(2):
        done = step()
        asked.append((done, len(movers.waiting("destroy"))))
    assert asked == [(at_once, at_once), (4, at_once + 4)]
    assert counter.of(step) < STATEMENTS_MAX
    assert step() == 0
    # A silent agent destroys nothing; the servers on the other agent's host remain its work.
    movers.wait(HOUR_S, silent="a")
    assert (step(), step()) == (at_once // 2 + 2, 0)
    assert len(movers.waiting("destroy")) == at_once + 4


def test_a_refused_task_delays_no_other(serving: Serving) -> None:
    operator = serving.operator
    first, second = (operator.lease((1, 1), start=HOUR_S, end=9 * HOUR_S) for _ in range(2))
    serving.writer.refused_calls = {2}
    serving.run(HOUR_S)
    assert operator.status(first) == LeaseStatus.PENDING
    assert operator.status(second) == LeaseStatus.ACTIVE
    serving.run(SWEEP_PERIOD_S)
    assert operator.status(first) == LeaseStatus.ACTIVE
