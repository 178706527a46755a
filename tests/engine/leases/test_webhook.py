"""Notifications about leases reach the webhook, at least once, and never stop a lease."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import structlog
from prometheus_client import REGISTRY
from structlog.testing import LogCapture, capture_logs

from innkeeper.domain.leases import Lease, LeaseStatus
from innkeeper.domain.slices import Leasing
from innkeeper.engine.leases import webhook as lease_webhook
from innkeeper.engine.leases.webhook import POSTS_AT_ONCE, TURN_S
from innkeeper.store.queries.leases import notifications as notification_rows
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.leases import end_checks, leases, notifications, updates
from innkeeper.systems.leases.notifications import FAILURES_MAX, PAUSE_MAX_S
from innkeeper.systems.leases.updates import LeaseChange
from tests.support.clouds import reported
from tests.support.lease_operator import FAR, LeaseOperator
from tests.support.lease_processes import LeaseProcess
from tests.support.moves import Movers
from tests.support.webhook_receiver import Receiver, receiver

HOUR_S, SOON_S = 3600.0, 1.0
SECRET = "between us"
MOVED = 307


@pytest.fixture
def hook() -> Iterator[Receiver]:
    """A receiver."""
    with receiver() as made:
        yield made


@pytest.fixture
def operator(tmp_path: Path, hook: Receiver) -> Iterator[LeaseOperator]:
    """Two hosts for leases, and a webhook."""
    made = LeaseOperator(Movers(tmp_path, *map(reported, ("a1", "b1"))))
    made.leasing = Leasing(lease_webhook_url=hook.url, lease_webhook_secret=SECRET)
    made.keep("a1", "b1")
    yield made
    made.movers.close()


@pytest.fixture
def process(operator: LeaseOperator) -> Iterator[LeaseProcess]:
    """A process."""
    made = LeaseProcess(operator)
    yield made
    made.stop()


def deliver(process: LeaseProcess, after_s: float = 0.0) -> int:
    """Let some time pass, and run the task for notifications."""
    if after_s:
        process.operator.movers.wait(after_s)
    return process.tasks["lease_notifications"].work()


def bodies(hook: Receiver) -> list[Any]:
    return [json.loads(body) for _, body in hook.posts]


def types(hook: Receiver) -> list[str]:
    return [each["event_type"] for each in bodies(hook)]


def counted(outcome: str) -> float:
    name = "innkeeper_lease_notifications_total"
    return REGISTRY.get_sample_value(name, {"outcome": outcome}) or 0.0


def waiting(operator: LeaseOperator) -> int:
    found: int = operator.cloud.read(
        lambda tx: len(notifications.due(tx, operator.now + FAR, 10_000))
    )
    return found


def short(operator: LeaseOperator) -> Lease:
    """A lease that begins in an hour and lasts for one, with a warning and an event of its user."""
    return operator.lease(
        (1, 1), start=HOUR_S, end=2 * HOUR_S, warned=1.5 * HOUR_S, marked="backup"
    )


def test_all_of_a_lease_is_told_in_order(
    operator: LeaseOperator, process: LeaseProcess, hook: Receiver
) -> None:
    lease = short(operator)
    for _ in range(4):
        process.run(HOUR_S / 2)
    process.run(SOON_S)
    operator.delete(lease)
    while deliver(process):
        pass
    assert types(hook) == [
        "lease.create",
        "lease.event.start_lease",
        "lease.event.before_end_lease",
        "lease.event.backup",
        "lease.event.end_lease",
        "lease.delete",
    ]
    statuses = [each["lease"]["status"] for each in bodies(hook)]
    assert statuses == ["PENDING", "ACTIVE", "ACTIVE", "ACTIVE", "TERMINATED", "TERMINATED"]
    assert {each["lease"]["id"] for each in bodies(hook)} == {lease.uuid}
    assert waiting(operator) == 0


def test_a_receiver_can_check_the_signature(
    operator: LeaseOperator, process: LeaseProcess, hook: Receiver
) -> None:
    short(operator)
    assert deliver(process) == 1
    ((headers, body),) = hook.posts
    signed = headers["x-innkeeper-timestamp"].encode() + b"." + body
    expected = hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()
    assert headers["x-innkeeper-signature"] == f"sha256={expected}"
    assert headers["x-innkeeper-delivery"] == json.loads(body)["id"]
    assert headers["content-type"] == "application/json"


def test_a_failed_delivery_is_tried_again_with_the_same_id(
    operator: LeaseOperator, process: LeaseProcess, hook: Receiver
) -> None:
    short(operator)
    hook.statuses = [500, MOVED]
    with capture_logs() as logs:
        assert [deliver(process, each) for each in (0, 0, 1, 1, 1)] == [0, 0, 0, 0, 1]
    assert [each["reason"] for each in logs if "reason" in each] == ["status 500", "status 307"]
    assert len({headers["x-innkeeper-delivery"] for headers, _ in hook.posts}) == 1
    assert (len(hook.posts), waiting(operator)) == (3, 0)


def test_a_receiver_that_is_away_delays_no_lease(
    operator: LeaseOperator, process: LeaseProcess, hook: Receiver
) -> None:
    lease = short(operator)
    hook.statuses = [503] * 10_000
    with capture_logs() as logs:
        process.run(HOUR_S)
        assert operator.status(lease) == LeaseStatus.ACTIVE
        while waiting(operator):
            deliver(process, PAUSE_MAX_S)
    dropped = [each for each in logs if each["event"] == "lease_notification_dropped"]
    assert {each["event_type"] for each in dropped} == {"lease.create", "lease.event.start_lease"}
    assert len(hook.posts) == 2 * FAILURES_MAX


def test_one_bad_notification_stops_no_other(
    operator: LeaseOperator, process: LeaseProcess, hook: Receiver
) -> None:
    first, second = short(operator), short(operator)
    hook.statuses = [400]
    with capture_logs():
        assert [deliver(process) for _ in range(3)] == [0, 1, 0]
        assert deliver(process, SOON_S) == 1
    told = [each["lease"]["id"] for each in bodies(hook)]
    assert told == [first.uuid, second.uuid, first.uuid]


def test_another_process_goes_on_when_the_first_is_silent(
    operator: LeaseOperator, process: LeaseProcess, hook: Receiver
) -> None:
    other = LeaseProcess(operator)
    short(operator)
    assert deliver(process) == 1
    short(operator)
    assert deliver(other) == 0
    assert deliver(other, TURN_S) == 1
    other.stop()
    assert len(hook.posts) == 2


def test_many_are_delivered_in_several_commits(
    operator: LeaseOperator, process: LeaseProcess, hook: Receiver
) -> None:
    lease = short(operator)

    def update(tx: Tx) -> None:
        present = leases.get(tx, lease.uuid)
        notifications.add(tx, notifications.UPDATED, present, operator.context())

    for _ in range(POSTS_AT_ONCE):
        operator.cloud.write(update)
    assert [deliver(process) for _ in range(3)] == [POSTS_AT_ONCE, 1, 0]
    assert len({body["id"] for body in bodies(hook)}) == POSTS_AT_ONCE + 1


def test_an_extension_stops_the_warning_which_comes_once_more(
    operator: LeaseOperator, process: LeaseProcess, hook: Receiver
) -> None:
    lease = short(operator)
    process.run(HOUR_S)
    process.run(HOUR_S / 2)
    wanted = LeaseChange(end_at=operator.now + timedelta(seconds=HOUR_S))

    def extend(tx: Tx, decision: DecisionContext) -> None:
        updates.change(tx, decision, leases.get(tx, lease.uuid), wanted, operator.context())

    operator.cloud.decide(extend, operator.now)
    for _ in range(3):
        process.run(HOUR_S / 4)
    deliver(process)
    assert types(hook)[2:] == [
        "lease.event.before_end_lease",
        "lease.event.backup",
        "lease.event.before_end_lease.stop",
        "lease.update",
        "lease.event.before_end_lease",
    ]


def captured_log() -> tuple[Any, LogCapture]:
    """Return a logger with settings of its own, and the list of events that it captures."""
    capture = LogCapture()
    wrapper = structlog.make_filtering_bound_logger(0)
    return structlog.wrap_logger(
        structlog.PrintLogger(), processors=[capture], wrapper_class=wrapper
    ), capture


def test_without_a_webhook_there_are_log_records_only(operator: LeaseOperator) -> None:
    operator.leasing = Leasing()
    log, capture = captured_log()
    operator.cloud.store.listen(lease_webhook.listener(log))
    lease = short(operator)
    told = [each for each in capture.entries if each["event"] == "lease_notification"]
    known = {"event": "lease_notification", "log_level": "info", "event_type": "lease.create"}
    assert told == [{**known, "lease_id": lease.uuid, "project_id": "project"}]
    assert waiting(operator) == 0
    process = LeaseProcess(operator)
    assert "lease_notifications" not in process.tasks
    process.stop()


def test_a_refused_or_dry_request_tells_nothing(operator: LeaseOperator) -> None:
    log, capture = captured_log()
    operator.cloud.store.listen(lease_webhook.listener(log))
    lease = short(operator)
    capture.entries.clear()

    def dry(tx: Tx) -> None:
        leases.delete(tx, lease, operator.context())
        raise leases.DryRun

    with pytest.raises(leases.DryRun):
        operator.cloud.write(dry)
    assert capture.entries == []
    assert waiting(operator) == 1


def test_events_and_deliveries_have_threads_of_their_own(process: LeaseProcess) -> None:
    threads = {each.name: each.thread for each in process.tasks.values()}
    assert threads.pop("lease_events") != threads.pop("lease_notifications")
    assert set(threads.values()) == {"worker", "pruning"}


def test_at_most_so_many_notifications_wait(
    operator: LeaseOperator, process: LeaseProcess, hook: Receiver
) -> None:
    """While the receiver is down, the oldest are dropped, except those for the external check."""
    more = 1500

    def fill(tx: Tx) -> None:
        notification_rows.add(tx, operator.cloud.ids.uuid(), end_checks.ON_END, "{}", operator.now)
        for number in range(notifications.KEPT_MAX + more):
            notification_rows.add(tx, str(UUID(int=number)), "lease.update", "{}", operator.now)

    operator.cloud.write(fill)
    hook.statuses[:] = [500] * 9
    before = counted("dropped")
    with capture_logs() as logs:
        for _ in range(3):
            deliver(process)
    dropped = [each["count"] for each in logs if each["event"] == "lease_notifications_dropped"]
    assert dropped == [notifications.DROPPED_AT_ONCE, more - notifications.DROPPED_AT_ONCE]
    assert counted("dropped") - before == more
    left = operator.cloud.read(lambda tx: notifications.due(tx, operator.now + FAR, 100_000))
    assert len(left) == notifications.KEPT_MAX
    assert left[0].uuid == str(UUID(int=more)), "the oldest"
    assert len(operator.cloud.read(lambda tx: end_checks.due(tx, operator.now, 10))) == 1
