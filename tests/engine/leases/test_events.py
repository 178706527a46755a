"""The periodic task of leases: one process at a time runs it, and any process can take over."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from innkeeper.domain.compute import Status
from innkeeper.domain.errors import NotFound
from innkeeper.domain.hosts import Dedication
from innkeeper.domain.ids import ServerId
from innkeeper.domain.leases import Demand, Lease, LeaseStatus, Window
from innkeeper.domain.slices import Leasing
from innkeeper.engine.leases.events import FAILED_MAX_S, TASK, TURN_S, WAIT_MAX_S
from innkeeper.store import periodic
from innkeeper.store.queries.leases import leases as lease_rows
from innkeeper.store.transactions import Tx
from innkeeper.systems.leases import events, handover
from tests.support.clouds import reported
from tests.support.lease_operator import LeaseOperator
from tests.support.lease_processes import Died, LeaseProcess
from tests.support.moves import Movers
from tests.support.statements import Counter

HOUR_S, SOON_S = 3600.0, 1.0
HOUR = timedelta(seconds=HOUR_S)
STATEMENTS_MAX = 45
"""The statements of a step without a request to an agent, for any number of servers."""
RETRIES = 3
FREE = (Dedication.FREEPOOL, None)
Start = Callable[[], LeaseProcess]


@pytest.fixture
def operator(tmp_path: Path) -> Iterator[LeaseOperator]:
    """Two hosts for leases."""
    made = LeaseOperator(
        Movers(tmp_path, *(reported(each, 99, 99_999, 9999) for each in ("a1", "b1")))
    )
    made.leasing = Leasing(lease_event_retries_max=RETRIES)
    made.keep("a1", "b1")
    yield made
    made.movers.close()


@pytest.fixture
def process(operator: LeaseOperator) -> Iterator[LeaseProcess]:
    """A process."""
    made = LeaseProcess(operator)
    yield made
    made.stop()


@pytest.fixture
def other(operator: LeaseOperator) -> Iterator[LeaseProcess]:
    """Another process on the same database."""
    made = LeaseProcess(operator)
    yield made
    made.stop()


def test_leases_start_and_end_on_time(operator: LeaseOperator, process: LeaseProcess) -> None:
    lease = operator.lease((2, 2), start=HOUR_S, end=2 * HOUR_S)
    assert process.run(HOUR_S - SOON_S) == 0
    assert process.run(SOON_S) > 0
    assert operator.status(lease) == LeaseStatus.ACTIVE
    assert process.run(HOUR_S) > 0
    assert operator.status(lease) == LeaseStatus.ENDED
    assert process.run(SOON_S) == 0
    assert operator.said("a1", "b1") == [FREE] * 2


def test_nothing_is_written_while_nothing_is_due(
    operator: LeaseOperator, process: LeaseProcess
) -> None:
    operator.lease((1, 1), start=HOUR_S, end=2 * HOUR_S)
    for _ in range(3):
        assert process.run(SOON_S) == 0
    assert process.writer.commits == 0


def test_one_process_at_a_time_has_the_turn(
    operator: LeaseOperator, process: LeaseProcess, other: LeaseProcess
) -> None:
    first = operator.lease((1, 1), start=HOUR_S, end=9 * HOUR_S)
    second = operator.lease((1, 1), start=HOUR_S + SOON_S, end=9 * HOUR_S)
    third = operator.lease((1, 1), start=10 * HOUR_S, end=11 * HOUR_S)
    assert process.run(HOUR_S) > 0
    # The first process keeps its turn, so the other process only looks.
    assert other.run(SOON_S) == 0
    assert other.writer.commits == 0
    assert process.run() > 0
    assert [operator.status(each) for each in (first, second)] == [LeaseStatus.ACTIVE] * 2
    assert other.run(9 * HOUR_S) > 0
    assert process.run() == 0
    assert operator.status(third) == LeaseStatus.ACTIVE


def test_a_process_whose_turn_was_taken_writes_nothing(
    operator: LeaseOperator, process: LeaseProcess
) -> None:
    """Another process takes the turn after this one has looked, and before it writes."""
    lease = operator.lease((1, 1), start=HOUR_S, end=9 * HOUR_S)

    def take(tx: Tx) -> bool:
        now = operator.now + timedelta(milliseconds=1)
        return periodic.hold_turn(tx, TASK, mine=None, lapse_s=0.0, now=now)

    process.writer.before = partial(operator.cloud.write, take)
    assert process.run(HOUR_S) == 0
    assert process.writer.commits == 1
    assert operator.status(lease) == LeaseStatus.PENDING
    process.writer.before = None
    assert process.run(2 * TURN_S) > 0
    assert operator.status(lease) == LeaseStatus.ACTIVE


def test_a_lease_is_begun_before_any_other_goes_on(
    operator: LeaseOperator, process: LeaseProcess
) -> None:
    made = [operator.lease((1, 1), start=HOUR_S, end=9 * HOUR_S) for _ in range(2)]
    process.writer.commits_left = 1
    with pytest.raises(Died):
        process.run(HOUR_S)
    assert [operator.status(each) for each in made] == [LeaseStatus.STARTING] * 2


def test_hosts_are_freed_before_the_next_lease_takes_them(
    operator: LeaseOperator, process: LeaseProcess
) -> None:
    later = operator.lease((2, 2), start=HOUR_S, end=2 * HOUR_S)
    first = operator.lease((2, 2), end=HOUR_S)
    assert process.run(HOUR_S) > 0
    assert [operator.status(each) for each in (first, later)] == [
        LeaseStatus.ENDED,
        LeaseStatus.ACTIVE,
    ]


def filled(operator: LeaseOperator, count: int) -> Lease:
    """An hour's lease of both hosts, with this many servers, half of them on each."""
    lease = operator.lease((2, 2), end=HOUR_S)
    hints = {"reservation": lease.reservations[0].uuid}
    for host in ("a1", "b1"):
        wanted = operator.cloud.request(count // 2, now=operator.now, hints=hints, forced_host=host)
        (booted,) = operator.cloud.boot(wanted)
        assert getattr(booted, "fault", "") is None
    return lease


def test_many_servers_are_deleted_in_steps(operator: LeaseOperator, process: LeaseProcess) -> None:
    at_once = handover.DELETED_AT_ONCE
    lease = filled(operator, at_once + 4)
    process.run(HOUR_S)
    assert process.writer.answers == [[True], [at_once], [4], [0]]
    assert len(operator.movers.waiting("destroy")) == at_once + 4
    assert operator.status(lease) == LeaseStatus.ENDING
    # The event waits for the agents, and is retried after pauses.
    commits = process.writer.commits
    assert process.run() == 0
    assert process.writer.commits == commits
    assert process.run(WAIT_MAX_S) == 0
    assert process.writer.commits == commits + 1


def waiting(
    operator: LeaseOperator, process: LeaseProcess, after_s: float
) -> tuple[Lease, ServerId]:
    """A lease that has ended, and waits for the agent to destroy its server."""
    lease = operator.lease((1, 1), end=HOUR_S)
    server = operator.movers.boot(None, hints={"reservation": lease.reservations[0].uuid})
    process.run(after_s)
    assert operator.status(lease) == LeaseStatus.ENDING
    return lease, server


def test_the_pauses_of_a_lease_that_waits_have_a_limit(
    operator: LeaseOperator, process: LeaseProcess
) -> None:
    waiting(operator, process, HOUR_S)
    for _ in range(9):
        commits = process.writer.commits
        process.run(WAIT_MAX_S)
        assert process.writer.commits == commits + 1


def test_a_lease_waits_no_longer_after_the_clock_was_set_back(
    operator: LeaseOperator, process: LeaseProcess
) -> None:
    lease, server = waiting(operator, process, 3 * HOUR_S)
    operator.movers.now -= HOUR
    operator.movers.tell("destroy", server)
    assert process.run() > 0
    assert operator.status(lease) == LeaseStatus.ENDED


def test_servers_being_deleted_get_no_second_order(operator: LeaseOperator) -> None:
    movers, at_once = operator.movers, handover.DELETED_AT_ONCE
    lease, counter = filled(operator, at_once + 4), Counter(operator.cloud)
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


# -- errors --------------------------------------------------------------------------------


def break_reservation(operator: LeaseOperator, lease: Lease) -> None:
    """Let every change of a lease's reservation fail."""
    (reservation,) = lease.reservations
    trigger = (
        f"CREATE TRIGGER defect BEFORE UPDATE ON reservations WHEN OLD.id = {reservation.id} "
        "BEGIN SELECT RAISE(ABORT, 'a defect'); END"
    )
    operator.cloud.write(lambda tx: tx.exec_driver_sql(trigger))


def repair(operator: LeaseOperator) -> None:
    operator.cloud.write(lambda tx: tx.exec_driver_sql("DROP TRIGGER defect"))


def failures(process: LeaseProcess, after_s: float) -> list[bool]:
    """Run the task until a failing event is given up; returns, for each failure, whether it was."""
    with capture_logs() as logs:
        process.run(after_s)
        for _ in range(2 * RETRIES):
            process.run(FAILED_MAX_S)
    return [each["given_up"] for each in logs if each["event"] == "lease_event_failed"]


def test_a_failing_event_is_given_up_and_delays_no_other(
    operator: LeaseOperator, process: LeaseProcess
) -> None:
    bad, good = (operator.lease((1, 1), start=HOUR_S, end=9 * HOUR_S) for _ in range(2))
    break_reservation(operator, bad)
    with capture_logs():
        process.run(HOUR_S)
    assert operator.status(good) == LeaseStatus.ACTIVE
    assert operator.status(bad) == LeaseStatus.STARTING
    # One failure was counted already.
    assert failures(process, FAILED_MAX_S) == [False] * (RETRIES - 1) + [True]
    assert operator.status(bad) == LeaseStatus.FAILED
    assert process.run(FAILED_MAX_S) == 0
    repair(operator)
    operator.delete(bad)
    with pytest.raises(NotFound):
        operator.status(bad)
    assert operator.cloud.read(lambda tx: lease_rows.by_uuid(tx, bad.uuid)) is None
    assert operator.broken() == []


def test_a_deleted_lease_whose_end_fails_is_visible_again(
    operator: LeaseOperator, process: LeaseProcess
) -> None:
    lease = operator.lease((1, 1))
    (home,) = operator.held(lease)
    server = operator.movers.boot(home, hints={"reservation": lease.reservations[0].uuid})
    operator.delete(lease)
    break_reservation(operator, lease)
    operator.movers.tell("destroy", server)
    assert failures(process, SOON_S) == [False] * RETRIES + [True]
    assert operator.status(lease) == LeaseStatus.FAILED
    repair(operator)
    operator.delete(lease)
    with pytest.raises(NotFound):
        operator.status(lease)
    assert operator.said("a1", "b1") == [FREE] * 2


def test_a_lease_that_is_deleted_again_has_all_its_retries(
    operator: LeaseOperator, process: LeaseProcess
) -> None:
    lease = operator.lease((1, 1), end=HOUR_S)
    server = operator.movers.boot(None, hints={"reservation": lease.reservations[0].uuid})
    break_reservation(operator, lease)
    assert failures(process, HOUR_S) == [False] * RETRIES + [True]
    repair(operator)
    operator.delete(lease)
    break_reservation(operator, lease)
    operator.movers.tell("destroy", server)
    assert failures(process, SOON_S) == [False] * RETRIES + [True]
    repair(operator)
    operator.delete(lease)
    assert operator.said("a1", "b1") == [FREE] * 2


def test_an_overtaken_event_is_retried_without_a_limit(
    operator: LeaseOperator, process: LeaseProcess
) -> None:
    movers, lease = operator.movers, operator.lease((2, 2), end=HOUR_S)
    server = movers.boot("a1", hints={"reservation": lease.reservations[0].uuid})
    movers.migrate(server)
    rival = (
        "CREATE TRIGGER rival AFTER DELETE ON allocations "
        "BEGIN UPDATE consumers SET generation = generation + 1; END"
    )
    operator.cloud.write(lambda tx: tx.exec_driver_sql(rival))
    with capture_logs() as logs:
        process.run(HOUR_S)
        for _ in range(2 * RETRIES):
            process.run(FAILED_MAX_S)
    assert [each["event"] for each in logs] == ["lease_event_delayed"] * (1 + 2 * RETRIES)
    operator.cloud.write(lambda tx: tx.exec_driver_sql("DROP TRIGGER rival"))
    process.run(FAILED_MAX_S)
    movers.finish()
    process.run(FAILED_MAX_S)
    assert operator.status(lease) == LeaseStatus.ENDED
    assert operator.said("a1", "b1") == [FREE] * 2


def test_a_lease_that_is_starting_can_be_deleted_once(
    operator: LeaseOperator, process: LeaseProcess
) -> None:
    first = operator.lease((2, 2), end=HOUR_S)
    second = operator.lease((2, 2), start=HOUR_S, end=2 * HOUR_S)
    server = operator.movers.boot("a1", hints={"reservation": first.reservations[0].uuid})
    process.run(HOUR_S)
    assert operator.status(second) == LeaseStatus.STARTING
    operator.delete(second)
    with pytest.raises(NotFound):
        operator.delete(second)
    operator.movers.tell("destroy", server)
    process.run(WAIT_MAX_S)
    assert operator.status(first) == LeaseStatus.ENDED
    assert operator.said("a1", "b1") == [FREE] * 2
    assert operator.cloud.read(lambda tx: lease_rows.by_uuid(tx, second.uuid)) is None
    assert operator.broken() == []


# -- crashes -------------------------------------------------------------------------------

MANY = handover.HOSTS_AT_ONCE + 5


@pytest.fixture
def crowd(tmp_path: Path) -> Iterator[LeaseOperator]:
    """A lease of so many hosts that it takes several steps."""
    names = [f"a{number:02}" for number in range(MANY)]
    made = LeaseOperator(Movers(tmp_path, *map(reported, names)))
    made.keep(*names)
    yield made
    made.movers.close()


def dies(operator: LeaseOperator, commits: int, after_s: float) -> bool:
    """Whether a process dies after this many commits; then another process goes on."""
    mortal, heir = LeaseProcess(operator, commits), LeaseProcess(operator)
    has_died = True
    with suppress(Died):
        mortal.run(after_s)
        has_died = False
    mortal.stop()
    assert operator.broken() == []
    if has_died:
        # The turn of the dead process is not over yet.
        assert heir.run() == 0
        heir.run(TURN_S)
    heir.stop()
    assert operator.broken() == []
    return has_died


def test_another_process_goes_on_after_any_step(crowd: LeaseOperator) -> None:
    shape = {"VCPU": 1, "MEMORY_MB": 1024, "DISK_GB": 10}
    demands = [Demand(MANY - 2, MANY - 2), Demand(3, 3, shape)]
    for commits in itertools.count(1):
        window = Window(crowd.now + HOUR, crowd.now + 2 * HOUR)
        lease = crowd.make(window, demands)
        is_interrupted = dies(crowd, commits, HOUR_S)
        assert crowd.status(lease) == LeaseStatus.ACTIVE
        whole, slots = (each.uuid for each in lease.reservations)
        server = crowd.movers.boot(None, hints={"reservation": whole})
        request = crowd.cloud.request(now=crowd.now, flavor_id=slots)
        (booted,) = crowd.cloud.boot(request)
        assert getattr(booted, "fault", "") is None
        crowd.movers.finish()
        is_interrupted |= dies(crowd, commits, HOUR_S)
        assert crowd.status(lease) == LeaseStatus.ENDING
        crowd.movers.finish()
        is_interrupted |= dies(crowd, commits, HOUR_S)
        assert crowd.status(lease) == LeaseStatus.ENDED
        assert crowd.movers.server(server).status == Status.DELETED
        assert crowd.held(lease) == set()
        crowd.delete(lease)
        if not is_interrupted:
            break
    assert commits > 2
