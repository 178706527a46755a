"""A project's reservations are added up over time. Only an increase can be an excess."""

from __future__ import annotations

from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from innkeeper.domain.lease_limits import Excess, ReservedUnits, excess, used_at
from innkeeper.domain.leases import Window

DAY = datetime(2030, 1, 1)  # noqa: DTZ001 - naive and in UTC, like all times of the core
HOSTS = "reserved_hosts"
LAST = 8


def at(hour: int) -> datetime:
    return DAY + timedelta(hours=hour)


def hosts(units: int, start: int, end: int) -> ReservedUnits:
    return ReservedUnits(1, Window(at(start), at(end)), units, None)


def slots(units: int, start: int, end: int, **amounts: int) -> ReservedUnits:
    return ReservedUnits(1, Window(at(start), at(end)), units, amounts)


def test_amounts_count_by_limit() -> None:
    some = [hosts(2, 0, 4), slots(3, 0, 4, VCPU=2, PCPU=1, MEMORY_MB=9)]
    assert used_at(at(0), some) == {
        "reserved_hosts": 2,
        "reserved_instances": 3,
        "reserved_vcpus": 9,
    }
    assert set(used_at(at(4), some).values()) == {0}, "an end is exclusive"


def test_the_worst_moment_is_named() -> None:
    others = [hosts(1, 0, 4), hosts(2, 4, 6)]
    found = excess(HOSTS, 2, others=others, own=[hosts(1, 2, 8)], since=at(0))
    assert found == Excess(at(4), requested=1, used=2)
    assert excess(HOSTS, 3, others=others, own=[hosts(1, 2, 8)], since=at(0)) is None


def test_the_sum_does_not_count_but_the_peak() -> None:
    others = [hosts(2, 0, 2), hosts(2, 4, 6)]
    assert excess(HOSTS, 2, others=others, own=[hosts(2, 2, 4)], since=at(0)) is None


def test_the_past_does_not_count() -> None:
    found = excess(HOSTS, 1, others=[hosts(1, 0, 2)], own=[hosts(1, 0, 4)], since=at(2))
    assert found is None


def test_what_was_accepted_before_may_stay_or_shrink() -> None:
    before = [hosts(3, 0, 4)]
    for after in (hosts(3, 0, 4), hosts(2, 0, 4), hosts(3, 1, 3)):
        found = excess(HOSTS, 1, others=[], own=[after], before=before, since=at(0))
        assert found is None
    found = excess(HOSTS, 1, others=[], own=[hosts(3, 0, 5)], before=before, since=at(0))
    assert found == Excess(at(4), requested=3, used=0)
    found = excess(HOSTS, 1, others=[], own=[hosts(4, 0, 4)], before=before, since=at(0))
    assert found == Excess(at(0), requested=4, used=0)


pieces = st.lists(
    st.builds(
        lambda units, start, length: hosts(units, start, start + length),
        st.integers(0, 3),
        st.integers(0, LAST - 1),
        st.integers(1, 4),
    ),
    max_size=4,
)


@given(pieces, pieces, pieces, st.integers(0, 4), st.integers(0, 3))
def test_it_equals_hour_by_hour(
    others: list[ReservedUnits],
    own: list[ReservedUnits],
    before: list[ReservedUnits],
    limit: int,
    since: int,
) -> None:
    highest = None
    for hour in range(since, LAST + 4):
        used, requested, had = (
            used_at(at(hour), some)["reserved_hosts"] for some in (others, own, before)
        )
        if requested > had and used + requested > limit:
            highest = max(highest or 0, used + requested)
    found = excess(HOSTS, limit, others=others, own=own, before=before, since=at(since))
    assert (None if found is None else found.used + found.requested) == highest
