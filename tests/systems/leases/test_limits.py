"""Leases stay within their project's limits at every moment, and refusals leave nothing behind."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from innkeeper.domain.errors import Forbidden, QuotaExceeded
from innkeeper.domain.lease_limits import LeaseLimits
from innkeeper.domain.leases import Demand, Lease, Window
from innkeeper.domain.slices import Leasing
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.leases import availability, leases, limits, updates
from innkeeper.systems.leases.updates import LeaseChange
from tests.support.clouds import reported
from tests.support.lease_operator import LeaseOperator
from tests.support.moves import Movers

HOUR_S = 3600.0
NAMES = ("a1", "a2", "b1", "b2")
SMALL = {"VCPU": 1, "MEMORY_MB": 64}


@pytest.fixture
def operator(tmp_path: Path) -> Iterator[LeaseOperator]:
    """Four hosts in the freepool."""
    made = LeaseOperator(Movers(tmp_path, *map(reported, NAMES)))
    made.keep(*NAMES)
    yield made
    assert made.broken() == []
    made.movers.close()


def limited(operator: LeaseOperator, **settings: object) -> None:
    operator.leasing = msgspec.structs.replace(operator.leasing, **settings)


def slots(operator: LeaseOperator, amount: int, start_h: int, end_h: int) -> Lease:
    begin = operator.now
    window = Window(begin + timedelta(hours=start_h), begin + timedelta(hours=end_h))
    return operator.make(window, [Demand(amount, amount, SMALL)])


def usage(operator: LeaseOperator, project: str = "project") -> LeaseLimits:
    context = operator.context()
    found: LeaseLimits = operator.cloud.read(lambda tx: limits.usage(tx, project, context))
    return found


def changed(operator: LeaseOperator, lease: Lease, **wanted: object) -> Lease:
    context = operator.context()

    def work(tx: Tx, decision: DecisionContext) -> Lease:
        present = leases.get(tx, lease.uuid)
        return updates.change(tx, decision, present, LeaseChange(**wanted), context)  # type: ignore[arg-type]

    made: Lease = operator.cloud.decide(work, operator.now)
    return made


def count(operator: LeaseOperator) -> int:
    return len(operator.cloud.read(lambda tx: leases.page(tx, project_id=None, limit=99)))


def test_a_lease_is_not_longer_than_allowed(operator: LeaseOperator) -> None:
    limited(operator, max_lease_duration_s=7200)
    operator.lease((1, 1), start=HOUR_S, end=3 * HOUR_S)
    with pytest.raises(Forbidden) as refused:
        operator.lease((1, 1), start=HOUR_S, end=3 * HOUR_S + 0.5)
    assert refused.value.message == (
        "Lease duration of 7201 seconds must be less than or equal to the maximum lease duration "
        "of 7200 seconds."
    )
    limited(operator, max_lease_duration_exempt_projects=("project",))
    operator.lease((1, 1), start=HOUR_S, end=9 * HOUR_S)
    assert count(operator) == 2


def test_a_change_does_not_make_a_lease_longer_than_allowed(operator: LeaseOperator) -> None:
    lease = operator.lease((1, 1), start=HOUR_S, end=5 * HOUR_S)
    limited(operator, max_lease_duration_s=7200)
    with pytest.raises(Forbidden):
        changed(operator, lease, end_at=operator.now + timedelta(hours=6))
    assert changed(operator, lease, end_at=operator.now + timedelta(hours=4)).end_at < lease.end_at
    with pytest.raises(Forbidden):
        changed(operator, lease, end_at=operator.now + timedelta(hours=5))
    assert changed(operator, lease, name="other").name == "other"


def test_the_latest_end_is_not_later_than_allowed(operator: LeaseOperator) -> None:
    lease = operator.lease((1, 1), start=HOUR_S, end=2 * HOUR_S)

    def latest_end() -> datetime:
        context, limit = operator.context(), operator.now + timedelta(hours=9)

        def look(tx: Tx, decision: DecisionContext) -> datetime:
            table = decision.follower.table
            return availability.latest_end(tx, table, lease, limit, context)

        found: datetime = operator.cloud.decide(look, operator.now)
        return found

    assert latest_end() == operator.now + timedelta(hours=9)
    limited(operator, max_lease_duration_s=7200)
    end = latest_end()
    assert end == lease.start_at + timedelta(hours=2)
    with pytest.raises(Forbidden):
        changed(operator, lease, end_at=end + timedelta(minutes=1))
    assert changed(operator, lease, end_at=end).end_at == end


def test_hosts_are_limited_at_each_moment(operator: LeaseOperator) -> None:
    limited(operator, quota_reserved_hosts=2)
    operator.lease((2, 2), start=1 * HOUR_S, end=2 * HOUR_S)
    operator.lease((2, 2), start=2 * HOUR_S, end=3 * HOUR_S)
    with pytest.raises(QuotaExceeded) as refused:
        operator.lease((1, 1), start=2.5 * HOUR_S, end=4 * HOUR_S)
    at = f"{operator.now + timedelta(hours=2.5):%Y-%m-%d %H:%M}"
    assert refused.value.message == (
        "Quota exceeded for reserved_hosts: Requested 1, but already used 2 of 2 reserved_hosts "
        f"at {at}"
    )
    operator.lease((1, 1), start=2.5 * HOUR_S, end=4 * HOUR_S, project="other")
    assert count(operator) == 3


def test_slots_and_their_processors_are_limited(operator: LeaseOperator) -> None:
    limited(operator, quota_reserved_instances=3, quota_reserved_vcpus=2)
    slots(operator, 2, 1, 3)
    with pytest.raises(QuotaExceeded, match="reserved_vcpus"):
        slots(operator, 1, 2, 4)
    limited(operator, quota_reserved_vcpus=-1)
    slots(operator, 1, 2, 4)
    with pytest.raises(QuotaExceeded, match="Requested 1, but already used 3 of 3"):
        slots(operator, 1, 0, 4)
    assert count(operator) == 2


def test_leases_are_counted(operator: LeaseOperator) -> None:
    limited(operator, quota_leases=2, quota_future_leases=1)
    future = operator.lease((1, 1), start=HOUR_S, end=2 * HOUR_S)
    with pytest.raises(QuotaExceeded, match=r"future_leases: Requested 1, but already used 1 of 1"):
        operator.lease((1, 1), start=3 * HOUR_S, end=4 * HOUR_S)
    operator.lease((1, 1), end=HOUR_S)
    with pytest.raises(QuotaExceeded, match=r"for leases: Requested 1, but already used 2 of 2"):
        operator.lease((1, 1), end=HOUR_S)
    operator.delete(future)
    assert usage(operator) == LeaseLimits(1, 0, 1, 0, 0)
    operator.lease((1, 1), end=HOUR_S)
    operator.wait(HOUR_S)
    assert usage(operator) == LeaseLimits(0, 0, 0, 0, 0)


def test_only_what_a_change_adds_is_checked(operator: LeaseOperator) -> None:
    lease = operator.lease((2, 2), start=HOUR_S, end=3 * HOUR_S)
    limited(operator, quota_reserved_hosts=1)
    assert changed(operator, lease, end_at=operator.now + timedelta(hours=2)).end_at < lease.end_at
    with pytest.raises(QuotaExceeded, match="Requested 2, but already used 0 of 1"):
        changed(operator, lease, end_at=operator.now + timedelta(hours=3))
    part = lease.reservations[0].uuid
    with pytest.raises(QuotaExceeded, match="Requested 3"):
        changed(operator, lease, reservations={part: {"min": 3, "max": 3}})
    again = operator.cloud.read(lambda tx: leases.get(tx, lease.uuid))
    assert again.reservations[0].units_max == 2
    assert len(operator.held(lease)) == 2


def test_a_project_has_limits_of_its_own(operator: LeaseOperator) -> None:
    context = operator.context()
    operator.cloud.write(
        lambda tx: limits.set_limits(tx, "project", {"reserved_hosts": 1, "leases": 9}, context)
    )
    found = operator.cloud.read(lambda tx: limits.of_project(tx, "project", Leasing()))
    assert found == LeaseLimits(leases=9, reserved_hosts=1)
    with pytest.raises(QuotaExceeded):
        operator.lease((2, 2), end=HOUR_S)
    operator.lease((2, 2), end=HOUR_S, project="other")
    operator.cloud.write(lambda tx: limits.set_limits(tx, "project", {"leases": None}, context))
    found = operator.cloud.read(lambda tx: limits.of_project(tx, "project", Leasing()))
    assert found == LeaseLimits(reserved_hosts=1)
    operator.cloud.write(lambda tx: limits.reset(tx, "project"))
    operator.lease((2, 2), end=HOUR_S)
