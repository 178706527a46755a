"""Series of leases, and searches among leases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from innkeeper.domain.errors import Invalid, NotEnough, NotFound, QuotaExceeded
from innkeeper.domain.lease_searches import LeaseSearch
from innkeeper.domain.leases import (
    Demand,
    EventRequest,
    Lease,
    LeaseEventKind,
    LeaseRequest,
    LeaseStatus,
    ReservationRequest,
    ResourceTypeName,
    Window,
)
from innkeeper.store.transactions import Tx
from innkeeper.systems.compute.boot.context import DecisionContext
from innkeeper.systems.leases import leases, series
from innkeeper.systems.leases.series import Recurrence, Series
from tests.support.clouds import reported
from tests.support.lease_operator import LeaseOperator
from tests.support.moves import Movers

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
NO_TIME = timedelta()


@pytest.fixture
def operator(tmp_path: Path) -> Iterator[LeaseOperator]:
    """Two hosts in the freepool, a1 and b1."""
    made = LeaseOperator(Movers(tmp_path, *map(reported, ("a1", "b1"))))
    made.keep("a1", "b1")
    yield made
    made.turn()
    assert made.broken() == []
    made.movers.close()


def repeated(
    operator: LeaseOperator,
    days: int,
    hosts: int = 1,
    project: str = "project",
    *,
    may_skip: bool = False,
    holds_max: int = series.HOLDS_MAX,
) -> Series:
    """Create a lease of an hour on each of these days, from tomorrow on."""
    uuid, series_uuid = operator.cloud.ids.uuid, operator.cloud.ids.uuid()
    first = Window(operator.now + DAY, operator.now + DAY + HOUR)
    windows = Recurrence(DAY, days).windows(first, NO_TIME)
    requests = [
        LeaseRequest(
            uuid(),
            "course",
            project,
            "user",
            each,
            (ReservationRequest(uuid(), ResourceTypeName.HOST, Demand(hosts, hosts)),),
            (
                EventRequest(uuid(), LeaseEventKind.START, each.start),
                EventRequest(uuid(), LeaseEventKind.END, each.end),
            ),
            series_uuid=series_uuid,
        )
        for each in windows
    ]
    context = operator.context()

    def work(tx: Tx, decision: DecisionContext) -> Series:
        return series.create(
            tx, decision, requests, context, may_skip=may_skip, holds_max=holds_max
        )

    made: Series = operator.cloud.decide(work, operator.now)
    return made


def listed(operator: LeaseOperator, wanted: LeaseSearch) -> Sequence[Lease]:
    found: Sequence[Lease] = operator.cloud.read(
        lambda tx: leases.page(tx, project_id=None, limit=1000, wanted=wanted)
    )
    return found


def test_a_series_begins_and_ends_day_by_day(operator: LeaseOperator) -> None:
    made = repeated(operator, 3, hosts=2).leases
    operator.wait(DAY.total_seconds())
    assert [operator.status(each) for each in made] == ["active", "pending", "pending"]
    operator.wait(DAY.total_seconds())
    assert [operator.status(each) for each in made] == ["ended", "active", "pending"]


def test_one_window_that_does_not_fit_undoes_all(operator: LeaseOperator) -> None:
    day_s = DAY.total_seconds()
    operator.lease((2, 2), start=2 * day_s, end=2 * day_s + 60, project="other")
    with pytest.raises(NotEnough, match=r"The error is about lease .") as error:
        repeated(operator, 3)
    assert error.value.details["fits"] == 0
    assert len(listed(operator, LeaseSearch())) == 1


def test_a_series_that_holds_too_much_is_refused_before_it_is_complete(
    operator: LeaseOperator,
) -> None:
    """The rest of the series is not tried, because all other writers wait for the transaction."""
    day_s = DAY.total_seconds()
    # The last window would not fit either, but it is not tried.
    operator.lease((2, 2), start=4 * day_s, end=4 * day_s + 60, project="other")
    with pytest.raises(Invalid, match="hold at most 4 hosts together"):
        repeated(operator, 4, hosts=2, holds_max=4)
    assert len(listed(operator, LeaseSearch())) == 1
    assert len(repeated(operator, 2, hosts=2, holds_max=4).leases) == 2


def test_windows_that_do_not_fit_are_skipped(operator: LeaseOperator) -> None:
    day_s = DAY.total_seconds()
    operator.lease((2, 2), start=2 * day_s, end=2 * day_s + 60, project="other")
    made = repeated(operator, 3, may_skip=True)
    assert [each.start_at - operator.now for each in made.leases] == [DAY, 3 * DAY]
    assert [each.window.start - operator.now for each in made.skipped] == [2 * DAY]


def test_a_quota_skips_the_rest_and_leaves_no_holds(operator: LeaseOperator) -> None:
    operator.leasing = msgspec.structs.replace(operator.leasing, quota_leases=2)
    made = repeated(operator, 4, may_skip=True)
    assert (len(made.leases), len(made.skipped)) == (2, 2)
    with pytest.raises(QuotaExceeded):
        repeated(operator, 1, may_skip=True)
    with pytest.raises(QuotaExceeded, match="The error is about lease 3"):
        repeated(operator, 3, project="other")
    operator.leasing = msgspec.structs.replace(operator.leasing, quota_leases=-1)
    # Both hosts are free on all days but the first two.
    assert len(repeated(operator, 4, hosts=2, may_skip=True).leases) == 2


def test_a_series_ends_in_steps(operator: LeaseOperator) -> None:
    made = repeated(operator, 12).leases
    operator.wait(DAY.total_seconds())
    operator.wait(2 * HOUR.total_seconds())
    uuid, context = made[0].series_uuid or "", operator.context()

    def end_some(tx: Tx) -> int:
        return series.end_some(tx, uuid, lambda lease: lease.project_id == "project", context)

    assert [operator.cloud.write(end_some) for _ in range(4)] == [6, 1, 0, 0]
    # The first lease is over. It stays in the series.
    assert [each.uuid for each in listed(operator, LeaseSearch())] == [made[0].uuid]
    with pytest.raises(NotFound):
        operator.cloud.read(lambda tx: series.leases_of(tx, "no-series"))


def test_a_recurrence_ends_by_number_or_by_time(operator: LeaseOperator) -> None:
    first = Window(operator.now, operator.now + HOUR)
    starts = [each.start for each in Recurrence(7 * DAY, 3).windows(first, NO_TIME)]
    assert starts == [first.start, first.start + 7 * DAY, first.start + 14 * DAY]
    until = first.start + 2 * DAY
    assert len(Recurrence(DAY, until=until).windows(first, NO_TIME)) == 3
    whole = Window(first.start, first.start + DAY)
    assert len(Recurrence(DAY, 2).windows(whole, NO_TIME)) == 2
    with pytest.raises(Invalid, match="overlap"):
        Recurrence(DAY, 2).windows(whole, timedelta(minutes=1))
    with pytest.raises(Invalid, match="at most 100"):
        Recurrence(DAY, until=first.start + 100 * DAY).windows(first, NO_TIME)


def test_leases_are_found_by_each_status(operator: LeaseOperator) -> None:
    hour_s = HOUR.total_seconds()
    ended = operator.lease(start=0, end=60)
    operator.wait(61)
    active = operator.lease(start=0, end=hour_s)
    pending = operator.lease(start=hour_s, end=2 * hour_s)
    for status in (
        LeaseStatus.PENDING,
        LeaseStatus.STARTING,
        LeaseStatus.ACTIVE,
        LeaseStatus.ENDING,
        LeaseStatus.ENDED,
        LeaseStatus.FAILED,
    ):
        found = {each.uuid for each in listed(operator, LeaseSearch(status=status))}
        every = listed(operator, LeaseSearch())
        assert found == {each.uuid for each in every if each.status == status}, status
    assert {operator.status(each) for each in (ended, active, pending)} == {
        *(LeaseStatus.ENDED, LeaseStatus.ACTIVE, LeaseStatus.PENDING)
    }
